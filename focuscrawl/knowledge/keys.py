"""Keys of URLs: 64-bit hashes that are the same in every file and on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.webs.indexing import keys_of as unsigned_keys_of
from focuscrawl.webs.indexing import schemeless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.arrays import Ints


def keys_of(urls: Sequence[str]) -> Ints:
    """Return the keys of normalised URLs, int64 (n,); ``http`` and ``https`` are one.

    Of a million URLs two share a key with a chance of 3 in 10^8.
    """
    return unsigned_keys_of([schemeless(url) for url in urls]).view(np.int64)


def key_of(url: str) -> int:
    """Return the key of one URL."""
    return int(keys_of([url])[0])
