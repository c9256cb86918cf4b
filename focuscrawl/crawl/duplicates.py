"""Duplicates and near-duplicates: pages fetched before under another URL, MinHash."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.store.history import DIGEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page.words import PageWords


MIN_RESEMBLANCE = 0.9  # resemblance from which on pages count as near-duplicates
_WORDS = 4  # in a row, a shingle
_FEWEST = 32  # different shingles; less text is alike by accident
_MOST = 512  # shingles of a long page that are looked at
_NUMBERS = 64  # in a sketch
_BANDS, _ROWS = 8, 8  # finds 99 % of pages that resemble each other by 0.9, 3 % by 0.6

_STEP, _MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)
# The permutations and the mixing of the package datasketch (affine32), which made the first
# sketches: those in stores stay comparable.
_random = np.random.RandomState(1)
_FACTOR = _random.randint(0, 1 << 31, _NUMBERS, np.uint32)[:, None] * np.uint32(2) + np.uint32(1)
_OFFSET = _random.randint(0, 1 << 32, _NUMBERS, np.uint32)[:, None]


class Duplicates:
    """Knows the pages fetched by their canonical URL and by their content.

    A page is a duplicate if its bytes are those of an earlier page, or if it names a canonical
    URL on its own host that was fetched, or that an earlier page named. Canonical URLs of other
    hosts are not believed: anybody can claim them.
    """

    def __init__(self) -> None:
        self._by_digest: dict[bytes, int] = {}
        self._by_canonical: dict[str, int] = {}

    def clear(self) -> None:
        """Forget all pages."""
        self._by_digest.clear()
        self._by_canonical.clear()

    @staticmethod
    def digest(body: bytes) -> bytes:
        """Return the digest that stands for a body."""
        return hashlib.blake2b(body, digest_size=DIGEST).digest()

    @staticmethod
    def known_urls(url: str, canonical: str | None) -> list[str]:
        """Return the URLs a page is known by: its own, and its canonical one on its own host."""
        if canonical is None or canonical == url:
            return [url]
        same_host = canonical.split("/", 3)[2] == url.split("/", 3)[2]
        return [url, canonical] if same_host else [url]

    def find(self, digest: bytes, names: list[str]) -> int | None:
        """Return the number of the earlier page with this content or one of these URLs."""
        for name in names:
            earlier = self._by_canonical.get(name)
            if earlier is not None:
                return earlier
        return self._by_digest.get(digest)

    def find_by_url(self, name: str) -> int | None:
        """Return the number of the fetched page that stands for the URL `name`."""
        return self._by_canonical.get(name)

    def add(self, url: int, digest: bytes, names: list[str]) -> None:
        """Remember the page numbered `url`, known by `names`."""
        self._by_digest.setdefault(digest, url)
        for name in names:
            self._by_canonical.setdefault(name, url)


def sketch(page: PageWords) -> bytes | None:
    """Return the MinHash of a page's shingles of four words; None for a page of few words.

    Of a long page the 512 shingles with the smallest hashes stand for all.

    Notes
    -----
    A. Z. Broder, On the resemblance and containment of documents, 1997.
    """
    n = len(page.indices) - _WORDS + 1
    if n < _FEWEST:
        return None
    words = page.hashes
    mixed = words[:n].copy()
    for i in range(1, _WORDS):
        mixed = mixed * _STEP + words[i : n + i]
    mixed = np.sort((mixed * _MIX >> _HALF).astype(np.uint32))
    new = mixed[1:] != mixed[:-1]
    shingles = np.concatenate([mixed[:1], mixed[1:][new]])[:_MOST]
    if len(shingles) < _FEWEST:
        return None
    minima: NDArray[np.uint32] = (_FACTOR * _mixed(shingles) + _OFFSET).min(axis=1)
    return minima.astype("<u4").tobytes()


def _mixed(numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    # the finalizer of MurmurHash3: every bit depends on all bits
    numbers = (numbers ^ (numbers >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    numbers = (numbers ^ (numbers >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    mixed: NDArray[np.uint32] = numbers ^ (numbers >> np.uint32(16))
    return mixed


class MinHashIndex:
    """The sketches of the last pages that were no near-duplicates.

    Parameters
    ----------
    most : pages remembered; None: all

    What is remembered depends on the order of the pages only: a resumed crawl finds the same.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        # by each band of a sketch: the pages that have it
        self._near: list[dict[bytes, list[int]]] = [{} for _ in range(_BANDS)]
        self._sketches: dict[int, bytes] = {}
        self._order: deque[int] = deque()

    def find_or_add(self, url: int, data: bytes) -> tuple[int, float] | None:
        """Return the page that `url` resembles most, and how much; add `url` if there is none.

        Parameters
        ----------
        url : number of a page that was not here before
        data : its `sketch`

        Returns
        -------
        Id of the earlier page, and estimated Jaccard resemblance, at least `MIN_RESEMBLANCE`
        """
        bands = _bands(data)
        near = zip(self._near, bands, strict=True)
        found = sorted({other for pages, band in near for other in pages.get(band, ())})
        if found:
            values = np.frombuffer(data, "<u4")
            others = (np.frombuffer(self._sketches[other], "<u4") for other in found)
            alike = [float((other == values).mean()) for other in others]
            best = max(alike)
            if best >= MIN_RESEMBLANCE:
                return found[alike.index(best)], best
        for pages, band in zip(self._near, bands, strict=True):
            pages.setdefault(band, []).append(url)
        self._sketches[url] = data
        self._order.append(url)
        if self._most is not None and len(self._order) > self._most:
            self._forget(self._order.popleft())
        return None

    def _forget(self, url: int) -> None:
        for pages, band in zip(self._near, _bands(self._sketches.pop(url)), strict=True):
            pages[band].remove(url)
            if not pages[band]:
                del pages[band]


def _bands(data: bytes) -> list[bytes]:
    return [data[start : start + 4 * _ROWS] for start in range(0, len(data), 4 * _ROWS)]
