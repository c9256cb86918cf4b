"""The features of a page and its links in a few arrays, as they are kept in the store."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.serialization import pack_columns, unpack_columns
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.apprentice.url_features import ALIASES, PATTERNS, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

BITS = 18  # of the feature space
_SPACE = 1 << BITS


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
    link_indices, link_lengths : int32, `SparseRows` of the links' features
    new : int64 (m,), numbers of the URLs that are new
    url_indices, url_lengths : int32, `SparseRows` of their features
    url_keys : uint32 (m, 15), `focuscrawl.apprentice.url_features.address_keys`
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
    def links(self) -> SparseRows:
        """Features of the links."""
        return SparseRows(self.link_indices, pointers(self.link_lengths))

    @property
    def urls(self) -> SparseRows:
        """Features of the new URLs."""
        return SparseRows(self.url_indices, pointers(self.url_lengths))

    def to_bytes(self) -> bytes:
        """Pack the facts, for the store."""
        return pack_columns([getattr(self, name) for name in _COLUMNS], [*_COLUMNS.values()])

    @classmethod
    def from_bytes(cls, data: bytes, n_urls: int | None = None) -> PageFacts:
        """Unpack what `to_bytes` has packed; ValueError if it is something else.

        Parameters
        ----------
        n_urls : of the crawl, above all numbers; None: the targets will be numbered otherwise
        """
        unpacked = unpack_columns(data, [*_COLUMNS.values()])
        columns = dict(zip(_COLUMNS, unpacked, strict=True))
        for name in ("own_keys", "url_keys"):
            columns[name] = columns[name].reshape(-1, PREFIXES + PATTERNS + ALIASES)
        facts = cls(**columns)
        for indices in (facts.page_indices, facts.link_indices, facts.url_indices):
            _check_below(indices, _SPACE)
        for lengths, indices, n in (
            (facts.link_lengths, facts.link_indices, len(facts.targets)),
            (facts.url_lengths, facts.url_indices, len(facts.new)),
        ):
            _check_below(lengths, len(indices) + 1)
            if len(lengths) != n or lengths.sum(dtype=np.int64) != len(indices):
                msg = "rows of features that do not fit"
                raise ValueError(msg)
        if n_urls is not None:
            _check_below(facts.targets, n_urls)
            _check_below(facts.new, n_urls)
        return facts

    def numbered(self, targets: NDArray[np.int64]) -> PageFacts:
        """Return the facts with these numbers (n,) for the URLs the links lead to."""
        if np.array_equal(targets, self.targets):
            return self
        old, at = np.unique(self.targets, return_index=True)
        return replace(self, targets=targets, new=targets[at[np.searchsorted(old, self.new)]])

    @classmethod
    def together(cls, parts: Sequence[PageFacts]) -> PageFacts:
        """Return the facts of all links of some parts of one page, part after part."""
        if len(parts) == 1:
            return parts[0]
        names = [name for name in _COLUMNS if name not in _OF_PAGE]
        together = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
        return replace(parts[0], **together)

    def in_order(self) -> PageFacts:
        """Return the facts with the links in the order of the page."""
        order = np.argsort(self.position, kind="stable")
        if (np.diff(order) == 1).all():
            return self
        (facts,) = self.parts([order])
        return facts

    def parts(self, groups: Sequence[NDArray[np.int64]]) -> Iterator[PageFacts]:
        """Iterate over the facts of groups of links, and of the URLs they lead to.

        Parameters
        ----------
        groups : numbers of links (k,). Each link is in one of them, and all links to one URL are
            in the same
        """
        order, ends = np.concatenate(groups), pointers(np.array([len(each) for each in groups]))
        targets, links = self.targets[order], self.links.take(order)
        position, reading = self.position[order], self.reading[order]
        link_lengths = links.lengths.astype(np.int32)
        # of each new URL, a link that leads there, and the group of that
        by_target = np.argsort(targets, kind="stable")
        at = by_target[np.searchsorted(targets, self.new, sorter=by_target)]
        group = np.searchsorted(ends, at, side="right") - 1
        order = np.argsort(group, kind="stable")
        new, urls, url_keys = self.new[order], self.urls.take(order), self.url_keys[order]
        url_lengths = urls.lengths.astype(np.int32)
        new_ends = np.searchsorted(group[order], np.arange(len(groups) + 1))
        for (i, k), (j, m) in zip(
            pairwise(ends.tolist()), pairwise(new_ends.tolist()), strict=True
        ):
            yield replace(
                self,
                targets=targets[i:k],
                position=position[i:k],
                reading=reading[i:k],
                link_indices=links.indices[links.indptr[i] : links.indptr[k]],
                link_lengths=link_lengths[i:k],
                new=new[j:m],
                url_indices=urls.indices[urls.indptr[j] : urls.indptr[m]],
                url_lengths=url_lengths[j:m],
                url_keys=url_keys[j:m],
            )


_COLUMNS = {
    "relevance": "<f8",
    "own_keys": "<u4",
    "page_indices": "<i4",
    "targets": "<i8",
    "position": "<i4",
    "reading": "<f4",
    "link_indices": "<i4",
    "link_lengths": "<i4",
    "new": "<i8",
    "url_indices": "<i4",
    "url_lengths": "<i4",
    "url_keys": "<u4",
    "vocabulary": "u1",
}
_OF_PAGE = ("relevance", "own_keys", "page_indices", "vocabulary")


def _check_below(numbers: NDArray[np.integer], end: int) -> None:
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < end:
        msg = f"numbers from {numbers.min()} to {numbers.max()}, not below {end}"
        raise ValueError(msg)


def pack_words(words: Iterable[str]) -> NDArray[np.uint8]:
    """Pack distinct words, for `PageFacts.vocabulary`."""
    text = "\n".join(words).encode("utf-8", "surrogatepass")
    return np.frombuffer(zlib.compress(text, 1), np.uint8)


def unpack_words(vocabulary: NDArray[np.uint8]) -> list[str]:
    """Unpack what `pack_words` has packed."""
    return zlib.decompress(vocabulary.tobytes()).decode("utf-8", "surrogatepass").split("\n")
