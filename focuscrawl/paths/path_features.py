"""Features of the pages and links on a path through a site [C section 3.1].

A feature is a word together with the kind of place where the word occurs, such as a page's title
or a link's anchor. Further features describe the relation between two URLs and the shape of an
anchor text; these features have the kinds ``page`` and ``link``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.hashing import SparseRows, multi_arange, row_pointers
from focuscrawl.distiller import registered_domain
from focuscrawl.foundation.urls import host as host_of
from focuscrawl.page.words import tokenize, word_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.page import PageView


PAGE_KINDS = ("text", "title", "heading", "url", "page")
LINK_KINDS = ("anchor", "near", "above", "target", "link")
KINDS = (*PAGE_KINDS, *LINK_KINDS)
_BITS = 8  # lowest bits of a key, which hold the kind
_NO_KEYS = np.zeros(0, np.uint64)
DIGITS = re.compile(r"\d+")
_PIECES = re.compile(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]")
_LONGEST_SHAPE = 5


class UrlParts(NamedTuple):
    """The parts of a URL, such as host, path and query.

    Attributes
    ----------
    host : str
        Host with port.
    domain : str
        Registered domain, or the host if there is none.
    subdomain : str
        Part of the host before the domain.
    directory : str
        Path up to the last slash.
    rest : str
        Path and query.
    facts : tuple[str, ...]
        Features of the URL's form: depth, file type, personal home directory, query.
    """

    host: str
    domain: str
    subdomain: str
    directory: str
    rest: str
    facts: tuple[str, ...]


@lru_cache(maxsize=50_000)
def split_url(url: str) -> UrlParts:
    """Return the parts of a normalised URL."""
    host = host_of(url)
    rest = url.partition("://")[2][len(host) :] or "/"
    path, _, query = rest.partition("?")
    directory, _, name = path.rpartition("/")
    domain = registered_domain(host)
    stem, dot, ending = name.rpartition(".")
    facts = [f"depth{min(path.count('/'), 6)}"]
    facts.append(f"ends.{ending.lower()}" if dot and stem else "ends" if name else "ends/")
    if query:
        facts.append("query")
    if "/~" in path or "/%7e" in path.lower():
        facts.append("~")
        inside = path.lower().replace("%7e", "~").partition("/~")[2].strip("/")
        facts.append("~home" if "/" not in inside else "~inside")
    if stem.lower() in {"index", "home", "default", "welcome"} or not name:
        facts.append("index")
    return UrlParts(
        host,
        domain,
        host.removesuffix(domain).strip("."),
        directory,
        rest,
        tuple(f"place:{fact}" for fact in facts),
    )


@lru_cache(maxsize=50_000)
def url_words(url: str) -> str:
    """Return the words of a URL's subdomain, path and query, with digits replaced by 0."""
    parts = split_url(url)
    return DIGITS.sub("0", f"{parts.subdomain} {parts.rest}")


def relation(url: UrlParts, seen_from: UrlParts) -> str:
    """Return how a URL is related to another URL, such as ``below`` or ``away``."""
    if url.domain != seen_from.domain:
        return "away"
    if url.host != seen_from.host:
        return "domain"
    if url.directory == seen_from.directory:
        return "beside"
    if url.directory.startswith(seen_from.directory + "/"):
        return "below"
    if seen_from.directory.startswith(url.directory + "/"):
        return "above"
    return "host"


@lru_cache(maxsize=50_000)
def word_shape(text: str) -> str:
    """Return the shape of a short text: ``Aa Aa`` for a name, ``AA 0`` for a course number."""
    pieces = _PIECES.findall(text[:80])
    shapes = []
    for piece in pieces[:_LONGEST_SHAPE]:
        if piece[0].isdigit():
            shapes.append("0")
        elif not piece[0].isalpha():
            shapes.append(piece)
        elif piece.islower():
            shapes.append("a")
        elif piece.isupper():
            shapes.append("A" if len(piece) == 1 else "AA")
        else:
            shapes.append("Aa")
    return "".join(shapes) + ("+" if len(pieces) > _LONGEST_SHAPE else "")


