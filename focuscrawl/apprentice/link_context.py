"""Words around the links of a page, by their DOM offset [A02 section 2.2.1, METHODS 4]."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.hashing import bucket
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Ints

OFFSET_SALT = 1 << 16  # plus the offset
#: tokens on either side of a link, and inside it, that are looked at: a leaf can be a chapter,
#: and an anchor left open the whole page
MAX_TOKENS = 40


class Window(NamedTuple):
    """The tokens around n links.

    Attributes
    ----------
    words : uint64 (m,), those near the first link in document order, then those of the next ...
    offset : int32 (m,), DOM offset of each from its link
    lengths : int64 (n,), tokens of each link
    """

    words: NDArray[np.uint64]
    offset: NDArray[np.int32]
    lengths: Ints


def window(
    words: NDArray[np.uint64],
    token_leaf: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    *,
    d_max: int,
    max_tokens: int | None = MAX_TOKENS,
    repeats: bool = False,
) -> Window:
    """Find the tokens around n links of a page.

    Parameters
    ----------
    words : uint64 (n_tokens,), numbers of the page's tokens
    token_leaf : int32 (n_tokens,), the DOM leaf each lies in, ascending
    left, right : int32 (n,), first and last leaf under each link
    d_max : leaves looked at on either side
    max_tokens : at most so many tokens before, inside and after a link, the nearest; None: all
    repeats : keep a word that a leaf repeats, for learners that count
    """
    if not repeats:
        words, token_leaf = _distinct(words, token_leaf)
    begin, first = token_leaf.searchsorted(np.array([left - d_max, left]))
    last, end = token_leaf.searchsorted(np.array([right, right + d_max]), side="right")
    inside = last - first
    if max_tokens is not None:
        begin = np.maximum(begin, first - max_tokens)
        end = np.minimum(end, last + max_tokens)
        inside = np.minimum(inside, max_tokens)
    starts = np.array([begin, first, last]).T
    spans = np.array([first - begin, inside, end - last]).T
    at = ranges(starts.ravel(), spans.ravel())
    lengths = spans.sum(axis=1)
    leaf = token_leaf[at]
    nearest = np.minimum(np.maximum(leaf, left.repeat(lengths)), right.repeat(lengths))
    return Window(words[at], leaf - nearest, lengths)


def by_offset(near: Window, bits: int) -> SparseRows:
    """Return the features (t, d): a word and its DOM offset."""
    salt = (near.offset + OFFSET_SALT).astype(np.uint64)
    return SparseRows(bucket(near.words, salt, bits), pointers(near.lengths))


def _distinct(
    words: NDArray[np.uint64], token_leaf: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Keep each word once a leaf, in document order."""
    pairs = (token_leaf.astype(np.uint64) << np.uint64(32)) | words
    ordered = np.sort(pairs)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(repeated):
        return words, token_leaf
    # only these few are put in order with their places, which takes much longer than to sort
    place = np.minimum(repeated.searchsorted(pairs), len(repeated) - 1)
    kept = repeated[place] != pairs
    again = (~kept).nonzero()[0]
    kept[again[np.unique(pairs[again], return_index=True)[1]]] = True
    return words[kept], token_leaf[kept]
