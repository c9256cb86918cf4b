"""Judgements of pages by a person or a model, applied to a crawl [F99 section 2].

Here: which pages to ask about, answers in a table, a model that answers in the place of the
person, applying a definition to a crawl. Not here: the definition and its critic
(`focuscrawl.topics`).
"""

from focuscrawl.feedback.applying import AppliedDefinition, apply_definition, check_applicable
from focuscrawl.feedback.suggestions import (
    DEFAULT_KIND,
    KINDS,
    Suggestion,
    read_judgements,
    suggest,
    write_questions,
)
from focuscrawl.feedback.teacher import Teacher
from focuscrawl.feedback.teaching import RECORD_FILE, TeacherAnswer, TeacherSession

__all__ = [
    "DEFAULT_KIND",
    "KINDS",
    "RECORD_FILE",
    "AppliedDefinition",
    "Suggestion",
    "Teacher",
    "TeacherAnswer",
    "TeacherSession",
    "apply_definition",
    "check_applicable",
    "read_judgements",
    "suggest",
    "write_questions",
]
