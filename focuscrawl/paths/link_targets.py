"""Features of link targets: what their URLs say, whatever page they are on."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.sparse_rows import pointers, ranges
from focuscrawl.foundation.arrays import GrowingArray
from focuscrawl.page.tokens import tokenize
from focuscrawl.paths.feature_keys import keyed
from focuscrawl.paths.url_parts import parts_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from focuscrawl.apprentice.hashing import WordHashes
    from focuscrawl.paths.url_parts import UrlParts

_REMEMBERED = 50_000  # URLs, some 20 MB
DIGITS = re.compile(r"\d+")


class LinkTargets:
    """URLs by number, with the words and the form of each: the same ones come on every page.

    Parameters
    ----------
    hashes : of words

    Attributes
    ----------
    directories : a URL in each directory that the URLs are in, by the directory's number
    """

    def __init__(self, hashes: WordHashes) -> None:
        self._hashes = hashes
        self._forget()

    def numbers(self, urls: Collection[str]) -> NDArray[np.int64]:
        """Return the numbers of URLs, int64 (n,); good until others are asked for."""
        if len(self._number) > _REMEMBERED:
            self._forget()
        new = [url for url in dict.fromkeys(urls) if url not in self._number]
        if new:
            self._learn(new)
        return np.fromiter(map(self._number.__getitem__, urls), np.int64, len(urls))

    def directory(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the directories that URLs are in, int64 (n,)."""
        found: NDArray[np.int64] = self._directory.data[numbers]
        return found

    def keys(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return what URLs say, one after another, and how much of each: uint64, int64 (n,)."""
        starts = self._bounds.data[numbers]
        lengths = self._bounds.data[numbers + 1] - starts
        return self._keys.data[ranges(starts, lengths)], lengths

    def _forget(self) -> None:
        self.directories: list[UrlParts] = []
        self._in: dict[tuple[str, str], int] = {}
        self._number: dict[str, int] = {}
        self._directory = GrowingArray(np.int64)
        self._keys = GrowingArray(np.uint64)
        self._bounds = GrowingArray(np.int64)
        self._bounds.extend([0])

    def _learn(self, urls: list[str]) -> None:
        words, whose = tokenize([words_of(url) for url in urls])
        parts = [parts_of(url) for url in urls]
        facts = [[f"place:{fact}" for fact in each.facts] for each in parts]
        of_words = keyed("target", self._hashes(words))
        of_facts = keyed("link", self._hashes([each for row in facts for each in row]))
        owner = np.concatenate([whose, np.repeat(np.arange(len(urls)), [len(x) for x in facts])])
        order = np.argsort(owner, kind="stable")
        ends = pointers(np.bincount(owner, minlength=len(urls)))[1:]
        self._bounds.extend(len(self._keys) + ends)
        self._keys.extend(np.concatenate([of_words, of_facts])[order])
        self._directory.extend([self._directory_of(each) for each in parts])
        self._number.update(
            zip(urls, range(len(self._number), len(self._bounds) - 1), strict=True)
        )

    def _directory_of(self, url: UrlParts) -> int:
        at = url.host, url.directory
        if at not in self._in:
            self._in[at] = len(self.directories)
            self.directories.append(url)
        return self._in[at]


@lru_cache(maxsize=20_000)
def words_of(url: str) -> str:
    """Return the words of a URL: of its path and query, and of its host all but the domain."""
    parts = parts_of(url)
    return DIGITS.sub("0", f"{parts.subdomain} {parts.rest}")
