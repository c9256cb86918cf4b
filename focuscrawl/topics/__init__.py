"""A topic as a person defines it: one readable file, and the critic that follows from it.

Here: the definition file, bookmarks as examples, training a critic from a definition, which
classes of a taxonomy fit pages best. Not here: which pages to ask a person about
(`focuscrawl.feedback`), how a crawl follows a definition (`focuscrawl.crawl.rejudging`).
"""

from focuscrawl.topics.bookmarks import Bookmark, read_bookmarks
from focuscrawl.topics.definition import (
    TopicDefinition,
    edit_definition,
    read_definition,
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
    "Bookmark",
    "RankedClass",
    "TopicDefinition",
    "check_marked_classes",
    "check_trainable",
    "edit_definition",
    "rank_classes",
    "read_bookmarks",
    "read_definition",
    "train_definition",
    "training_urls",
    "write_definition",
]