class FeatureKeys(NamedTuple):
    """Distinct features of a page or of n links, as integer keys.

    Attributes
    ----------
    keys : NDArray[np.uint64] of shape (n_features,)
        Keys of the features.
    owner : NDArray[np.int64] of shape (n_features,)
        Row, in [0, n), that each feature belongs to.
    n : int
        Number of rows.
    """

    keys: NDArray[np.uint64]
    owner: Ints
    n: int


@dataclass(frozen=True)
class ReadingLimits:
    """Maximum number of words read from a page, and maximum number of words around a link."""

    words: int = 200
    near: int = 8


class PathFeatureReader:
    """Extracts the features of pages and of links.

    Parameters
    ----------
    reading : ReadingLimits
        Limits on the text that is read.
    keep_words : bool
        Keep all words in memory, which `names` needs.
    """

    def __init__(self, reading: ReadingLimits, *, keep_words: bool = False) -> None:
        self._reading = reading
        self._kept: dict[int, str] | None = {} if keep_words else None  # words by hash
        self._read: tuple[PageView, NDArray[np.uint64]] | None = None

    def names(self, observed: Sequence[NDArray[np.uint64]]) -> dict[int, str]:
        """Return the feature as a string ``kind word`` for every feature key."""
        assert self._kept is not None
        names = {}
        for key in np.unique(np.concatenate([_NO_KEYS, *observed])).tolist():
            names[key] = f"{KINDS[key % (1 << _BITS)]} {self._kept[key >> _BITS]}"
        return names

    def page(self, view: PageView, start: str | None) -> FeatureKeys:
        """Return the features of a page on the site with the start page `start`, as one row.

        If `start` is None, the result lacks the feature that tells how the page's URL is related
        to the start page.
        """
        text = _first(view.tokens, self._reading.words)
        n = len(view.headings)
        words, place = tokenize([view.title, *view.headings, url_words(view.url)])
        facts = self._page_facts(view, start)
        title, headings = np.searchsorted(place, [1, 1 + n]).tolist()
        lengths = [len(text), title, headings - title, len(words) - headings, len(facts)]
        kinds = np.repeat(np.arange(len(PAGE_KINDS)), lengths)
        keys = _feature_keys(kinds, self._hashes([*text, *words, *facts]))
        return FeatureKeys(keys, np.zeros(len(keys), np.int64), 1)

    def links(self, view: PageView, start: str, links: Ints) -> FeatureKeys:
        """Return the features of some links of a page, with one row per link.

        The argument `start` is the start page of the site, and `links` are indices into
        ``view.links``.
        """
        n = len(links)
        if not n:
            return FeatureKeys(_NO_KEYS, np.zeros(0, np.int64), 0)
        words = self._words(view)
        left, right = view.links.left[links], view.links.right[links]
        first = np.searchsorted(view.token_leaf, left)
        last = np.searchsorted(view.token_leaf, right, side="right")
        last = np.minimum(last, first + 30)
        begin = np.maximum(first - self._reading.near, 0)
        end = np.minimum(last + self._reading.near, len(words))
        near = multi_arange(
            np.concatenate([begin, last]), np.concatenate([first - begin, end - last])
        )
        anchors = [view.links.anchors[i] for i in links.tolist()]
        of_anchors, link_of_word = tokenize([DIGITS.sub("0", anchor) for anchor in anchors])
        above, under = self._above(view, left)
        to = [view.links.urls[i] for i in links.tolist()]
        of_targets, leading = tokenize([url_words(url) for url in to])
        facts = self._link_facts(view, start, to, anchors)
        of_kinds: list[NDArray[np.uint64]] = [
            self._hashes(of_anchors),
            words[near],
            above,
            self._hashes(of_targets),
            self._hashes([fact for row in facts for fact in row]),
        ]
        rows = np.arange(n)
        owner: list[NDArray[np.integer]] = [
            link_of_word,
            np.repeat(rows, first - begin),
            np.repeat(rows, end - last),
            under,
            leading,
            np.repeat(rows, [len(row) for row in facts]),
        ]
        kinds = np.repeat(np.arange(len(PAGE_KINDS), len(KINDS)), [len(each) for each in of_kinds])
        keys = _feature_keys(kinds, np.concatenate(of_kinds))
        return FeatureKeys(keys, np.concatenate(owner).astype(np.int64), n)

    def _hashes(self, words: Sequence[str]) -> NDArray[np.uint64]:
        hashes = word_hashes(words)
        if self._kept is not None:
            self._kept.update(zip(hashes.tolist(), words, strict=True))
        return hashes

    def _words(self, view: PageView) -> NDArray[np.uint64]:
        """Return the hashes of a page's words; those of the last page are cached."""
        if self._read is None or self._read[0] is not view:
            self._read = view, self._hashes(view.tokens)
        return self._read[1]

    def _above(self, view: PageView, left: NDArray[np.int32]) -> tuple[NDArray[np.uint64], Ints]:
        """Return the words of the heading above each link, and the index of the link."""
        under = np.searchsorted(view.heading_leaf, left, side="right") - 1
        there: Ints = np.flatnonzero(under >= 0)
        if not len(there):
            return _NO_KEYS, there
        words, heading = tokenize(view.headings)
        numbers = self._hashes(words)
        indptr = row_pointers(np.bincount(heading, minlength=len(view.headings)))
        starts = indptr[under[there]]
        lengths = indptr[under[there] + 1] - starts
        return numbers[multi_arange(starts, lengths)], np.repeat(there, lengths)

    def _page_facts(self, view: PageView, start: str | None) -> list[str]:
        url = split_url(view.url)
        here = [] if start is None else [f"start:{relation(url, split_url(start))}"]
        return [
            "any",
            *here,
            f"links:{len(view.links).bit_length()}",
            f"words:{len(view.tokens).bit_length()}",
            *url.facts,
        ]

    def _link_facts(
        self, view: PageView, start: str, to: list[str], anchors: list[str]
    ) -> list[list[str]]:
        """Return features of links from their URLs and from the shapes of their anchors."""
        own, front = split_url(view.url), split_url(start)
        crowd = Counter(split_url(url)[:4] for url in set(view.links.urls))
        facts = []
        for url, anchor in zip(to, anchors, strict=True):
            parts = split_url(url)
            facts.append(
                [
                    "any",
                    f"shape:{word_shape(anchor)}",
                    f"start:{relation(parts, front)}",
                    f"page:{relation(parts, own)}",
                    f"crowd:{crowd[parts[:4]].bit_length()}",
                    *parts.facts,
                ]
            )
        return facts


