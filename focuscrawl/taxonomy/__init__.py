"""Topic trees with example URLs, for training critics and for choosing the topics of a crawl.

The package `taxonomy` reads label tables and Dmoz dumps, and prunes topic trees before training
[A02 section 3.1].
"""

from focuscrawl.taxonomy.dmoz import choose_min_examples, prune, read_dmoz
from focuscrawl.taxonomy.topic_tree import (
    OTHER,
    ROOT,
    Label,
    Sampling,
    Taxonomy,
    ancestors,
    iterate_labels,
    lies_under,
    normalise,
    parent,
    parse_topics,
    read_labels,
)

__all__ = [
    "OTHER",
    "ROOT",
    "Label",
    "Sampling",
    "Taxonomy",
    "ancestors",
    "choose_min_examples",
    "iterate_labels",
    "lies_under",
    "normalise",
    "parent",
    "parse_topics",
    "prune",
    "read_dmoz",
    "read_labels",
]
