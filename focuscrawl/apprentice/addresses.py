"""What a URL says of the page behind it: its words, and the places it lies in."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote
from zlib import crc32

import numpy as np

from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.rows import Rows, pointers
from focuscrawl.page.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORD, _PLACE = 1, 2  # salts
_DEEPEST = 8  # directories: deeper ones are told by their words


def address_words(urls: Sequence[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the words of path and query of `urls`, and the number of the URL of each word."""
    paths = [url.split("/", 3)[-1] for url in urls]
    return tokenize([unquote(path) if "%" in path else path for path in paths])


def places(url: str) -> list[int]:
    """Return numbers of the places that `url` lies in: its host, then directory by directory.

    The page itself is no place; a query belongs to the place that is asked.
    """
    start = url.index("//") + 2
    path, question, _ = url[start:].partition("?")
    parts = path.split("/")
    if not question:
        parts.pop()
    found = []
    number = 0
    for part in parts[: _DEEPEST + 1]:
        number = crc32(part.encode("utf-8", "surrogatepass"), number ^ 0x2F)
        found.append(number)
    return found


def address_features(
    urls: Sequence[str], hashes: WordHashes, *, bits: int, with_places: bool = True
) -> Rows:
    """Return one row of features a URL: words of path and query, and places if asked for."""
    words, number = address_words(urls)
    features = bucket(hashes(words), _WORD, bits)
    owner = number.astype(np.int64)
    if with_places:
        inside = [places(url) for url in urls]
        counts = np.fromiter(map(len, inside), np.int64, len(urls))
        flat = np.fromiter((p for some in inside for p in some), np.uint64, int(counts.sum()))
        features = np.concatenate([features, bucket(flat, _PLACE, bits)])
        owner = np.concatenate([owner, np.repeat(np.arange(len(urls)), counts)])
        order = np.argsort(owner, kind="stable")
        features, owner = features[order], owner[order]
    return Rows(features, pointers(np.bincount(owner, minlength=len(urls))))
