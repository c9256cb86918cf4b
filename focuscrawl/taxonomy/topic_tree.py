"""Classes and functions for topic trees with example URLs, topic paths, and label tables."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import read_csv_rows

ROOT = "/"
OTHER = "Other"
"""Name of the child with the own examples of an internal topic [A02 section 3.1]."""
MAX_LEVELS = 100
"""Maximum number of levels of a topic, because each topic also creates all its ancestors."""

_MIN_SIMILARITY = 0.6  # difflib's default threshold for a close match


def normalise(topic: str) -> str:
    """Normalise a topic path from a user, a table or a Dmoz dump.

    A normalised path has a leading slash, no trailing slash, no empty components and no spaces
    around components. Dmoz paths start with the root ``Top`` and without a slash, so ``Top/Arts``
    becomes ``/Arts``. The component ``Top`` of a path with a leading slash is kept, so that
    normalisation is idempotent.
    """
    parts = [part for part in map(str.strip, topic.split("/")) if part]
    if parts and parts[0] == "Top" and not topic.lstrip().startswith("/"):
        del parts[0]
    return ROOT + "/".join(parts)


def parse_topics(text: str) -> tuple[str, ...]:
    """Return the normalised topic paths of a comma-separated text."""
    return tuple(normalise(part) for part in text.split(",") if part.strip())


def is_too_deep(path: str) -> bool:
    """Return whether a normalised `path` has more than `MAX_LEVELS` levels."""
    return path.count("/") > MAX_LEVELS


def parent(path: str) -> str:
    """Return the topic above a normalised `path`; the root is its own parent."""
    return path[: path.rfind("/")] or ROOT


def child(path: str, name: str) -> str:
    """Return the child `name` of a normalised `path`."""
    return f"{path.rstrip('/')}/{name}"


def ancestors(path: str) -> list[str]:
    """Return the topics above a normalised `path`, root first.

    ``ancestors("/A/B/C")`` is ``["/", "/A", "/A/B"]``. The topic features of a page are the path
    of its class and the ancestors of this path [A02 section 2.2].
    """
    above: list[str] = []
    while path != ROOT:
        path = parent(path)
        above.append(path)
    return above[::-1]


def lies_under(path: str, topics: Iterable[str]) -> bool:
    """Return whether the topic `path` is one of `topics` or a descendant of one of `topics`."""
    return any(f"{path}/".startswith(f"{topic.rstrip('/')}/") for topic in topics)


class Sampling(NamedTuple):
    """Samples the example URLs of large topics uniformly, by keeping the smallest hashes.

    If a hash is among the k smallest hashes of a union of sets, it is also among the k smallest
    hashes of its own set. So a topic's URLs can be sampled during reading, and again after topics
    are merged. The result is the same as that of sampling once at the end.

    Attributes
    ----------
    size : maximum number of examples of a topic
    random_state : seed of the hash function
    """

    size: int
    random_state: int

    def draw(self, urls: Collection[str]) -> list[str]:
        """Return a sample of up to `size` distinct `urls`, independent of the order of `urls`."""
        if len(urls) <= self.size:
            return list(urls)
        key = str(self.random_state).encode()

        def rank(url: str) -> tuple[bytes, str]:
            # damaged tables may have lone surrogates, which UTF-8 cannot encode
            encoded = url.encode("utf-8", "surrogatepass")
            return blake2b(encoded, digest_size=8, key=key).digest(), url

        return heapq.nsmallest(self.size, urls, key=rank)


class Label(NamedTuple):
    """One row of a label table, with the URL and the topic of a page.

    Attributes
    ----------
    url : URL of the example, as in the table
    topic : normalised topic path
    split : ``train`` for training, ``test`` for checking a critic
    """

    url: str
    topic: str
    split: str


def read_labels(path: str | Path) -> list[Label]:
    """Read a label table, a CSV file with the header ``url,topic[,split]``.

    Parameters
    ----------
    path : UTF-8 file, may be gzipped; other columns are ignored. Rows without ``split`` are for
        training

    Raises
    ------
    UserError
        If the file cannot be read or decoded, lacks a column, or has no rows or incomplete rows.
    """
    labels = list(iterate_labels(path))
    if not labels:
        raise UserError(f"{path}: no rows below the header; add rows of url,topic[,split]")
    return labels


def iterate_labels(path: str | Path) -> Iterator[Label]:
    """Yield the rows of a label table one by one; see `read_labels`."""
    for number, row in read_csv_rows(path, ["url", "topic"], optional=["split"]):
        for column in ("topic", "url"):
            if not row[column]:
                raise UserError(
                    f"{path}: row {number} has no {column}; add the {column} or remove the row"
                )
        yield Label(row["url"], normalise(row["topic"]), row["split"] or "train")


class Taxonomy:
    """An immutable tree of topics with example URLs (methods.md 1).

    The methods normalise all topic paths in their arguments by `normalise`.

    Parameters
    ----------
    examples : own example URLs of each topic, by topic path; duplicates are removed. Ancestors are
        added without examples
    sampling : sampling of large topics during reading, if a topic was sampled

    Attributes
    ----------
    topics : all topics, sorted, with the root ``/``; empty for an empty tree
    leaves : topics without children, sorted; the root if there is no other topic

    Raises
    ------
    UserError
        If a topic has more than `MAX_LEVELS` levels.
    """

    def __init__(
        self, examples: Mapping[str, Iterable[str]], sampling: Sampling | None = None
    ) -> None:
        self.sampling = sampling
        self._examples: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        for topic, urls in examples.items():
            path = normalise(topic)
            if is_too_deep(path):
                raise UserError(
                    f"the topic {path[:60]}... has {path.count('/'):,} levels; "
                    f"use at most {MAX_LEVELS} levels"
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
        """Return the topic tree of the label rows with the split ``train``; ignore other rows.

        Raises
        ------
        UserError
            If all labels are of other splits.
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
                f"all labels are of the split {', '.join(sorted(others))}; give training rows "
                "the split train"
            )
        return cls(examples)

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """All topic paths of the tree, sorted, including the root."""
        return tuple(sorted(self._examples))

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The paths of all topics without children, sorted."""
        return tuple(filter(self._is_leaf, self.topics))

    def _is_leaf(self, path: str) -> bool:
        return path in self._examples and path not in self._children

    def __contains__(self, topic: object) -> bool:
        return isinstance(topic, str) and normalise(topic) in self._examples

    def __repr__(self) -> str:
        examples = sum(map(len, self._examples.values()))
        return f"<Taxonomy: {len(self.leaves)} leaves, {examples} examples>"

    def examples(self, topic: str) -> list[str]:
        """Return the example URLs of a topic itself, without the examples of its descendants."""
        return list(self._examples.get(normalise(topic), ()))

    def children(self, topic: str) -> list[str]:
        """Return the sorted paths of a topic's children; [] for a leaf or an unknown topic."""
        return list(self._children.get(normalise(topic), ()))

    def descendants(self, topic: str) -> list[str]:
        """Return the paths of all descendants of a topic, parents before children."""
        below: list[str] = []
        pending = self.children(topic)[::-1]
        while pending:
            path = pending.pop()
            below.append(path)
            pending.extend(reversed(self._children.get(path, ())))
        return below

    def leaves_under(self, *topics: str) -> list[str]:
        """Return the sorted paths of all leaves at or below the given topics."""
        found: set[str] = set()
        for topic in map(normalise, topics):
            found.update(filter(self._is_leaf, [topic, *self.descendants(topic)]))
        return sorted(found)

    def leaf_of(self, topic: str) -> str | None:
        """Return the leaf of a pruned tree that represents the original topic `topic`.

        Pruning merges a small topic into its nearest remaining ancestor, and moves the examples of
        an internal topic to its child ``Other``. The result is None if the internal topic has no
        child ``Other``.
        """
        path = normalise(topic)
        while path not in self._examples and path != ROOT:
            path = parent(path)
        while path in self._children:
            path = child(path, OTHER)
        return path if self._is_leaf(path) else None

    def nearest(self, topic: str, n: int = 3) -> list[str]:
        """Return up to `n` topics of the tree with names similar to a given name, best first."""
        return _nearest(normalise(topic), self.topics, n)


