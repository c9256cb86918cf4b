"""What is observed of the pages and links of a path [C 3.1].

A feature is a word in a place of its own kind: in the page's title, in a link's anchor, near it.
Relations and shapes, which no word says, are words of the kinds ``page`` and ``link``.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.hashing import WordHashes
from focuscrawl.apprentice.rows import Rows, pointers, ranges
from focuscrawl.page.tokens import tokenize
from focuscrawl.paths.places import Place, place_of, relation, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.page import PageView

PAGE_KINDS = ("text", "title", "heading", "url", "page")
LINK_KINDS = ("anchor", "near", "above", "target", "link")
KINDS = (*PAGE_KINDS, *LINK_KINDS)
_KIND = {kind: np.uint64(i) for i, kind in enumerate(KINDS)}
_BITS = np.uint64(8)  # of a key that hold the kind
_KEY_BITS = np.uint64(40)  # of a key: those of the kind, and 32 of a word
_KEY = (np.uint64(1) << _KEY_BITS) - np.uint64(1)
_NO_KEYS = np.zeros(0, np.uint64)

_DIGITS = re.compile(r"\d+")


class Observed(NamedTuple):
    """Features of a page, or of n links, by their keys; each at most once a row.

    Attributes
    ----------
    keys : uint64, row after row
    indptr : int64 (n + 1,), row i has ``keys[indptr[i]:indptr[i + 1]]``
    """

    keys: NDArray[np.uint64]
    indptr: NDArray[np.int64]


@dataclass(frozen=True)
class Reading:
    """How much is read.

    Attributes
    ----------
    words : distinct words of a page's text, the first
    near : tokens on either side of a link
    """

    words: int = 200
    near: int = 8


class PathReader:
    """Reads the features of pages and links.

    Parameters
    ----------
    reading : how much is read
    forgets : whether the words of many pages may be forgotten again; `names` needs them all
    """

    def __init__(self, reading: Reading, *, forgets: bool = True) -> None:
        self._reading = reading
        self._hashes = WordHashes() if forgets else WordHashes(most=sys.maxsize)
        self._read: tuple[PageView, NDArray[np.uint64]] | None = None

    def names(self, places: Sequence[NDArray[np.uint64]]) -> dict[int, str]:
        """Return ``kind word`` of every key; only for a reader that forgets nothing."""
        words = self._hashes.words()
        keys = np.unique(np.concatenate([_NO_KEYS, *places]))
        kind = (keys & np.uint64((1 << 8) - 1)).tolist()
        return {
            key: f"{KINDS[k]} {words[key >> 8]}"
            for key, k in zip(keys.tolist(), kind, strict=True)
        }

    def page(self, view: PageView, start: str | None) -> Observed:
        """Return the features of a page on the site that begins at `start`: one row.

        Without a start nothing is said of where in a site it is.
        """
        text = _key("text", self._words(view))
        _, first = np.unique(text, return_index=True)
        text = text[np.sort(first)[: self._reading.words]]
        parts = [
            text,
            self._texts("title", [view.title])[0],
            self._texts("heading", view.headings)[0],
            self._texts("url", [_words_of(view.url)])[0],
            self._keys("page", self._facts(view, start)),
        ]
        keys = np.unique(np.concatenate(parts))
        return Observed(keys, pointers(np.array([len(keys)])))

    def links(self, view: PageView, start: str, links: NDArray[np.int64]) -> Observed:
        """Return the features of some of a page's links, one row each.

        Parameters
        ----------
        links : int64 (n,), which of ``view.links``
        """
        if not len(links):
            return Observed(_NO_KEYS, pointers(np.zeros(0, np.int64)))
        n = len(links)
        words = self._words(view)
        left, right = view.links.left[links], view.links.right[links]
        first = np.searchsorted(view.token_leaf, left)
        last = np.searchsorted(view.token_leaf, right, side="right")
        last = np.minimum(last, first + 30)
        begin = np.maximum(first - self._reading.near, 0)
        end = np.minimum(last + self._reading.near, len(words))
        parts = [
            (_key("near", words[ranges(begin, first - begin)]), first - begin),
            (_key("near", words[ranges(last, end - last)]), end - last),
        ]
        urls = view.links.urls
        chosen = links.tolist()
        anchors = _DIGITS.sub("0", "\0".join([view.links.anchors[i] for i in chosen])).split("\0")
        parts += [
            self._texts("anchor", anchors),
            self._above(view, left),
            self._texts("target", [_words_of(urls[i]) for i in chosen]),
        ]
        facts = self._link_facts(view, start, chosen)
        parts.append(
            (
                self._keys("link", [each for row in facts for each in row]),
                np.array([len(row) for row in facts], np.int64),
            )
        )
        owner = np.concatenate([np.repeat(np.arange(n), lengths) for _, lengths in parts])
        keys = np.concatenate([keys for keys, _ in parts])
        found = np.unique(owner.astype(np.uint64) << _KEY_BITS | keys)
        owner = (found >> _KEY_BITS).astype(np.int64)
        return Observed(found & _KEY, pointers(np.bincount(owner, minlength=n)))

    def _words(self, view: PageView) -> NDArray[np.uint64]:
        """Return the numbers of a page's words; its links ask for them after the page did."""
        if self._read is None or self._read[0] is not view:
            self._read = view, self._hashes(view.tokens)
        return self._read[1]

    def _keys(self, kind: str, words: Sequence[str]) -> NDArray[np.uint64]:
        return _key(kind, self._hashes(words))

    def _texts(self, kind: str, texts: list[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        tokens, owner = tokenize(texts)
        return self._keys(kind, tokens), np.bincount(owner, minlength=len(texts))

    def _above(
        self, view: PageView, left: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return the words of the heading that each link stands under."""
        if not len(view.headings):
            return _NO_KEYS, np.zeros(len(left), np.int64)
        keys, lengths = self._texts("above", view.headings)
        rows = Rows(np.arange(len(keys), dtype=np.int32), pointers(lengths))
        under = np.searchsorted(view.heading_leaf, left, side="right") - 1
        taken = rows.take(np.maximum(under, 0))
        counts = np.where(under >= 0, taken.lengths, 0)
        kept = np.repeat(under >= 0, taken.lengths)
        return keys[taken.indices[kept]], counts

    def _facts(self, view: PageView, start: str | None) -> list[str]:
        place = place_of(view.url)
        here = [] if start is None else [f"start:{relation(place, place_of(start))}"]
        return [
            "any",
            *here,
            f"links:{_size(len(view.links))}",
            f"words:{_size(len(view.tokens))}",
            *(f"place:{fact}" for fact in place.facts),
        ]

    def _link_facts(self, view: PageView, start: str, links: list[int]) -> list[list[str]]:
        own, front = place_of(view.url), place_of(start)
        urls = view.links.urls
        places = [place_of(urls[i]) for i in links]
        crowd: dict[tuple[str, str], int] = {}
        for url in set(urls):
            place = place_of(url)
            at = (place.host, place.directory)
            crowd[at] = crowd.get(at, 0) + 1
        return [
            [
                "any",
                f"start:{relation(place, front)}",
                f"page:{relation(place, own)}",
                f"crowd:{_size(crowd[place.host, place.directory])}",
                f"shape:{shape_of(view.links.anchors[i])}",
                *(f"place:{fact}" for fact in place.facts),
            ]
            for i, place in zip(links, places, strict=True)
        ]


class Vocabulary:
    """The features that a model knows, by number.

    Parameters
    ----------
    names : ``kind word`` of each
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        hashes = WordHashes()
        kinds, words = zip(*(name.split(" ", 1) for name in names), strict=True)
        keys = hashes(words) << _BITS | np.array([_KIND[kind] for kind in kinds])
        self._kinds = np.array([_KIND[kind] for kind in kinds], np.int64)
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, observed: Observed) -> Rows:
        """Return the numbers of the features that are known."""
        at = np.minimum(np.searchsorted(self._keys, observed.keys), len(self._keys) - 1)
        known = self._keys[at] == observed.keys
        kept = np.concatenate([[0], np.cumsum(known)])
        return Rows(
            self._order[at[known]].astype(np.int32), kept[observed.indptr].astype(np.int64)
        )

    def values(self, rows: Rows) -> NDArray[np.float64]:
        """Return what each feature of rows counts, float64 (nnz,): n^-1/2 if n are of its kind.

        So each kind of a page or a link has a length of 1 whatever the number of its words. The
        words of a text hang together: were each to count 1, a hundred of them would speak with
        a hundred voices, against the two or three of an anchor.
        """
        row = np.repeat(np.arange(len(rows)), rows.lengths)
        cell = row * len(KINDS) + self._kinds[rows.indices]
        values: NDArray[np.float64] = np.bincount(cell)[cell] ** -0.5
        return values


def _key(kind: str, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return words << _BITS | _KIND[kind]


def _size(n: int) -> int:
    """Return n on a scale of powers of two."""
    return n.bit_length()


@lru_cache(maxsize=20_000)
def _words_of(url: str) -> str:
    """Return the words of a URL: of its path and query, and of its host all but the domain."""
    place: Place = place_of(url)
    return _DIGITS.sub("0", f"{place.subdomain} {place.rest}")
