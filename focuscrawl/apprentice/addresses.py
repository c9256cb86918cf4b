"""What a URL says of the page behind it: its words, and the places it lies in."""

from __future__ import annotations

import re
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
_EXTENSION = 7  # characters, dot included
_DIGITS = re.compile("[0-9]+")
_INDEX = re.compile(r"/(?:index|default|home|welcome)\.[a-z]{2,5}$", re.IGNORECASE)
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


def shapes(url: str) -> list[int]:
    """Return numbers of what `url` looks like, from the general to the particular.

    Its extension and the names of its arguments; the same on its host; its last part with the
    digits made equal; the whole of it, so made. Pages of one kind are often alike: slides,
    calendars, listings, plain text.
    """
    host, _, rest = url[url.index("//") + 2 :].partition("/")
    path, _, query = rest.partition("?")
    directory, _, name = path.rpartition("/")
    dot = name.rfind(".")
    extension = name[dot:] if 0 <= dot and len(name) - dot <= _EXTENSION else name and "-"
    arguments = ",".join(sorted(part.partition("=")[0] for part in query.split("&")))
    kind = f"{extension}?{arguments}"
    return [
        crc32(text.encode("utf-8", "surrogatepass"))
        for text in (
            kind,
            f"{host} {kind}",
            _DIGITS.sub("0", f"{host} {name}?{arguments}"),
            _DIGITS.sub("0", f"{host}/{directory}/{name}?{query}"),
        )
    ]


def twins(url: str) -> list[int]:
    """Return two numbers that URLs of the same page often share: with and without the query.

    ``/a``, ``/a/`` and ``/a/index.html`` are taken for one.
    """
    path, question, query = url[url.index("//") + 2 :].partition("?")
    path = _INDEX.sub("", path).rstrip("/").lower()
    return [
        crc32(text.encode("utf-8", "surrogatepass")) for text in (path + question + query, path)
    ]
