"""The features of a page and its links in a few arrays, as they are kept in the store."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from focuscrawl.apprentice.serialization import ROWS, PackedRecord
from focuscrawl.apprentice.sparse_rows import SparseRows, pointers
from focuscrawl.apprentice.url_features import ALIASES, PATTERNS, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats, Ints

BITS = 18  # of the feature space
_SPACE = 1 << BITS
_KEYS = f"({PREFIXES + PATTERNS + ALIASES},)<u4"
_OF_PAGE = {"relevance", "own_keys", "page_indices", "page_values", "vocabulary"}


@dataclass(frozen=True, slots=True)
class PageFacts(PackedRecord):
    """Facts of a page u, its n links, and the m URLs among them nobody knew.

    Attributes
    ----------
    relevance : float64 (1,), R(u)
    own_keys : uint32 (1, 15), the keys of u itself
    page_indices : int32, features of the page
    targets : int64 (n,), numbers of the URLs the links lead to
    position : int32 (n,), first DOM leaf of each link
    reading : float32 (n,), log-odds of c* by the words of anchor and URL
    links : features of each link
    new : int64 (m,), numbers of the URLs that are new
    urls : features of each of them
    url_keys : uint32 (m, 15), `focuscrawl.apprentice.url_features.address_keys`
    vocabulary : uint8, the words of the page, packed: features are hashed, and people ask why
    around : float32 (n,), log-odds of c* by the words in and around each link
    page_values : float32, of the features of the page; (0,) if all are 1
    """

    relevance: Floats
    own_keys: NDArray[np.uint32]
    page_indices: NDArray[np.int32]
    targets: Ints
    position: NDArray[np.int32]
    reading: NDArray[np.float32]
    links: SparseRows
    new: Ints
    urls: SparseRows
    url_keys: NDArray[np.uint32]
    vocabulary: NDArray[np.uint8]
    around: NDArray[np.float32]
    page_values: NDArray[np.float32]

    TYPES: ClassVar[Mapping[str, str]] = {
        "relevance": "<f8",
        "own_keys": _KEYS,
        "page_indices": "<i4",
        "targets": "<i8",
        "position": "<i4",
        "reading": "<f4",
        "links": ROWS,
        "new": "<i8",
        "urls": ROWS,
        "url_keys": _KEYS,
        "vocabulary": "u1",
        "around": "<f4",
        "page_values": "<f4",
    }

    @classmethod
    def from_bytes(cls, data: bytes, n_urls: int | None = None) -> Self:
        """Unpack what `to_bytes` has packed; ValueError if it is something else.

        Parameters
        ----------
        n_urls : of the crawl, above all numbers; None: the targets will be numbered otherwise
        """
        facts = super(PageFacts, cls).from_bytes(data)  # the class is made twice, for its slots
        _check_below(facts.page_indices, _SPACE)
        values = facts.page_values
        if len(values) not in (0, len(facts.page_indices)) or not (np.abs(values) <= 1.0).all():
            raise ValueError("values of features that do not fit")
        for rows, n in ((facts.links, len(facts.targets)), (facts.urls, len(facts.new))):
            _check_below(rows.indices, _SPACE)
            _check_below(rows.lengths, len(rows.indices) + 1)
            if len(rows.lengths) != n or rows.lengths.sum(dtype=np.int64) != len(rows.indices):
                raise ValueError("rows of features that do not fit")
        if n_urls is not None:
            _check_below(facts.targets, n_urls)
            _check_below(facts.new, n_urls)
        return facts

    def numbered(self, targets: Ints) -> PageFacts:
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
        together: dict[str, Any] = {}
        for name in cls.TYPES.keys() - _OF_PAGE:
            join = SparseRows.joined if cls.TYPES[name] == ROWS else np.concatenate
            together[name] = join([getattr(part, name) for part in parts])
        return replace(parts[0], **together)

    def in_order(self) -> PageFacts:
        """Return the facts with the links in the order of the page."""
        order = np.argsort(self.position, kind="stable")
        if (np.diff(order) == 1).all():
            return self
        (facts,) = self.parts([order])
        return facts

    def parts(self, groups: Sequence[Ints]) -> Iterator[PageFacts]:
        """Iterate over the facts of groups of links, and of the URLs they lead to.

        Parameters
        ----------
        groups : numbers of links (k,). Each link is in one of them, and all links to one URL are
            in the same
        """
        order, ends = np.concatenate(groups), pointers(np.array([len(each) for each in groups]))
        targets, links = self.targets[order], self.links.take(order)
        position, reading = self.position[order], self.reading[order]
        around = self.around[order]
        # of each new URL, a link that leads there, and the group of that
        by_target = np.argsort(targets, kind="stable")
        at = by_target[np.searchsorted(targets, self.new, sorter=by_target)]
        group = np.searchsorted(ends, at, side="right") - 1
        order = np.argsort(group, kind="stable")
        new, urls, url_keys = self.new[order], self.urls.take(order), self.url_keys[order]
        new_ends = np.searchsorted(group[order], np.arange(len(groups) + 1))
        for (i, k), (j, m) in zip(
            pairwise(ends.tolist()), pairwise(new_ends.tolist()), strict=True
        ):
            yield replace(
                self,
                targets=targets[i:k],
                position=position[i:k],
                reading=reading[i:k],
                around=around[i:k],
                links=links.part(i, k),
                new=new[j:m],
                urls=urls.part(j, m),
                url_keys=url_keys[j:m],
            )


def _check_below(numbers: NDArray[np.integer], end: int) -> None:
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < end:
        raise ValueError(f"numbers from {numbers.min()} to {numbers.max()}, not below {end}")


def pack_words(words: Iterable[str]) -> NDArray[np.uint8]:
    """Pack distinct words, for `PageFacts.vocabulary`."""
    text = "\n".join(words).encode("utf-8", "surrogatepass")
    return np.frombuffer(zlib.compress(text, 1), np.uint8)


def unpack_words(vocabulary: NDArray[np.uint8]) -> list[str]:
    """Unpack what `pack_words` has packed."""
    return zlib.decompress(vocabulary.tobytes()).decode("utf-8", "surrogatepass").split("\n")
