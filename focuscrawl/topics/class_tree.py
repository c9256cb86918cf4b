"""The classes of a trained critic as a tree, and marking them in a definition [F99 section 2]."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.taxonomy import ROOT, Taxonomy, ancestors, lies_under
from focuscrawl.taxonomy.topic_path import parent

if TYPE_CHECKING:
    from focuscrawl.critic.trained import TrainedCritic
    from focuscrawl.topics.definition import TopicDefinition


def class_tree(trained: TrainedCritic) -> Taxonomy:
    """Return the classes of a critic, with the pages that each was learned from."""
    known: dict[str, list[str]] = {path: [] for path in trained.model.classes}
    for url, path in trained.examples:
        known.setdefault(path, []).append(url)
    return Taxonomy(known)


def pages_below(classes: Taxonomy) -> dict[str, int]:
    """Return how many examples each class has, those below it included."""
    counts: dict[str, int] = defaultdict(int)
    for path in reversed(classes.topics):  # what is below comes first
        counts[path] += len(classes.examples(path))
        if path != ROOT:
            counts[path.rpartition("/")[0] or ROOT] += counts[path]
    return counts


def marking(definition: TopicDefinition, path: str) -> TopicDefinition:
    """Return the definition with one more class marked, and all below it with it."""
    kept = [each for each in definition.topics if not lies_under(each, [path])]
    return replace(definition, topics=(*kept, path))


def unmarking(definition: TopicDefinition, path: str, classes: Taxonomy) -> TopicDefinition:
    """Return the definition with a class and all below it marked no longer.

    Where a class above is marked, the others below that are marked in its stead.

    Raises
    ------
    UserError
        Nothing would be marked any more.
    """
    topics: list[str] = []
    for each in definition.topics:
        if not lies_under(path, [each]):
            topics += [] if lies_under(each, [path]) else [each]
            continue
        # what is beside the way from the marked class down to it stays marked
        for above in [*ancestors(path), path]:
            if above != each and lies_under(above, [each]):
                beside = classes.children(parent(above))
                topics += [other for other in beside if other != above]
    if not topics:
        raise UserError(f"{path} is all that is marked: mark another class first")
    return replace(definition, topics=tuple(topics))
