"""Splits the texts of a page into words (tokens), and counts and hashes the words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, count, islice
from threading import RLock
from typing import TYPE_CHECKING, Any
from unicodedata import category, is_normalized, normalize
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from focuscrawl.foundation.arrays import GrowingArray

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


# longer runs, such as base64 and hashes, occur on one page only
MAX_TOKEN_LENGTH = 40
_MAX_WORDS = 500_000  # in the table of recent words, about 70 MB without the values of columns

_SPACE, _DROPPED = ord(" "), 0xFFFFFFFF
_LAST_IDEOGRAPH = 0x323AF
_LAST_COMPOSED = 0x2FF  # up to here, no character combines with the character before
_PLANE_14 = range(0xE0000, 0xE1000)  # invisible tags and variation selectors
#: marks that are dropped: a joiner, vowel signs of Khmer that nobody sees, variation selectors
_INVISIBLE_MARKS = (0x034F, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10))
_ARABIC_AND_HEBREW = range(0x0590, 0x0900)
_TATWEEL = 0x0640
_ZERO_WIDTH_SPACE = 0x200B

# Scripts without spaces between words. In those of South East Asia, a zero width space separates
# words (The Unicode Standard, section 23.2): Thai, Lao, Burmese, Khmer
_SOUTH_EAST_ASIAN = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
_CHINESE_AND_JAPANESE = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U000323af"
)
_KOREAN = "\uac00-\ud7a3"  # has spaces, but some writers leave them out
_THAI_AND_ALIKE = "".join(f"{chr(first)}-{chr(last)}" for first, last in _SOUTH_EAST_ASIAN)
_SPACELESS = f"{_THAI_AND_ALIKE}{_CHINESE_AND_JAPANESE}"
_SPLITTABLE = re.compile(f"[{_SPACELESS}{_KOREAN}]")
_CHARACTER = re.compile(f"[{_SPACELESS}]")
_CHARACTER_OR_WORD = re.compile(f"[{_SPACELESS}]|[^{_SPACELESS}]+")
# mean number of characters of a word, by script
_WORD_LENGTHS = (
    (re.compile(f"[{_CHINESE_AND_JAPANESE}]+"), 1.6),
    (re.compile(f"[{_THAI_AND_ALIKE}]+"), 4.0),
)
_WRITTEN_WORD = re.compile(r"[^\W_]\S*")
# the next piece begins with a letter, unless marks are longer than a piece
_PIECE = re.compile(rf".{{1,{MAX_TOKEN_LENGTH}}}(?=\w|$)|.{{{MAX_TOKEN_LENGTH}}}")


@lru_cache(maxsize=1)
def _case_table() -> NDArray[np.uint32]:
    """Map letters, digits and marks to lower case, and other code points to a space.

    Marks are parts of words, such as vowel signs. Arabic and Hebrew points are dropped, because
    few texts have them, and so are the tatweel and characters that nobody sees. Look-ups clip code
    points behind the last ideograph to the last entry, a space.
    """
    points = np.arange(_LAST_IDEOGRAPH + 2, dtype=np.uint32)
    characters = points.view("<U1")
    lower = np.strings.lower(characters).astype("<U1").view(np.uint32)
    table = np.where(np.strings.isalnum(characters), lower, np.uint32(_SPACE))
    for point in range(0x80, 0x20000):
        kind = category(chr(point))
        if kind in {"Cf", "Me"} or (kind == "Mn" and point in _ARABIC_AND_HEBREW):
            table[point] = _DROPPED
        elif kind in {"Mn", "Mc"}:
            table[point] = point
    table[[_TATWEEL, *_INVISIBLE_MARKS]] = _DROPPED
    return table


_CASE_TABLE_ASCII = bytes(
    ord(chr(point).lower()) if point < 0x80 and chr(point).isalnum() else _SPACE
    for point in range(256)
)


def tokenize(leaves: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    r"""Split the texts of a page into tokens (words).

    A token is a run of letters, digits and combining marks within one text of the page, in lower
    case and Unicode NFC. Invisible characters, such as soft hyphens, do not end a token. Tokens of
    more than `MAX_TOKEN_LENGTH` characters are left out. If the script has no spaces between
    words, such tokens are split instead.

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
    kept = None
    if text.isascii():
        folded = text.encode("ascii").translate(_CASE_TABLE_ASCII)
        codes = np.frombuffer(folded, np.uint8)
        tokens = folded.decode("ascii").split()
    else:
        points = _code_points(text)
        if not _is_composed(points):
            leaves = [normalize("NFC", leaf) for leaf in leaves]
            points = _code_points(" ".join(["", *leaves, ""]))
        codes = _fold_case(points)
        if codes.max() == _DROPPED:
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
    if lengths.max() > MAX_TOKEN_LENGTH:
        tokens, starts = _split_long_tokens(tokens, starts)
    ends = np.fromiter(map(len, leaves), np.int64, len(leaves)).cumsum()
    ends += np.arange(1, len(leaves) + 1)  # a space before each leaf
    at = starts + 1 if kept is None else kept[starts + 1]
    return tokens, ends.searchsorted(at).astype(np.int32)


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _is_composed(points: NDArray[np.uint32]) -> bool:
    """Return whether a text is composed (Unicode NFC), from its code points.

    Only marks and other code points above `_LAST_COMPOSED` can violate the form. In most texts few
    characters are above, and only these and the characters before them are examined.
    """
    examined = points > _LAST_COMPOSED
    examined[:-1] |= examined[1:]
    return is_normalized("NFC", points[examined].tobytes().decode("utf-32-le", "surrogatepass"))


