"""Topic trees with example URLs: what a critic is trained on and what a user points a crawl at.

Here: topic paths, the tree, its readers (label tables, Dmoz RDF) and the pruning that makes a
tree fit to learn from [A02 section 3.1]. Not here: pages, training, judging.
"""

from focuscrawl.taxonomy.dmoz import read_dmoz
from focuscrawl.taxonomy.pruning import choose_min_examples, prune
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
