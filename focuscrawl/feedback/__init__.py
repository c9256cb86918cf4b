"""What a person tells a crawl about its topic, and how the crawl takes it up [F99 section 2].

Here: which pages to ask about, answers in a table, applying a definition to a crawl. Not here:
the definition and its critic (`focuscrawl.topics`).
"""

from focuscrawl.feedback.application import Applied, apply_definition, check_applicable
from focuscrawl.feedback.judgements import read_judgements, write_questions
from focuscrawl.feedback.suggestions import KINDS, Suggestion, suggest

__all__ = [
    "KINDS",
    "Applied",
    "Suggestion",
    "apply_definition",
    "check_applicable",
    "read_judgements",
    "suggest",
    "write_questions",
]
