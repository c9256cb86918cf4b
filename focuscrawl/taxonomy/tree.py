"""The topic tree: topics, their children, and example URLs of each."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.taxonomy.nearest import nearest
from focuscrawl.taxonomy.topic_path import (
    DEEPEST,
    OTHER,
    ROOT,
    child,
    normalise,
    parent,
    too_deep,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from focuscrawl.taxonomy.labels import Label
    from focuscrawl.taxonomy.sampling import Sampling


class Taxonomy:
    """A tree of topics with example URLs (METHODS 1). Not changed once made.

    Parameters
    ----------
    examples : example URLs of each topic's own, by topic path; topics above those named are
        added without examples. A URL counts once in a topic.
    sampling : how large topics were cut down while the examples were read, if any was

    Attributes
    ----------
    topics : every topic, sorted, the root ``/`` included; an empty tree has none
    leaves : the topics without children, sorted; the root, if it is the only topic
    sampling : as given

    Raises
    ------
    UserError
        If a topic has more than `DEEPEST` levels.

    Notes
    -----
    Methods take topics as users spell them (see `normalise`).
    """

    def __init__(
        self, examples: Mapping[str, Iterable[str]], sampling: Sampling | None = None
    ) -> None:
        self.sampling = sampling
        self._examples: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        for topic, urls in examples.items():
            path = normalise(topic)
            if too_deep(path):
                raise UserError(
                    f"the topic {path[:60]}... has {path.count('/'):,} levels; "
                    f"name topics with {DEEPEST} at most"
                )
            known = self._examples.get(path)
            self._examples[path] = list(dict.fromkeys([*known, *urls] if known else urls))
        for path in list(self._examples):
            above = parent(path)
            while above not in self._examples:
                self._examples[above] = []
                above = parent(above)
        for path in self.topics:
            if path != ROOT:
                self._children.setdefault(parent(path), []).append(path)

    @classmethod
    def from_labels(cls, labels: Iterable[Label]) -> Taxonomy:
        """Make the tree of a label table; only rows of the split ``train`` are examples.

        Parameters
        ----------
        labels : rows of the table; those of other splits are left out, topics they alone
            name too: nothing could be learned of them

        Raises
        ------
        UserError
            If there are labels, but none to learn from.
        """
        examples: dict[str, list[str]] = {}
        others: set[str] = set()
        for label in labels:
            if label.split == "train":
                examples.setdefault(label.topic, []).append(label.url)
            else:
                others.add(label.split)
        if others and not examples:
            raise UserError(
                f"no label has the split train, only {', '.join(sorted(others))}; "
                "name the rows to learn from train"
            )
        return cls(examples)

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Every topic, sorted, the root included."""
        return tuple(sorted(self._examples))

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The topics without children, sorted; an empty tree has none."""
        return tuple(filter(self._is_leaf, self.topics))

    def _is_leaf(self, path: str) -> bool:
        return path in self._examples and path not in self._children

    def __contains__(self, topic: object) -> bool:
        return isinstance(topic, str) and normalise(topic) in self._examples

    def __repr__(self) -> str:
        examples = sum(map(len, self._examples.values()))
        return f"<Taxonomy: {len(self.leaves)} leaves, {examples} examples>"

    def examples(self, topic: str) -> list[str]:
        """Return the topic's own example URLs, without those below it; none if it is unknown."""
        return list(self._examples.get(normalise(topic), ()))

    def children(self, topic: str) -> list[str]:
        """Return the topics right below, sorted; none below a leaf or an unknown topic."""
        return list(self._children.get(normalise(topic), ()))

    def descendants(self, topic: str) -> list[str]:
        """Return every topic below, a topic before those below it; without the topic itself."""
        below: list[str] = []
        waiting = self.children(topic)[::-1]
        while waiting:
            path = waiting.pop()
            below.append(path)
            waiting.extend(reversed(self._children.get(path, ())))
        return below

    def leaves_under(self, *topics: str) -> list[str]:
        """Return the leaves at or below any of `topics`, sorted; [] when all are unknown."""
        found: set[str] = set()
        for topic in map(normalise, topics):
            found.update(filter(self._is_leaf, [topic, *self.descendants(topic)]))
        return sorted(found)

    def leaf_of(self, topic: str) -> str | None:
        """Return the leaf of a pruned tree that pages labelled `topic` belong to.

        A topic that is not in the tree belongs where pruning would have put it: to its nearest
        ancestor that is. If that has topics below it, the leaf is its ``Other``.

        Returns
        -------
        path of the leaf; None if the topic ends in an internal topic without ``Other``, as
        any unknown first component does
        """
        path = normalise(topic)
        while path not in self._examples and path != ROOT:
            path = parent(path)
        while path in self._children:
            path = child(path, OTHER)
        return path if self._is_leaf(path) else None

    def nearest(self, topic: str, n: int = 3) -> list[str]:
        """Return up to `n` known topics with a name like `topic`, best first ('did you mean')."""
        return nearest(normalise(topic), self.topics, n)