class FeatureVocabulary:
    """The features of a trained model, as an array of strings ``kind word``."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        kinds, words = zip(*(name.split(" ", 1) for name in names), strict=True)
        self._kinds = np.array([KINDS.index(kind) for kind in kinds], np.int64)
        keys = _feature_keys(self._kinds, word_hashes(words))
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, observed: FeatureKeys) -> SparseRows:
        """Return for each row the indices of its features in the vocabulary, ascending."""
        at = np.minimum(np.searchsorted(self._keys, observed.keys), len(self._keys) - 1)
        known = self._keys[at] == observed.keys
        width = len(self._keys)
        cells = observed.owner[known] * width + self._order[at[known]]
        cells.sort()
        distinct = np.ones(len(cells), np.bool_)
        np.not_equal(cells[1:], cells[:-1], out=distinct[1:])
        row, number = np.divmod(cells[distinct], width)
        return SparseRows(
            number.astype(np.int32), row_pointers(np.bincount(row, minlength=observed.n))
        )

    def values(self, rows: SparseRows) -> Floats:
        """Return the value of each feature: n^-1/2 if n features of the row have the same kind.

        With these values, the features of each kind form a vector of length 1. The words of a text
        are correlated. With a value of 1 per word, a hundred words of a page would outweigh the
        few words of an anchor text.
        """
        row = np.repeat(np.arange(len(rows)), rows.lengths)
        cell = row * len(KINDS) + self._kinds[rows.indices]
        values: Floats = np.bincount(cell)[cell] ** -0.5
        return values


def _feature_keys(kinds: Ints, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the keys of words, as hashed by `word_hashes`, of the given `KINDS`."""
    return words << np.uint64(_BITS) | kinds.astype(np.uint64)


def _first(words: list[str], n: int) -> list[str]:
    # the first n distinct words are mostly among the first 4 n
    found = dict.fromkeys(words[: 4 * n])
    if len(found) < n:
        found = dict.fromkeys(words)
    return list(found)[:n]
