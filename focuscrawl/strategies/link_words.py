"""Hashed words of pages, of links with their surroundings, and of addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers, ranges
from focuscrawl.page.tokens import tokenize
from focuscrawl.strategies.word_naive_bayes import BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.strategies.messages import JudgedPage

_PAGE, _ADDRESS, _ANCHOR, _NEAR = 1, 2, 3, 4  # salts


class PathWords:
    """Reads words from pages.

    Parameters
    ----------
    most : distinct words of a page that are read, the first
    near : tokens looked at on either side of a link
    """

    def __init__(self, *, most: int = 300, near: int = 10) -> None:
        self._most = most
        self._near = near
        self._hashes = WordHashes()

    def page(self, page: JudgedPage) -> NDArray[np.int32]:
        """Return the distinct words of a page, int32, ascending."""
        words = bucket(self._hashes(page.view.tokens), _PAGE, BITS)
        distinct, at = np.unique(words, return_index=True)
        if len(distinct) > self._most:
            distinct = distinct[at <= np.partition(at, self._most - 1)[self._most - 1]]
        return distinct

    def addresses(self, page: JudgedPage) -> SparseRows:
        """Return the words of the URL of each followable link."""
        urls = page.view.links.urls
        return self._texts([urls[i].partition("//")[2] for i in page.links.tolist()], _ADDRESS)

    def surroundings(self, page: JudgedPage) -> SparseRows:
        """Return the words inside each followable link, and those near it."""
        links, view = page.view.links, page.view
        words = self._hashes(view.tokens)
        first = np.searchsorted(view.token_leaf, links.left[page.links])
        last = np.searchsorted(view.token_leaf, links.right[page.links], side="right")
        last = np.minimum(last, first + 2 * self._near)
        begin = np.maximum(first - self._near, 0)
        end = np.minimum(last + self._near, len(words))
        starts = np.stack([begin, first, last], axis=1)
        spans = np.stack([first - begin, last - first, end - last], axis=1)
        kinds = np.tile(np.array([_NEAR, _ANCHOR, _NEAR], np.uint64), len(starts))
        at = ranges(starts.ravel(), spans.ravel())
        salt = np.repeat(kinds, spans.ravel())
        return SparseRows(bucket(words[at], salt, BITS), pointers(spans.sum(axis=1)))

    def _texts(self, texts: list[str], salt: int) -> SparseRows:
        tokens, owner = tokenize(texts)
        lengths = np.bincount(owner, minlength=len(texts))
        return SparseRows(bucket(self._hashes(tokens), salt, BITS), pointers(lengths))


def side_by_side(left: SparseRows, right: SparseRows) -> SparseRows:
    """Join n rows with n rows."""
    lengths = np.stack([left.lengths, right.lengths], axis=1)
    indptr = pointers(lengths.sum(axis=1))
    indices = np.empty(indptr[-1], np.int32)
    indices[ranges(indptr[:-1], left.lengths)] = left.indices
    indices[ranges(indptr[:-1] + left.lengths, right.lengths)] = right.indices
    return SparseRows(indices, indptr)
