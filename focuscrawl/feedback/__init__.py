"""Judgements of pages by a person or a model, applied to a crawl [F99 section 2].

Here: which pages to ask about, answers in a table, a model that answers in the place of the
person, applying a definition to a crawl. Not here: the definition and its critic
(`focuscrawl.topics`).
"""

from focuscrawl.feedback.applying import Applied, apply_definition, check_applicable
from focuscrawl.feedback.suggestions import (
    DEFAULT_KIND,
    KINDS,
    Suggestion,
    read_judgements,
    suggest,
    write_questions,
)
from focuscrawl.feedback.teacher import Teacher
from focuscrawl.feedback.teaching import RECORD, Lesson, Teaching

__all__ = [
    "DEFAULT_KIND",
    "KINDS",
    "RECORD",
    "Applied",
    "Lesson",
    "Suggestion",
    "Teacher",
    "Teaching",
    "apply_definition",
    "check_applicable",
    "read_judgements",
    "suggest",
    "write_questions",
]
