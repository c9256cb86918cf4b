"""Topic trees with example URLs, topic paths, and tables of labels."""

from __future__ import annotations

import heapq
from difflib import SequenceMatcher
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.user_input import read_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path


ROOT = "/"
OTHER = "Other"
"""Name of the leaf that takes the examples an internal topic has of its own [A02 section 3.1]."""
MAX_LEVELS = 100
"""The most levels; all topics above one are topics too, so each costs the length of its path."""


_MIN_SIMILARITY = 0.6  # difflib's own threshold for a close match


def normalise(topic: str) -> str:
    """Write a topic the one way the taxonomy knows it.

    A leading slash, no trailing one, no empty components, no blanks around components. Dmoz
    writes its root ``Top`` and no leading slash: ``Top/Arts`` is ``/Arts``. A path with a
    leading slash keeps a component ``Top``, so that normalising twice changes nothing.

    Parameters
    ----------
    topic : path as a user, a table or a Dmoz dump spells it
    """
    parts = [part for part in map(str.strip, topic.split("/")) if part]
    if parts and parts[0] == "Top" and not topic.lstrip().startswith("/"):
        del parts[0]
    return ROOT + "/".join(parts)


def parse_topics(text: str) -> tuple[str, ...]:
    """Return the normalised paths that are written with commas between."""
    return tuple(normalise(part) for part in text.split(",") if part.strip())


def is_too_deep(path: str) -> bool:
    """Return whether a normalised `path` has more levels than a taxonomy may have."""
    return path.count("/") > MAX_LEVELS


def parent(path: str) -> str:
    """Return the topic above a normalised `path`; the root is its own parent."""
    return path[: path.rfind("/")] or ROOT


def child(path: str, name: str) -> str:
    """Return the topic called `name` right below a normalised `path`."""
    return f"{path.rstrip('/')}/{name}"


def ancestors(path: str) -> list[str]:
    """Return the topics above a normalised `path`, root first, without `path` itself.

    ``ancestors("/A/B/C")`` is ``["/", "/A", "/A/B"]``: with the path itself these are the
    topic features of a page [A02 section 2.2].
    """
    above: list[str] = []
    while path != ROOT:
        path = parent(path)
        above.append(path)
    return above[::-1]


def lies_under(path: str, topics: Iterable[str]) -> bool:
    """Return whether `path` is one of `topics` or below one; all are normalised."""
    return any(f"{path}/".startswith(f"{topic.rstrip('/')}/") for topic in topics)


class Sampling(NamedTuple):
    """How large topics are cut down: of their URLs, those with the smallest hashes are kept.

    The k smallest hashes of a union are among the k smallest of its parts. So a topic may be cut
    down while it is read, merged into its parent and cut again: the sample is that of cutting once
    at the end, uniform whatever the order of reading and merging.

    Attributes
    ----------
    size : examples kept of a topic, at most
    random_state : seed of the hash that decides which
    """

    size: int
    random_state: int

    def draw(self, urls: Collection[str]) -> list[str]:
        """Return `size` of `urls`, or all of them when they are no more.

        Parameters
        ----------
        urls : distinct URLs, in any order: it does not change which are drawn
        """
        if len(urls) <= self.size:
            return list(urls)
        key = str(self.random_state).encode()

        def rank(url: str) -> tuple[bytes, str]:
            # lone surrogates (a mangled table) have no UTF-8 of their own
            encoded = url.encode("utf-8", "surrogatepass")
            return blake2b(encoded, digest_size=8, key=key).digest(), url

        return heapq.nsmallest(self.size, urls, key=rank)


class Label(NamedTuple):
    """One row of a label table.

    Attributes
    ----------
    url : the example, as the table spells it
    topic : normalised topic path
    split : ``train``: an example to learn from; ``test``: one to check a critic with
    """

    url: str
    topic: str
    split: str


def read_labels(path: str | Path) -> list[Label]:
    """Read a label table: CSV with a header ``url,topic[,split]``, plain or gzipped.

    Parameters
    ----------
    path : UTF-8 file; columns in any order, others are ignored. Without a ``split``, or where
        it is empty, a row is for training.

    Raises
    ------
    UserError
        If the file cannot be read or decoded, lacks a column, has no rows or an incomplete one.
    """
    labels = list(iterate_labels(path))
    if not labels:
        raise UserError(f"{path}: no rows below the header; give it rows of url,topic[,split]")
    return labels


def iterate_labels(path: str | Path) -> Iterator[Label]:
    """Yield the rows of a label table one by one; see `read_labels`."""
    for number, row in read_rows(path, ["url", "topic"], optional=["split"]):
        for column in ("topic", "url"):
            if not row[column]:
                raise UserError(
                    f"{path}: row {number} has no {column}; fill it in or leave the row out"
                )
        yield Label(row["url"], normalise(row["topic"]), row["split"] or "train")


class Taxonomy:
    """A tree of topics with example URLs (methods 1). Not changed once made.

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
        If a topic has more than `MAX_LEVELS` levels.

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
            if is_too_deep(path):
                raise UserError(
                    f"the topic {path[:60]}... has {path.count('/'):,} levels; "
                    f"name topics with {MAX_LEVELS} at most"
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
        pending = self.children(topic)[::-1]
        while pending:
            path = pending.pop()
            below.append(path)
            pending.extend(reversed(self._children.get(path, ())))
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
        return _nearest(normalise(topic), self.topics, n)


def _nearest(topic: str, known: Iterable[str], n: int) -> list[str]:
    """Return up to `n` of `known` that are most like `topic`, best first.

    Two paths are as alike as their whole paths or their last components are, whichever is
    more: both a slip of the hand in a long path and a bare name find their topic. Upper and
    lower case, blanks and underscores are not told apart.

    Parameters
    ----------
    topic, known : normalised paths
    n : how many to return, at most; fewer when fewer are alike
    """
    whole = SequenceMatcher(b=_normalise_case(topic), autojunk=False)
    last = SequenceMatcher(b=_normalise_case(topic.rpartition("/")[2]), autojunk=False)
    scored = []
    for path in known:
        if path != ROOT:
            folded = _normalise_case(path)
            ratios = (_similarity(whole, folded), _similarity(last, folded.rpartition("/")[2]))
            if max(ratios) >= _MIN_SIMILARITY:
                # among equals the other ratio decides, then the shorter path
                scored.append((-max(ratios), -min(ratios), len(path), path))
    return [path for *_, path in sorted(scored)[:n]]


def _normalise_case(path: str) -> str:
    return path.casefold().replace(" ", "_")


def _similarity(matcher: SequenceMatcher[str], text: str) -> float:
    """Return the likeness of `text`, or 0 when a cheap upper bound already rules it out."""
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < _MIN_SIMILARITY or matcher.quick_ratio() < _MIN_SIMILARITY:
        return 0.0
    return matcher.ratio()