def _nearest(topic: str, known: Iterable[str], n: int) -> list[str]:
    """Return up to `n` of the `known` paths that are most similar to `topic`, best first.

    Similarity is the maximum over whole paths and last components, so a long path with a typing
    error and a bare name both find their topic. Case is ignored, and spaces equal underscores.
    """
    whole = SequenceMatcher(b=_normalise_case(topic), autojunk=False)
    last = SequenceMatcher(b=_normalise_case(topic.rpartition("/")[2]), autojunk=False)
    scored = []
    for path in known:
        if path != ROOT:
            folded = _normalise_case(path)
            ratios = (_similarity(whole, folded), _similarity(last, folded.rpartition("/")[2]))
            if max(ratios) >= _MIN_SIMILARITY:
                # ties are broken by the other ratio, then by the length of the path
                scored.append((-max(ratios), -min(ratios), len(path), path))
    return [path for *_, path in sorted(scored)[:n]]


def _normalise_case(path: str) -> str:
    return path.casefold().replace(" ", "_")


def _similarity(matcher: SequenceMatcher[str], text: str) -> float:
    """Return the similarity of `text`, or 0 if a cheap upper bound is below the threshold."""
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < _MIN_SIMILARITY or matcher.quick_ratio() < _MIN_SIMILARITY:
        return 0.0
    return matcher.ratio()
