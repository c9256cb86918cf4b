"""Split the texts of a page into tokens, and count and hash its distinct words."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import count
from typing import TYPE_CHECKING
from unicodedata import category
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


# longer runs, such as base64 and hashes, occur on one page only
MAX_TOKEN_LENGTH = 40

# limits of scripts with marks or without spaces: Hebrew, Arabic, scripts of India and South East
# Asia, Chinese, Japanese, Korean
_FIRST_MARKED, _LATIN_ADDITIONAL, _FIRST_SPACELESS = 0x0590, 0x1E00, 0x2E80
_DROPPED = 0xFFFFFFFF

_LAST_IDEOGRAPH = 0x323AF
_SPACE = ord(" ")


def _case_table() -> NDArray[np.uint32]:
    """Map letters and digits to lower case, and other code points to a space.

    Look-ups clip code points of plane 2 and above (rare ideographs) to the last entry, a space.
    """
    points = np.arange(0x20000, dtype=np.uint32)
    characters = points.view("<U1")
    lower = np.strings.lower(characters).astype("<U1").view(np.uint32)
    return np.where(np.strings.isalnum(characters), lower, np.uint32(_SPACE))


@lru_cache(maxsize=1)
def _case_table_with_marks() -> NDArray[np.uint32]:
    """Map code points as `_case_table` does, but keep marks and rare ideographs.

    Vowel signs are parts of words. Arabic and Hebrew points are dropped, because few texts have
    them, and so are joiners and the tatweel.
    """
    folded = np.append(
        _CASE_TABLE, np.arange(len(_CASE_TABLE), _LAST_IDEOGRAPH + 2, dtype=np.uint32)
    )
    folded[-1] = _SPACE
    for point in range(0x0300, len(_CASE_TABLE)):
        if category(chr(point)).startswith("M"):
            folded[point] = _DROPPED if _FIRST_MARKED <= point < 0x0900 else point
    folded[[0x0640, 0x200C, 0x200D, *range(0xFE00, 0xFE10)]] = _DROPPED
    return folded


_CASE_TABLE = _case_table()
_CASE_TABLE_ASCII = _CASE_TABLE[:256].astype(np.uint8).tobytes()


def tokenize(leaves: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    r"""Split the texts of a page into tokens.

    A token is a run of letters and digits (``[^\W_]``) within a leaf, in lower case. Runs of more
    than `MAX_TOKEN_LENGTH` characters are left out. If more than half of a page's letters are of
    scripts with marks or without spaces, tokens include the marks, and longer runs of Chinese or
    Japanese are split.

    Parameters
    ----------
    leaves : text of each leaf, "" for a leaf without text

    Returns
    -------
    tokens : in order
    token_leaf : int32 (n_tokens,), index of the leaf of each token, ascending
    """
    text = " ".join(["", *leaves, ""])
    codes: NDArray[np.uint8] | NDArray[np.uint32]
    has_marks, kept = False, None
    if text.isascii():
        folded = text.encode("ascii").translate(_CASE_TABLE_ASCII)
        codes = np.frombuffer(folded, np.uint8)
        tokens = folded.decode("ascii").split()
    else:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        codes = _CASE_TABLE.take(points, mode="clip")
        has_marks = _needs_marks(codes)
        if has_marks:
            codes = _case_table_with_marks().take(points, mode="clip")
            kept = (codes != _DROPPED).nonzero()[0]
            codes = codes[kept]
        tokens = codes.tobytes().decode("utf-32-le").split()
    if not tokens:
        return [], np.empty(0, np.int32)
    in_token = codes > _SPACE
    edges = (in_token[1:] != in_token[:-1]).nonzero()[
        0
    ]  # before each start, and at each last character
    starts = edges[::2]
    lengths = edges[1::2] - starts
    if lengths.max() > MAX_TOKEN_LENGTH and has_marks:
        tokens, starts = _split_long_tokens(tokens, starts)
    elif lengths.max() > MAX_TOKEN_LENGTH:
        keep = lengths <= MAX_TOKEN_LENGTH
        starts = starts[keep]
        tokens = [token for token in tokens if len(token) <= MAX_TOKEN_LENGTH]
    ends = np.fromiter(map(len, leaves), np.int64, len(leaves)).cumsum()
    ends += np.arange(1, len(leaves) + 1)  # a space before each leaf
    at = starts + 1 if kept is None else kept[starts + 1]
    return tokens, ends.searchsorted(at).astype(np.int32)


def _needs_marks(codes: NDArray[np.uint32]) -> bool:
    """Return whether more than half of the letters are of scripts with marks or without spaces."""
    beyond = np.count_nonzero(codes >= _FIRST_MARKED)
    if 2 * beyond <= np.count_nonzero(codes > _SPACE):
        return False
    latin = np.count_nonzero((codes >= _LATIN_ADDITIONAL) & (codes < _FIRST_SPACELESS))
    return bool(2 * (beyond - latin) > np.count_nonzero(codes > _SPACE))


def _split_long_tokens(
    tokens: list[str], starts: NDArray[np.intp]
) -> tuple[list[str], NDArray[np.intp]]:
    """Split long runs of scripts without spaces, and leave out other long runs."""
    found: list[tuple[str, int]] = []
    for token, start in zip(tokens, starts.tolist(), strict=True):
        if len(token) <= MAX_TOKEN_LENGTH:
            found.append((token, start))
        elif ord(token[0]) >= _FIRST_SPACELESS:
            cuts = range(0, len(token), MAX_TOKEN_LENGTH)
            found.extend((token[i : i + MAX_TOKEN_LENGTH], start + i) for i in cuts)
    return [token for token, _ in found], np.array([start for _, start in found], np.intp)


class PageWords:
    """The distinct words of a page.

    Attributes
    ----------
    distinct : distinct words, in the order of their first occurrence
    indices : int32 (n_tokens,), index of each token in `distinct`
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        numbers = dict(zip(dict.fromkeys(tokens), count(), strict=False))
        self.distinct = [*numbers]
        self.indices = np.fromiter(map(numbers.__getitem__, tokens), np.int32, len(tokens))

    @property
    def bag(self) -> dict[str, int]:
        """Number of occurrences of each word."""
        times = np.bincount(self.indices, minlength=len(self.distinct))
        return dict(zip(self.distinct, times.tolist(), strict=True))

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """Hash of each token, uint64 (n_tokens,)."""
        return hash_words(self.distinct).take(self.indices)


def hash_words(words: Iterable[str]) -> NDArray[np.uint64]:
    """Return the CRC-32 hash of each word, uint64 (n,), which is the same in every process."""
    return np.array([crc32(word.encode("utf-8", "surrogatepass")) for word in words], np.uint64)
