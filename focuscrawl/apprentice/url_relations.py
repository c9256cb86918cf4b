"""A feature a link: whether v is on u's host, in its directory, below or above it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.hashing import bucket
from focuscrawl.apprentice.sparse_rows import SparseRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SITE = 8  # salt
_REMEMBERED = 50_000  # URLs, about 20 MB: the pages of a host have many links in common
RELATIONS = ("another host", "same host", "same directory", "directory below", "directory above")


def site_features(source: str, targets: Sequence[str], bits: int) -> SparseRows:
    """Return one feature a link: which of `RELATIONS` its target has to its page.

    Parameters
    ----------
    source, targets : normalised URLs of u and of n URLs v
    bits : of the feature space
    """
    features = _features(bits)
    host, directory = _place(source)
    found = [_relation(host, directory, *_place(target)) for target in targets]
    return SparseRows(features[np.array(found, np.int64)], np.arange(len(targets) + 1))


@lru_cache
def _features(bits: int) -> NDArray[np.int32]:
    return bucket(np.arange(len(RELATIONS), dtype=np.uint64), SITE, bits)


@lru_cache(maxsize=_REMEMBERED)
def _place(url: str) -> tuple[str, str]:
    """Return host and directory, without the scheme."""
    address = url.partition("//")[2].partition("?")[0]
    return address.partition("/")[0], address[: address.rfind("/") + 1]


def _relation(host: str, directory: str, other_host: str, other: str) -> int:
    if host != other_host:
        return 0
    if directory == other:
        return 2
    if other.startswith(directory):
        return 3
    return 4 if directory.startswith(other) else 1
