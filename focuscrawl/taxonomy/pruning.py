"""Prunes a topic tree so that each leaf has enough examples for training."""

from __future__ import annotations

from focuscrawl.errors import UserError
from focuscrawl.taxonomy.topic_tree import OTHER, ROOT, Sampling, Taxonomy, child, parent

#: k of [A02]: minimum and maximum number of training pages of a class
EXAMPLES_PER_CLASS = 300
#: classes that must remain for pruning at `EXAMPLES_PER_CLASS` by default
_MIN_CLASSES = 100


def choose_min_examples(taxonomy: Taxonomy) -> int:
    """Return the default for the minimum number of examples per leaf of a topic tree.

    The default is `EXAMPLES_PER_CLASS` (the value in [A02]) if at least a hundred leaves remain
    after pruning, as in the case of Dmoz. Otherwise the default is 1, and no topic is merged.
    """
    if (
        sum(len(taxonomy.examples(topic)) for topic in taxonomy.topics)
        < _MIN_CLASSES * EXAMPLES_PER_CLASS
    ):
        return 1
    left = _move_to_other(_merge_small_leaves(taxonomy, EXAMPLES_PER_CLASS))
    return EXAMPLES_PER_CLASS if len(left) >= _MIN_CLASSES else 1


def prune(
    taxonomy: Taxonomy,
    min_examples: int = 300,
    max_examples: int = 300,
    random_state: int = 0,
) -> Taxonomy:
    """Merge small leaves into their parents, and sample the examples of large leaves.

    1. Leaves with fewer than `min_examples` examples are merged into their parents, repeatedly.
    2. The examples of an internal topic itself are moved to a new child topic ``Other``.
    3. Each leaf is reduced to a uniform sample of at most `max_examples` examples.

    In the result, only the root and leaves with the name ``Other`` may have fewer than
    `min_examples` examples.

    Parameters
    ----------
    taxonomy : tree to prune; the tree is not changed
    min_examples : k of [A02], minimum number of examples of a leaf, at least 1
    max_examples : maximum number of examples of a leaf, at least 1
    random_state : seed of the sample

    Returns
    -------
    Taxonomy
        A tree whose leaves have the sorted examples, independent of the order of the input.

    Raises
    ------
    UserError
        If the examples were sampled before, by `read_dmoz` or `prune`, to fewer examples than
        needed or with another seed. Then a uniform sample is impossible.
    """
    if min_examples < 1 or max_examples < 1:
        raise UserError(
            f"cannot prune to {min_examples} to {max_examples} examples per leaf: both numbers "
            "must be ≥ 1"
        )
    sampling = Sampling(max_examples, random_state)
    previous = taxonomy.sampling
    wanted = Sampling(max(min_examples, max_examples), random_state)
    if previous is not None and (
        previous.size < wanted.size or previous.random_state != random_state
    ):
        raise UserError(
            f"the examples were sampled before ({previous.size} per topic, random_state "
            f"{previous.random_state}); read them again with max_examples={wanted.size}, "
            f"random_state={random_state}"
        )
    own = _merge_small_leaves(taxonomy, min_examples)
    leaves = _move_to_other(own)
    return Taxonomy(
        {leaf: sorted(sampling.draw(urls)) for leaf, urls in leaves.items()},
        sampling
        if previous or any(len(urls) > max_examples for urls in leaves.values())
        else None,
    )


def _merge_small_leaves(taxonomy: Taxonomy, min_examples: int) -> dict[str, set[str]]:
    """Return the remaining topics with their own examples, children before parents."""
    merged: dict[str, set[str]] = {}
    parents: set[str] = set()
    kept: dict[str, set[str]] = {}
    for topic in reversed(taxonomy.topics):  # sorted, so that a path follows its prefixes
        own = merged.pop(topic, set())
        own.update(taxonomy.examples(topic))
        if topic in parents or len(own) >= min_examples or topic == ROOT:
            kept[topic] = own
            parents.add(parent(topic))
        else:
            merged.setdefault(parent(topic), set()).update(own)
    return kept


def _move_to_other(own: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the leaves with their examples, and examples of internal topics in ``Other``."""
    internal = {parent(topic) for topic in own if topic != ROOT}
    leaves: dict[str, set[str]] = {}
    for topic, urls in own.items():
        leaf = topic
        while leaf in internal:  # a topic Other may have children, too
            leaf = child(leaf, OTHER)
        if urls:
            leaves.setdefault(leaf, set()).update(urls)
    return leaves
