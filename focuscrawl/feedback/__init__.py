"""Relevance feedback: choosing pages to judge, and applying judgements to a crawl [F99 section 2].

A person or a language model (called teacher) judges the pages. Topic definitions and the training
of their critics are in `focuscrawl.topics`.
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
