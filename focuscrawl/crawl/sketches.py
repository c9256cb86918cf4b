"""Pages that say nearly the same as an earlier one, by MinHash."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from datasketch import MinHash, MinHashLSH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SIMILAR = 0.9  # resemblance from which on pages count as near-duplicates
_WORDS = 4  # in a row, a shingle
_FEWEST = 32  # different shingles; less text is alike by accident
_MOST = 512  # shingles of a long page that are looked at
_NUMBERS = 64  # in a sketch
_BANDS, _ROWS = 8, 8  # finds 99 % of pages that resemble each other by 0.9, 3 % by 0.6
_REMEMBERED = 10_000  # pages, 30 MB
_SCHEME = "affine32"

_STEP, _MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)
_PERMUTATIONS = MinHash(_NUMBERS, scheme=_SCHEME).permutations


def _itself(number: int) -> int:
    return number


def sketch(tokens: Sequence[str]) -> bytes | None:
    """Return the MinHash of a page's shingles of four words; None for a page of few words.

    Of a long page the 512 shingles with the smallest hashes stand for all.

    Parameters
    ----------
    tokens : its words

    Notes
    -----
    A. Z. Broder, On the resemblance and containment of documents, 1997.
    """
    words = " ".join(tokens).encode("utf-8", "surrogatepass").split(b" ")
    hashes = np.fromiter(map(crc32, words), np.uint64, len(words))
    n = len(hashes) - _WORDS + 1
    if n < _FEWEST:
        return None
    mixed = hashes[:n].copy()
    for i in range(1, _WORDS):
        mixed = mixed * _STEP + hashes[i : n + i]
    shingles = np.unique(mixed * _MIX >> _HALF)[:_MOST]
    if len(shingles) < _FEWEST:
        return None
    minima = MinHash(_NUMBERS, scheme=_SCHEME, permutations=_PERMUTATIONS, hashfunc=_itself)
    minima.update_batch(shingles.tolist())
    kept: NDArray[np.uint32] = minima.hashvalues
    return kept.astype("<u4").tobytes()


class Sketches:
    """The sketches of the last pages that said something new.

    What is remembered is a function of the pages in their order, so that a resumed crawl finds
    the same.
    """

    def __init__(self) -> None:
        self._near = MinHashLSH(num_perm=_NUMBERS, params=(_BANDS, _ROWS))
        self._minima: dict[int, NDArray[np.uint32]] = {}
        self._order: deque[int] = deque()

    def find_or_add(self, url: int, data: bytes) -> tuple[int, float] | None:
        """Return the page that `url` resembles most, and how much; remember it if there is none.

        Parameters
        ----------
        url : number of a page that was not here before
        data : its `sketch`

        Returns
        -------
        Number of the earlier page and estimated Jaccard resemblance of both, at least `SIMILAR`
        """
        values = np.frombuffer(data, "<u4").astype(np.uint32)
        page = MinHash(_NUMBERS, scheme=_SCHEME, permutations=_PERMUTATIONS, hashvalues=values)
        found = sorted(self._near.query(page))
        alike = [float((self._minima[other] == values).mean()) for other in found]
        if alike and max(alike) >= SIMILAR:
            best = max(alike)
            return found[alike.index(best)], best
        self._near.insert(url, page)
        self._minima[url] = values
        self._order.append(url)
        if len(self._order) > _REMEMBERED:
            oldest = self._order.popleft()
            self._near.remove(oldest)
            del self._minima[oldest]
        return None
