"""What surrounds a link on its page: words by DOM offset [A02 section 2.2.1, METHODS 4]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.hashing import bucket
from focuscrawl.apprentice.rows import Rows, pointers, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SALT = 1 << 16
#: tokens on either side of a link, and inside it, that are looked at: a leaf can be a chapter,
#: and an anchor left open the whole page
MAX_TOKENS = 40


def context_features(
    words: NDArray[np.uint64],
    token_leaf: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    *,
    d_max: int,
    bits: int,
    max_tokens: int | None = MAX_TOKENS,
    repeats: bool = False,
) -> Rows:
    """Return the features (t, d) of n links of a page, for d from -`d_max` to `d_max`.

    Parameters
    ----------
    words : uint64 (n_tokens,), numbers of the page's tokens
    token_leaf : int32 (n_tokens,), the DOM leaf each lies in, ascending
    left, right : int32 (n,), first and last leaf under each link
    d_max : leaves looked at on either side
    bits : of the feature space
    max_tokens : at most so many tokens before, inside and after a link, the nearest; None: all
    repeats : keep a word that a leaf repeats, for learners that count

    Returns
    -------
    n rows
    """
    if not repeats:
        words, token_leaf = _distinct(words, token_leaf)
    begin = np.searchsorted(token_leaf, left - d_max)
    first = np.searchsorted(token_leaf, left)
    last = np.searchsorted(token_leaf, right, side="right")
    end = np.searchsorted(token_leaf, right + d_max, side="right")
    inside = last - first
    if max_tokens is not None:
        begin = np.maximum(begin, first - max_tokens)
        end = np.minimum(end, last + max_tokens)
        inside = np.minimum(inside, max_tokens)
    starts = np.stack([begin, first, last], axis=1)
    spans = np.stack([first - begin, inside, end - last], axis=1)
    at = ranges(starts.ravel(), spans.ravel())
    lengths = spans.sum(axis=1)
    leaf = token_leaf[at]
    offset = np.minimum(leaf - np.repeat(left, lengths), 0)
    offset += np.maximum(leaf - np.repeat(right, lengths), 0)
    salt = (offset + _SALT).astype(np.uint64)
    return Rows(bucket(words[at], salt, bits), pointers(lengths))


def _distinct(
    words: NDArray[np.uint64], token_leaf: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Keep each word once a leaf, in document order."""
    pairs = (token_leaf.astype(np.uint64) << np.uint64(32)) | words
    first = np.sort(np.unique(pairs, return_index=True)[1])
    return words[first], token_leaf[first]
