"""Hashed words of pages, of links with their surroundings, and of addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers, ranges
from focuscrawl.strategies.word_naive_bayes import BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.messages import JudgedPage

_PAGE, _ADDRESS, _ANCHOR, _NEAR = 1, 2, 3, 4  # salts
_MOST = 300  # distinct words of a page that are read, the first
_AROUND = 10  # tokens looked at on either side of a link


class PathWords:
    """Reads words from pages."""

    def __init__(self) -> None:
        self._hashes = WordHashes()

    def page(self, page: JudgedPage) -> NDArray[np.int32]:
        """Return the distinct words of a page, int32, ascending."""
        words = bucket(page.view.words.hashes, _PAGE, BITS)
        distinct, at = np.unique(words, return_index=True)
        if len(distinct) > _MOST:
            distinct = distinct[at <= np.partition(at, _MOST - 1)[_MOST - 1]]
        return distinct

    def addresses(self, page: JudgedPage) -> SparseRows:
        """Return the words of the URL of each followable link."""
        urls = page.view.links.urls
        texts = [urls[i].partition("//")[2] for i in page.links.tolist()]
        return self._hashes.rows(texts, _ADDRESS, BITS)

    def surroundings(self, page: JudgedPage) -> SparseRows:
        """Return the words inside each followable link, and those near it."""
        links, view = page.view.links, page.view
        words = view.words.hashes
        first = np.searchsorted(view.token_leaf, links.left[page.links])
        last = np.searchsorted(view.token_leaf, links.right[page.links], side="right")
        last = np.minimum(last, first + 2 * _AROUND)
        begin = np.maximum(first - _AROUND, 0)
        end = np.minimum(last + _AROUND, len(words))
        starts = np.stack([begin, first, last], axis=1)
        spans = np.stack([first - begin, last - first, end - last], axis=1)
        kinds = np.tile(np.array([_NEAR, _ANCHOR, _NEAR], np.uint64), len(starts))
        at = ranges(starts.ravel(), spans.ravel())
        salt = np.repeat(kinds, spans.ravel())
        return SparseRows(bucket(words[at], salt, BITS), pointers(spans.sum(axis=1)))
