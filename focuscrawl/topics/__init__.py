"""Reads topic definitions (TOML files that people edit) and bookmarks, and trains critics.

The package `focuscrawl.feedback` chooses pages for a person to judge. The module
`focuscrawl.crawl.rejudging` applies a topic definition to a crawl.
"""

from focuscrawl.topics.bookmarks import Bookmark, read_bookmarks
from focuscrawl.topics.definition import (
    DEFINITION_FILE,
    TopicDefinition,
    edit_definition,
    read_definition,
    read_verdicts,
    write_definition,
)
from focuscrawl.topics.topic_training import (
    RankedClass,
    check_marked_classes,
    check_trainable,
    rank_classes,
    train_definition,
    training_urls,
)

__all__ = [
    "DEFINITION_FILE",
    "Bookmark",
    "RankedClass",
    "TopicDefinition",
    "check_marked_classes",
    "check_trainable",
    "edit_definition",
    "rank_classes",
    "read_bookmarks",
    "read_definition",
    "read_verdicts",
    "train_definition",
    "training_urls",
    "write_definition",
]
