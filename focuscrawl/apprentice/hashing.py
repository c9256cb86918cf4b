"""The hashing trick: words to feature numbers, the same in every process."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.page.tokens import tokenize
from focuscrawl.page.words import hash_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_REMEMBERED = 500_000  # words, about 60 MB

_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


class WordHashes:
    """Numbers of words, remembered: looking one up again costs a tenth of hashing it.

    Parameters
    ----------
    most : words remembered before all are forgotten
    """

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._known: dict[str, int] = {}

    def __call__(self, words: Sequence[str]) -> NDArray[np.uint64]:
        """Return uint64 (n,), one number below 2^32 a word."""
        known = self._known
        if len(known) > self._most:
            known.clear()
        numbers = np.fromiter(map(known.get, words, repeat(-1)), np.int64, len(words))
        unknown = (numbers < 0).nonzero()[0]
        if len(unknown):
            new = [words[i] for i in unknown.tolist()]
            numbers[unknown] = hashed = hash_words(new)
            known.update(zip(new, hashed.tolist(), strict=True))
        return numbers.view(np.uint64)

    def rows(self, texts: list[str], salt: int, bits: int) -> SparseRows:
        """Return one row a text: the features of its words, as often as it has them."""
        words, owner = tokenize(texts)
        lengths = np.bincount(owner, minlength=len(texts))
        return SparseRows(bucket(self(words), salt, bits), pointers(lengths))

    def words(self) -> dict[int, str]:
        """Return the words that are remembered, by their numbers."""
        return {number: word for word, number in self._known.items()}


def bucket(
    words: NDArray[np.uint64], salt: int | NDArray[np.uint64], bits: int
) -> NDArray[np.int32]:
    """Spread (word, salt) pairs over 2^`bits` features.

    Parameters
    ----------
    words : uint64 (n,), as `WordHashes` gives them
    salt : what tells the kinds of feature apart, one number or uint64 (n,), below 2^31
    bits : at most 31

    Returns
    -------
    int32 (n,), in [0, 2^bits)
    """
    mixed = (words << np.uint64(31)) ^ np.asarray(salt, np.uint64)
    mixed *= _MIX_1
    mixed ^= mixed >> _SHIFT
    mixed *= _MIX_2
    return (mixed >> np.uint64(64 - bits)).astype(np.int32)