def _fold_case(points: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the code point in the table of each code point of a text."""
    codes = _case_table().take(points, mode="clip")
    last = points.max()
    if last >= _PLANE_14.start:
        codes[(points >= _PLANE_14.start) & (points < _PLANE_14.stop)] = _DROPPED
    if last >= _ZERO_WIDTH_SPACE:
        at = (points == _ZERO_WIDTH_SPACE).nonzero()[0]
        before = points[at - 1]
        for first, end in _SOUTH_EAST_ASIAN:
            codes[at[(before >= first) & (before <= end)]] = _SPACE
    return codes


def _split_long_tokens(
    tokens: list[str], starts: NDArray[np.intp]
) -> tuple[list[str], NDArray[np.intp]]:
    """Split long runs of scripts without spaces, and leave out other long runs."""
    found: list[tuple[str, int]] = []
    for token, start in zip(tokens, starts.tolist(), strict=True):
        if len(token) <= MAX_TOKEN_LENGTH:
            found.append((token, start))
        elif _SPLITTABLE.search(token):
            found.extend((piece[0], start + piece.start()) for piece in _PIECE.finditer(token))
    return [token for token, _ in found], np.array([start for _, start in found], np.intp)


def count_spaceless(text: str) -> int:
    """Return the number of characters of scripts without spaces, such as Chinese."""
    return 0 if text.isascii() else len(_CHARACTER.findall(text))


def count_words(text: str) -> float:
    """Return the number of words of a text, split at white space.

    In scripts without spaces, such as Chinese, the number of words is estimated from the number of
    characters.
    """
    if text.isascii() or _CHARACTER.search(text) is None:
        return len(text.split())
    n_words = 0.0
    for pattern, length in _WORD_LENGTHS:
        n_words += (len(text) - len(pattern.sub("", text))) / length
        text = pattern.sub(" ", text)
    return n_words + len(_WRITTEN_WORD.findall(text))  # the rest may be punctuation


class WordColumn:
    """A value, or a row of values, of each word, which a `WordTable` computes once for each word.

    Parameters
    ----------
    compute : returns the values of distinct words, (n_words,) or (n_words, width)
    dtype : type of the values
    width : number of values of each word; None for a single value
    """

    def __init__(
        self,
        compute: Callable[[list[str]], NDArray[Any]],
        dtype: DTypeLike,
        width: int | None = None,
    ) -> None:
        self.compute = compute
        self.dtype = dtype
        self.width = width
        self._latest: tuple[WordTable | None, GrowingArray] = None, GrowingArray(dtype)

    def values(self, table: WordTable) -> GrowingArray:
        """Return the values of the words of `table` that were computed so far, row after row."""
        if self._latest[0] is not table:
            self._latest = table, table.stored_values(self)
        return self._latest[1]


class WordTable:
    """Numbers words by their first occurrence, so that a word is looked up once for all values.

    The values of words are arrays by number, see `WordColumn`. Several threads can use one table.
    """

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._words: list[str] = []  # by number
        self._first = GrowingArray(np.int32)  # by number; used within `number_page`
        self._values: WeakKeyDictionary[WordColumn, GrowingArray] = WeakKeyDictionary()
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._words)

    def number(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return the number of each word, int32 (n,)."""
        with self._lock:
            numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))
            n_new = len(self._numbers) - len(self._words)
            if n_new:
                self._words.extend(reversed([*islice(reversed(self._numbers), n_new)]))
        return numbers

    def number_page(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the distinct words of a page, and the position of each word among these.

        Returns
        -------
        distinct : int32 (n_distinct,), numbers of the distinct words by their first occurrence
        indices : int32 (n,), position in `distinct` of each word
        """
        numbers, positions = self.number(words), np.arange(len(words), dtype=np.int32)
        with self._lock:
            self._first.grow(len(self))
            self._first.data[numbers[::-1]] = positions[::-1]  # the last of equal indices counts
            first = self._first.data.take(numbers)
        is_first = first == positions
        return numbers[is_first], (is_first.cumsum(dtype=np.int32) - np.int32(1)).take(first)

    def words(self, numbers: NDArray[np.int32]) -> list[str]:
        """Return the words with the given numbers."""
        words = self._words
        return [words[number] for number in numbers.tolist()]

    def stored_values(self, column: WordColumn) -> GrowingArray:
        """Return the array for the values of a column."""
        with self._lock:
            return self._values.setdefault(column, GrowingArray(column.dtype))

    def take(self, column: WordColumn, numbers: NDArray[np.int32]) -> NDArray[Any]:
        """Return the values of words by their numbers, (n,) or (n, width)."""
        values, width = column.values(self), column.width or 1
        if len(values) < width * len(self._words):
            with self._lock:  # another thread may have computed the values
                new = self._words[len(values) // width :]
                if new:
                    values.extend(column.compute(new).ravel())
        data = values.data if column.width is None else values.data.reshape(-1, width)
        taken: NDArray[Any] = data.take(numbers, axis=0)
        return taken


_recent_words = WordTable()


def recent_words() -> WordTable:
    """Return the table of the words of recent pages and links.

    An empty table replaces a table of more than `_MAX_WORDS` words.
    """
    global _recent_words  # noqa: PLW0603 - a cache for the whole process
    if len(_recent_words) > _MAX_WORDS:
        _recent_words = WordTable()
    return _recent_words


class PageWords:
    """The distinct words of a page, with the positions of each word.

    Attributes
    ----------
    table : the table that numbers the words
    numbers : int32 (n_distinct,), number in `table` of each distinct word, in the order of the
        first occurrences
    indices : int32 (n_tokens,), index of each token in `numbers` and `distinct`
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self.table = recent_words()
        self.numbers, self.indices = self.table.number_page(tokens)

    def __reduce__(self) -> tuple[type[PageWords], tuple[list[str]]]:
        """Serialise the tokens instead of the table."""
        distinct = self.distinct
        return PageWords, ([distinct[i] for i in self.indices.tolist()],)

    @cached_property
    def distinct(self) -> list[str]:
        """The distinct words, in the order of their first occurrence."""
        return self.table.words(self.numbers)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of occurrences of each distinct word, int64 (n_distinct,)."""
        return np.bincount(self.indices, minlength=len(self.numbers))

    @property
    def bag(self) -> dict[str, int]:
        """Number of occurrences of each word in the page."""
        return dict(zip(self.distinct, self.counts.tolist(), strict=True))

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """CRC-32 hash of each token (word), uint64 (n_tokens,)."""
        return self.values(_HASHES).take(self.indices)

    def values(self, column: WordColumn) -> NDArray[Any]:
        """Return the values of the distinct words, (n_distinct,) or (n_distinct, width)."""
        return self.table.take(column, self.numbers)

    def split_hashes(self, most: int) -> NDArray[np.uint64]:
        """Return the hashes of the first `most` words, uint64 (n,).

        Each character of scripts without spaces is a word. For a page without such characters, the
        result is `hashes`.
        """
        parts: dict[int, list[str]] = {}  # of the words with such characters
        n_parts = 0
        for i in self.values(_HAVE_SPACELESS).nonzero()[0].tolist():
            if n_parts >= most:
                break
            parts[i] = _CHARACTER_OR_WORD.findall(self.distinct[i])
            n_parts += len(parts[i])
        if not parts:
            return self.hashes
        lengths = np.ones(len(self.numbers), np.int64)
        lengths[[*parts]] = [len(each) for each in parts.values()]
        hashes: NDArray[np.uint64] = self.values(_HASHES).repeat(lengths)
        ends = lengths.cumsum()
        is_part = np.isin(np.arange(len(lengths)), [*parts]).repeat(lengths)
        hashes[is_part] = word_hashes([*chain.from_iterable(parts.values())])
        of_token = lengths.take(self.indices[:most])
        last = of_token.cumsum()
        n = min(int(last.searchsorted(most)) + 1, len(last))  # tokens that are read
        shift = ends.take(self.indices[:n]) - last[:n]
        at = np.arange(last[n - 1]) + shift.repeat(of_token[:n])
        split: NDArray[np.uint64] = hashes.take(at[:most])
        return split


class LazyBag(Mapping[str, int]):
    """The bag of words of a page, as a dictionary that is built when it is needed.

    Attributes
    ----------
    words : the words of the page
    """

    def __init__(self, words: PageWords) -> None:
        self.words = words

    @cached_property
    def _times(self) -> dict[str, int]:
        return self.words.bag

    def __getitem__(self, word: str) -> int:
        return self._times[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._times)

    def __len__(self) -> int:
        return len(self.words.numbers)


def word_hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    """Return the CRC-32 hash of each word, uint64 (n,), which is the same in every process."""
    table = recent_words()
    hashes: NDArray[np.uint64] = table.take(_HASHES, table.number(words))
    return hashes


def _hash_words(words: list[str]) -> NDArray[np.uint64]:
    return np.array([crc32(word.encode("utf-8", "surrogatepass")) for word in words], np.uint64)


def _have_spaceless(words: list[str]) -> NDArray[np.bool_]:
    return np.array(
        [not word.isascii() and _CHARACTER.search(word) is not None for word in words], np.bool_
    )


_HASHES = WordColumn(_hash_words, np.uint64)
_HAVE_SPACELESS = WordColumn(_have_spaceless, np.bool_)
