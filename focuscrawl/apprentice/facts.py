"""What the apprentice keeps of a page: all it will ever ask of it, in a few arrays."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.addresses import PLACES, SHAPES, TWINS
from focuscrawl.apprentice.rows import Rows, pointers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

BITS = 18  # of the feature space


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Facts of a page u, its n links, and the m URLs among them nobody knew.

    Attributes
    ----------
    relevance : float64 (1,), R(u)
    own_keys : uint32 (1, 15), the keys of u itself
    page_indices : int32, features of the page
    targets : int64 (n,), numbers of the URLs the links lead to
    position : int32 (n,), first DOM leaf of each link
    reading : float32 (n,), log-odds of c* by the words of anchor and URL
    link_indices, link_lengths : int32, `Rows` of the links' features
    new : int64 (m,), numbers of the URLs that are new
    url_indices, url_lengths : int32, `Rows` of their features
    url_keys : uint32 (m, 15), `focuscrawl.apprentice.addresses.address_keys`
    vocabulary : uint8, the words of the page, packed: features are hashed, and people ask why
    """

    relevance: NDArray[np.float64]
    own_keys: NDArray[np.uint32]
    page_indices: NDArray[np.int32]
    targets: NDArray[np.int64]
    position: NDArray[np.int32]
    reading: NDArray[np.float32]
    link_indices: NDArray[np.int32]
    link_lengths: NDArray[np.int32]
    new: NDArray[np.int64]
    url_indices: NDArray[np.int32]
    url_lengths: NDArray[np.int32]
    url_keys: NDArray[np.uint32]
    vocabulary: NDArray[np.uint8]

    @property
    def links(self) -> Rows:
        """Features of the links."""
        return Rows(self.link_indices, pointers(self.link_lengths))

    @property
    def urls(self) -> Rows:
        """Features of the new URLs."""
        return Rows(self.url_indices, pointers(self.url_lengths))

    def to_bytes(self) -> bytes:
        """Pack the facts, for the store: the lengths of the columns, then the columns."""
        columns = [getattr(self, name).astype(dtype, copy=False) for name, dtype in _COLUMNS]
        sizes = np.array([column.size for column in columns], "<i4")
        return b"".join(part.tobytes() for part in (sizes, *columns))

    @classmethod
    def from_bytes(cls, data: bytes) -> PageFacts:
        """Unpack what `to_bytes` has packed."""
        sizes = np.frombuffer(data, "<i4", len(_COLUMNS)).tolist()
        at, columns = 4 * len(_COLUMNS), {}
        for (name, dtype), size in zip(_COLUMNS, sizes, strict=True):
            columns[name] = np.frombuffer(data, dtype, size, at)
            at += columns[name].nbytes
        for name in ("own_keys", "url_keys"):
            columns[name] = columns[name].reshape(-1, PLACES + SHAPES + TWINS)
        return cls(**columns)

    def numbered(self, targets: NDArray[np.int64]) -> PageFacts:
        """Return the facts with these numbers (n,) for the URLs the links lead to."""
        if np.array_equal(targets, self.targets):
            return self
        old, at = np.unique(self.targets, return_index=True)
        return replace(self, targets=targets, new=targets[at[np.searchsorted(old, self.new)]])

    def part(self, links: NDArray[np.int64]) -> PageFacts:
        """Return the facts of some of the links (k,), ascending, and of the URLs they lead to."""
        kept = self.links.take(links)
        targets = self.targets[links]
        new = np.flatnonzero(np.isin(self.new, targets))
        urls = self.urls.take(new)
        return replace(
            self,
            targets=targets,
            position=self.position[links],
            reading=self.reading[links],
            link_indices=kept.indices,
            link_lengths=kept.lengths.astype(np.int32),
            new=self.new[new],
            url_indices=urls.indices,
            url_lengths=urls.lengths.astype(np.int32),
            url_keys=self.url_keys[new],
        )


_COLUMNS = (
    ("relevance", "<f8"),
    ("own_keys", "<u4"),
    ("page_indices", "<i4"),
    ("targets", "<i8"),
    ("position", "<i4"),
    ("reading", "<f4"),
    ("link_indices", "<i4"),
    ("link_lengths", "<i4"),
    ("new", "<i8"),
    ("url_indices", "<i4"),
    ("url_lengths", "<i4"),
    ("url_keys", "<u4"),
    ("vocabulary", "u1"),
)


def pack_words(words: Iterable[str]) -> NDArray[np.uint8]:
    """Pack distinct words, for `PageFacts.vocabulary`."""
    text = "\n".join(words).encode("utf-8", "surrogatepass")
    return np.frombuffer(zlib.compress(text, 1), np.uint8)


def unpack_words(vocabulary: NDArray[np.uint8]) -> list[str]:
    """Unpack what `pack_words` has packed."""
    return zlib.decompress(vocabulary.tobytes()).decode("utf-8", "surrogatepass").split("\n")
