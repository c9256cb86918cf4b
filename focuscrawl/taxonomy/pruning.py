"""Pruning a topic tree until a critic can learn each of its leaves [A02 section 3.1]."""

from __future__ import annotations

from focuscrawl.errors import UserError
from focuscrawl.taxonomy.topic_tree import OTHER, ROOT, Sampling, Taxonomy, child, parent

#: k of [A02]: pages that a class learns from, and what it is sampled down to
EXAMPLES_PER_CLASS = 300
#: classes that a tree must have left after pruning at `EXAMPLES_PER_CLASS`, if done unasked
_MIN_CLASSES = 100


def choose_min_examples(taxonomy: Taxonomy) -> int:
    """Return the fewest examples that a leaf of a tree should have: `EXAMPLES_PER_CLASS`, or 1.

    A tree as large as Dmoz has a hundred thousand topics with next to no examples, and is pruned
    as [A02] does; one that has fewer than a hundred leaves afterwards is left as its author made
    it.
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
    """Merge small leaves upward, give internal topics a leaf ``Other``, sample large leaves down.

    Until nothing changes, a leaf with fewer than `min_examples` examples gives them to its
    parent and is deleted. Then the examples an internal topic has of its own go to a leaf
    ``Other`` below it, joining those of a topic that is already called so. Then each leaf is
    sampled down to `max_examples`. Children are met before their parents, so one pass over the
    sorted topics does all merging.

    Only a leaf ``Other`` may be left with fewer than `min_examples`: its parent is not a leaf,
    so nothing takes its examples further up; and the root, when everything ended there.

    Parameters
    ----------
    taxonomy : tree to prune; it is not changed
    min_examples : k, the fewest examples a leaf must have, at least 1
    max_examples : the most a leaf keeps, at least 1. Below `min_examples`, pruning the result
        again would merge its leaves
    random_state : seed of the sample, 0 for the default one

    Returns
    -------
    Taxonomy
        Examples at its leaves only, sorted; the same for any order of the examples given.

    Raises
    ------
    UserError
        If the examples were sampled before (by `read_dmoz`, by pruning) in a way that does not
        fit: fewer a topic than are wanted now, or with another seed. No uniform sample of all
        can be had from those any more.
    """
    if min_examples < 1 or max_examples < 1:
        raise UserError(
            f"pruning with {min_examples} to {max_examples} examples a leaf: both must be ≥ 1"
        )
    sampling = Sampling(max_examples, random_state)
    earlier = taxonomy.sampling
    wanted = Sampling(max(min_examples, max_examples), random_state)
    if earlier is not None and (
        earlier.size < wanted.size or earlier.random_state != random_state
    ):
        raise UserError(
            f"the examples were sampled before ({earlier.size} a topic, random_state "
            f"{earlier.random_state}); read them again with max_examples={wanted.size}, "
            f"random_state={random_state}"
        )
    own = _merge_small_leaves(taxonomy, min_examples)
    leaves = _move_to_other(own)
    return Taxonomy(
        {leaf: sorted(sampling.draw(urls)) for leaf, urls in leaves.items()},
        sampling if earlier or any(len(urls) > max_examples for urls in leaves.values()) else None,
    )


def _merge_small_leaves(taxonomy: Taxonomy, min_examples: int) -> dict[str, set[str]]:
    """Return the topics that remain with their own examples, children before parents."""
    given: dict[str, set[str]] = {}
    parents: set[str] = set()
    kept: dict[str, set[str]] = {}
    for topic in reversed(taxonomy.topics):  # sorted, so that a path follows its prefixes
        own = given.pop(topic, set())
        own.update(taxonomy.examples(topic))
        if topic in parents or len(own) >= min_examples or topic == ROOT:
            kept[topic] = own
            parents.add(parent(topic))
        else:
            given.setdefault(parent(topic), set()).update(own)
    return kept


def _move_to_other(own: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the leaves with their examples, those of internal topics in ``Other``."""
    internal = {parent(topic) for topic in own if topic != ROOT}
    leaves: dict[str, set[str]] = {}
    for topic, urls in own.items():
        leaf = topic
        while leaf in internal:  # a topic called Other may have topics below it
            leaf = child(leaf, OTHER)
        if urls:
            leaves.setdefault(leaf, set()).update(urls)
    return leaves
