"""Makes inputs larger in the ways that make their cost grow: repeated, numbered, nested."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

LARGEST = 1 << 18  # bytes
_MOST_COPIES = 1 << 15
_LONGEST_PIECE = 256  # bytes


def grown(parent: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: Random) -> bytes:
    """Return an input made of another.

    Parameters
    ----------
    parent : what is changed, a few times over
    others : inputs whose pieces may come into it
    words : that mean something where these inputs are read
    """
    data = parent
    for _ in range(rng.choice([1, 1, 2, 3])):
        data = rng.choice(_CHANGES)(data, rng, others, words)
    return data[:LARGEST]


def _cut(data: bytes, rng: Random) -> tuple[int, int]:
    """Return where a piece begins and ends: by any byte, or by lines or tags."""
    if not data:
        return 0, 0
    if rng.random() < 0.6:
        marks = [m.start() for m in itertools.islice(re.finditer(rb"[<\n ,;\"'\[(]", data), 4000)]
        if len(marks) > 1:
            i = rng.randrange(len(marks) - 1)
            j = min(i + rng.choice([1, 1, 2, 4]), len(marks) - 1)
            return marks[i], marks[j]
    start = rng.randrange(len(data))
    return start, min(start + 1 + rng.randrange(rng.choice([1, 4, 32, _LONGEST_PIECE])), len(data))


def _copies(piece: bytes, rng: Random) -> int:
    room = LARGEST // max(len(piece), 1)
    return max(1, min(room, _MOST_COPIES, 1 << rng.randrange(1, 17)))


def _repeated(data: bytes, rng: Random, *_: object) -> bytes:
    start, end = _cut(data, rng)
    piece = data[start:end]
    return data[:start] + piece * _copies(piece, rng) + data[end:]


def _numbered(data: bytes, rng: Random, *_: object) -> bytes:
    """Repeat a piece under other names: what is compared with all that came before."""
    start, end = _cut(data, rng)
    piece = data[start:end]
    words = [m.span() for m in re.finditer(rb"[A-Za-z0-9]+", piece)]
    if not words:
        return data
    at = rng.choice(words)[rng.randrange(2)]
    copies = (b"%b%d%b" % (piece[:at], i, piece[at:]) for i in range(_copies(piece + b"00", rng)))
    return data[:start] + b"".join(copies) + data[end:]


def _nested(data: bytes, rng: Random, *_: object) -> bytes:
    """Repeat one piece before a place, and another behind it."""
    start, end = _cut(data, rng)
    other, other_end = _cut(data, rng)
    piece, closing = data[start:end], data[other:other_end]
    n = _copies(piece + closing, rng)
    return data[:end] + piece * n + closing * n + data[end:]


def _word(data: bytes, rng: Random, _: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    at = rng.randint(0, len(data))
    word = rng.choice(words)
    return data[:at] + word * rng.choice([1, 1, _copies(word, rng)]) + data[at:]


def _spliced(data: bytes, rng: Random, others: Sequence[bytes], *_: object) -> bytes:
    other = rng.choice(others)
    start, end = _cut(other, rng)
    at = rng.randint(0, len(data))
    return data[:at] + other[start:end] + data[at:]


def _shortened(data: bytes, rng: Random, *_: object) -> bytes:
    start, end = _cut(data, rng)
    return data[:start] + data[end:]


def _noisy(data: bytes, rng: Random, *_: object) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.choice([1, 2, 8])) + data[at + 1 :]


_CHANGES: list[Callable[..., bytes]] = [
    *(_repeated, _repeated, _numbered, _numbered, _nested),
    *(_word, _spliced, _shortened, _noisy),
]
