"""The words of a page, numbered once for all who count, hash or weigh them."""

from __future__ import annotations

from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class PageWords:
    """Distinct words, and which of them each token is: few are looked up, and none twice.

    Parameters
    ----------
    tokens : words in document order

    Attributes
    ----------
    distinct : each word once, in the order of their first tokens
    number : int32 (n_tokens,), place of each token in `distinct`
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        numbers = dict(zip(dict.fromkeys(tokens), count(), strict=False))
        self.distinct = [*numbers]
        self.number = np.fromiter(map(numbers.__getitem__, tokens), np.int32, len(tokens))

    @property
    def bag(self) -> dict[str, int]:
        """How often there is each word."""
        times = np.bincount(self.number, minlength=len(self.distinct))
        return dict(zip(self.distinct, times.tolist(), strict=True))

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """uint64 (n_tokens,), the hash of each token."""
        return hash_words(self.distinct).take(self.number)


def hash_words(words: Iterable[str]) -> NDArray[np.uint64]:
    """Return uint64 (n,), one number below 2^32 a word, the same in every process (CRC-32)."""
    return np.array([crc32(word.encode("utf-8", "surrogatepass")) for word in words], np.uint64)
