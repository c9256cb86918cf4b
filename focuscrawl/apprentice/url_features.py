"""Features of a URL itself: words, path prefixes, the patterns and aliases it belongs to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote
from zlib import crc32

import numpy as np

from focuscrawl.apprentice.hashing import WordHashes, bucket
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.page.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WORD, PREFIX = 1, 2  # salts
_EXTENSION = 7  # characters, dot included
_DIGITS = re.compile(b"[0-9]+")
_INDEX = re.compile(rb"/(?:index|default|home|welcome)\.[a-z]{2,5}$", re.IGNORECASE)
_DEEPEST = 8  # directories: deeper ones are told by their words
PREFIXES = _DEEPEST + 1
PATTERNS = 4
ALIASES = 2


def address_words(urls: Sequence[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the words of path and query of `urls`, and the number of the URL of each word."""
    paths = [url.split("/", 3)[-1] for url in urls]
    return tokenize([unquote(path) if "%" in path else path for path in paths])


def address_keys(url: str) -> list[int]:
    """Return numbers of the sets of URLs that `url` belongs to; `PREFIXES + PATTERNS + ALIASES`.

    Its *prefixes*, from large to small, 0 after the last: host, directory, directory in that. The
    page itself is none; what is asked with a query is.

    Its *patterns*, from the general to the particular: extension and names of its arguments; the
    same on its host; its last part, digits made equal; the whole of it, so made. Pages of one kind
    are often alike: slides, calendars, listings, plain text.

    Its *aliases*, two numbers that URLs of the same page often share, with and without the query:
    ``/a``, ``/a/`` and ``/a/index.html`` are taken for one.
    """
    address = url[url.index("//") + 2 :].encode("utf-8", "surrogatepass")
    path, question, query = address.partition(b"?")
    parts = path.split(b"/", _DEEPEST + 1)
    inside = parts[: _DEEPEST + 1] if question else parts[:-1]
    number = 0
    keys = [0] * PREFIXES
    for i, part in enumerate(inside[:PREFIXES]):
        keys[i] = number = crc32(part, number ^ 0x2F)
    host = parts[0]
    folded, _, arguments = _DIGITS.sub(b"0", address[len(host) :]).partition(b"?")
    if arguments:
        arguments = b",".join(sorted([p.partition(b"=")[0] for p in arguments.split(b"&")]))
    directory, _, name = folded.rpartition(b"/")
    dot = name.rfind(b".")
    extension = name[dot:] if dot >= 0 and len(name) - dot <= _EXTENSION else name and b"-"
    kind = b"%s?%s" % (extension, arguments)
    last = b"%s %s?%s" % (host, name, arguments)
    same = _INDEX.sub(b"", path).rstrip(b"/").lower()
    keys += (
        crc32(kind),
        crc32(host + kind),
        crc32(last),
        crc32(last, crc32(directory)),
        crc32(same + question + query),
        crc32(same),
    )
    return keys


def table_of_keys(urls: Sequence[str]) -> NDArray[np.uint32]:
    """Return `address_keys` of each URL, uint32 (n, PREFIXES + PATTERNS + ALIASES)."""
    keys = [address_keys(url) for url in urls]
    return np.array(keys, np.uint32).reshape(-1, PREFIXES + PATTERNS + ALIASES)


def address_features(
    urls: Sequence[str], keys: NDArray[np.uint32], hashes: WordHashes, *, bits: int
) -> SparseRows:
    """Return one row of features a URL: the words of path and query, and its prefixes.

    Parameters
    ----------
    urls : n normalised URLs
    keys : uint32 (n, PREFIXES + ...), their keys
    hashes : numbers of words
    bits : of the feature space
    """
    words, number = address_words(urls)
    inside = keys[:, :PREFIXES] > 0
    features = np.concatenate(
        [
            bucket(hashes(words), WORD, bits),
            bucket(keys[:, :PREFIXES][inside].astype(np.uint64), PREFIX, bits),
        ]
    )
    owner = np.concatenate([number.astype(np.int64), np.nonzero(inside)[0]])
    order = np.argsort(owner, kind="stable")
    return SparseRows(features[order], pointers(np.bincount(owner, minlength=len(urls))))
