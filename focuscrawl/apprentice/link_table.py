"""Features of a page and its links, and the table of all links, pages and URLs of a crawl."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from focuscrawl.apprentice.hashing import (
    ROWS,
    PackedRecord,
    SparseRows,
    row_pointers,
)
from focuscrawl.apprentice.link_features import ALIASES, HASH_SIZE, PATTERNS, PREFIXES
from focuscrawl.foundation.arrays import Bools, Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray


_KEYS = PREFIXES + PATTERNS + ALIASES
_PAGE_FIELDS = {"relevance", "own_keys", "page_indices", "page_values", "vocabulary"}
_NEW_FIELDS = {"new", "urls", "url_keys"}
_KEYED = {"own_keys", "url_keys"}  # fields with a row of keys for each URL
_COLUMNS = ("source", "target", "weight", "reading", "around", "relevance", "first", "position")
_SLICE = 100_000  # links copied at once, to save memory
_SEEN_BITS = 22
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class PageFeatures(PackedRecord):
    """Features of pages, of their links, and of the link targets that are new to the crawl.

    The arrays of several pages are concatenated, page after page.

    Attributes
    ----------
    relevance : float64 (n_pages,), relevance of each page
    own_keys : uint32 (n_pages, 15), keys (`focuscrawl.apprentice.link_features.url_set_keys`) of
        each page's own URL
    page_indices : int32 (n_features,), hashed features of the pages
    targets : int64 (n_links,), target of each link, as a URL id
    position : int32 (n_links,), first DOM leaf of each link
    reading : float32 (n_links,), critic's log-odds of relevance from the words of anchor and URL
    links : hashed features of each link
    new : int64 (n_new,), targets that no earlier page links to, as URL ids
    urls : hashed features of each new URL
    url_keys : uint32 (n_new, 15), keys of each new URL
    vocabulary : uint8, compressed words of the page, to name hashed features
    around : float32 (n_links,), critic's log-odds of relevance from the words in and around the
        link
    page_values : float32 (n_features,) or (0,), values of the features of the page; empty if all
        are 1
    sizes : int64 (n_pages, n_arrays) or None, sizes of the packed arrays of each page; None: of
        one page
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
    sizes: Ints | None = None

    TYPES: ClassVar[Mapping[str, str]] = {
        "relevance": "<f8",
        "own_keys": f"({_KEYS},)<u4",
        "page_indices": "<i4",
        "targets": "<i8",
        "position": "<i4",
        "reading": "<f4",
        "links": ROWS,
        "new": "<i8",
        "urls": ROWS,
        "url_keys": f"({_KEYS},)<u4",
        "vocabulary": "u1",
        "around": "<f4",
        "page_values": "<f4",
    }

    @classmethod
    def from_bytes(cls, data: bytes, n_urls: int | None = None) -> Self:
        """Unpack the features of a page that `to_bytes` packed.

        Parameters
        ----------
        data : packed features
        n_urls : URL ids must be below this number; None skips the check

        Raises
        ------
        ValueError
            The data are damaged.
        """
        features = cls.from_records([data])
        if n_urls is not None:
            _check_below(features.targets, n_urls)
            _check_below(features.new, n_urls)
        return features

    @classmethod
    def from_records(cls, records: Sequence[bytes]) -> Self:
        """Unpack the features of several pages; raise ValueError if the data are damaged."""
        fields, sizes = cls._unpack(records)
        features = cls(**fields, sizes=sizes)
        _check_below(features.page_indices, HASH_SIZE)
        n_values = features.counts("page_values")
        matches = (n_values == 0) | (n_values == features.counts("page_indices"))
        if not matches.all() or not (np.abs(features.page_values) <= 1.0).all():
            raise ValueError("the values of features do not match the features")
        for name, owner in (("links", "targets"), ("urls", "new")):
            rows, n_rows = getattr(features, name), features.counts(name)
            _check_below(rows.indices, HASH_SIZE)
            _check_below(rows.lengths, len(rows.indices) + 1)
            ends = row_pointers(sizes[:, _COLUMN[name]])
            if (n_rows != features.counts(owner)).any() or (
                rows.indptr[row_pointers(n_rows)] != ends
            ).any():
                raise ValueError("the rows of features do not match the links")
        return features

    def to_records(self) -> list[bytes]:
        """Pack the features of each page like `to_bytes`."""
        if self.sizes is None:
            return [self.to_bytes()]
        parts = [self.sizes.astype("<i4").tobytes()]
        nbytes = [np.full(len(self.sizes), 4 * self.sizes.shape[1])]
        for array, size in zip(self._arrays(), self.sizes.T, strict=True):
            parts.append(array.tobytes())
            nbytes.append(size * array.itemsize)
        slices = [
            [part[a:b] for a, b in pairwise(row_pointers(each).tolist())]
            for part, each in zip(parts, nbytes, strict=True)
        ]
        return [*map(b"".join, zip(*slices, strict=True))]

    def counts(self, name: str) -> Ints:
        """Return how many entries of a field each page has, int64 (n_pages,)."""
        if self.sizes is None:
            return np.array([len(getattr(self, name))])
        if self.TYPES[name] == ROWS:
            return self.sizes[:, _COLUMN[name] + 1]
        return self.sizes[:, _COLUMN[name]] // (_KEYS if name in _KEYED else 1)

    def page_of(self, name: str) -> Ints:
        """Return the position of the page of each entry of a field, int64 (n,), ascending."""
        if self.sizes is None:
            return np.zeros(len(getattr(self, name)), np.int64)
        return np.arange(len(self.relevance)).repeat(self.counts(name))

    def with_targets(self, targets: Ints) -> PageFeatures:
        """Return a copy in which the link targets have other URL ids (n_links,)."""
        if np.array_equal(targets, self.targets):
            return self
        return replace(self, targets=targets, new=targets[self.first_links()])

    def first_links(self) -> Ints:
        """Return the position of the first link of the page to each new target, (n_new,)."""
        target, new = self.targets, self.new
        if len(self.relevance) > 1:  # equal targets of two pages differ
            n = int(target.max(initial=0)) + 1
            target, new = target + n * self.page_of("targets"), new + n * self.page_of("new")
        order = np.argsort(target, kind="stable")
        first: Ints = order[target[order].searchsorted(new)]
        return first

    def regroup(self, links: Ints, page: Ints, origin: Ints) -> PageFeatures:
        """Return the features of other pages with the same links.

        Parameters
        ----------
        links : int64 (n_links,), positions of all links in their new order. New targets follow
            the first link to them.
        page : int64 (n_links,), new page of each of these links, ascending
        origin : int64 (n,), the present page from which each new page has the features of a page
        """
        page_of_link = np.empty(len(links), np.int64)
        page_of_link[links] = page
        page_of_new = page_of_link[self.first_links()]
        new = np.argsort(page_of_new, kind="stable")
        fields: dict[str, Any] = {}
        sizes: list[Ints] = []
        for name, types in self.TYPES.items():
            value = getattr(self, name)
            at, owner = (new, page_of_new[new]) if name in _NEW_FIELDS else (links, page)
            counts = np.bincount(owner, minlength=len(origin))
            if name in _PAGE_FIELDS:
                bounds, counts = row_pointers(self.counts(name)), self.counts(name)[origin]
                slices = zip(bounds[origin].tolist(), bounds[origin + 1].tolist(), strict=True)
                fields[name] = np.concatenate([value[start:end] for start, end in slices])
            elif types == ROWS:
                fields[name] = rows = value.take(at)
                sizes.append(np.diff(rows.indptr[row_pointers(counts)]))
            else:
                fields[name] = value[at]
            sizes.append(counts * (_KEYS if name in _KEYED else 1))
        return PageFeatures(**fields, sizes=np.column_stack(sizes))

    def pages(self) -> SparseRows:
        """Return the hashed features of each page."""
        counts, values = self.counts("page_indices"), self.page_values
        if 0 < len(values) < len(self.page_indices):  # all values of the other pages are 1
            values = np.ones(len(self.page_indices), np.float32)
            values[(self.counts("page_values") > 0).repeat(counts)] = self.page_values
        return SparseRows(self.page_indices, row_pointers(counts), values if len(values) else None)

    def merge(self, first: Ints) -> PageFeatures:
        """Join consecutive parts of pages; sort the links of each page in document order.

        Parameters
        ----------
        first : int64 (n,), position of the first part of each page
        """
        page = first.searchsorted(self.page_of("targets"), side="right") - 1
        order = np.lexsort((self.position, page))
        if len(first) == len(self.relevance) and (np.diff(order) == 1).all():
            return self
        return self.regroup(order, page, first)


#: position of the first packed array of each field
_COLUMN = dict(
    zip(
        PageFeatures.TYPES,
        np.cumsum([0, *(len(types.split()) for types in PageFeatures.TYPES.values())]).tolist(),
        strict=False,
    )
)


def _check_below(numbers: NDArray[np.integer], end: int) -> None:
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < end:
        raise ValueError(f"numbers {numbers.min()} to {numbers.max()} are not in [0, {end})")


def pack_words(words: Iterable[str]) -> NDArray[np.uint8]:
    """Pack distinct words into arrays, for `PageFeatures.vocabulary`."""
    text = "\n".join(words).encode("utf-8", "surrogatepass")
    # distinct words hardly repeat each other, so a search for repetitions would gain 2 to 4 %
    packer = zlib.compressobj(1, strategy=zlib.Z_HUFFMAN_ONLY)
    return np.frombuffer(packer.compress(text) + packer.flush(), np.uint8)


def unpack_words(vocabulary: NDArray[np.uint8]) -> list[str]:
    """Return the words that `pack_words` packed."""
    return zlib.decompress(vocabulary.tobytes()).decode("utf-8", "surrogatepass").split("\n")


class RowStore:
    """`SparseRows` to which rows can be appended; views of earlier rows stay valid."""

    def __init__(self) -> None:
        self._indices = GrowingArray(np.int32)
        self._indptr = GrowingArray(np.int64)
        self._indptr.extend([0])
        self._values = GrowingArray(np.float32, fill=1)  # empty as long as all are 1

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def extend(self, rows: SparseRows) -> None:
        """Append rows."""
        start = len(self._indices)
        if rows.values is not None:
            self._values.grow(start)
            self._values.extend(rows.values)
        elif len(self._values):
            self._values.grow(start + len(rows.indices))
        self._indices.extend(rows.indices)
        self._indptr.extend(rows.indptr[1:] + start)  # last, since a training may read meanwhile

    def append(
        self, features: NDArray[np.int32], values: NDArray[np.float32] | None = None
    ) -> None:
        """Append one row."""
        self.extend(SparseRows(features, np.array([0, len(features)], np.int64), values))

    def rows(self, n: int) -> SparseRows:
        """Return a view of the first n rows."""
        indptr = self._indptr.data[: n + 1]
        values = self._values.data[: indptr[-1]] if len(self._values) else None
        return SparseRows(self._indices.data[: indptr[-1]], indptr, values)

    def row_slice(self, first: int) -> SparseRows:
        """Return a view of the rows from the position `first` to the end."""
        return self.rows(len(self)).row_slice(first)

    def take(self, rows: Ints) -> RowStore:
        """Copy the rows at some positions to a new store."""
        copied = RowStore()
        for start in range(0, len(rows), _SLICE):
            copied.extend(self.rows(len(self)).take(rows[start : start + _SLICE]))
        return copied


class LinkTable:
    """Table of all links of a crawl in the order found, with their pages and URLs.

    A page can be *forgotten*: the page and its links are removed from the arrays. Link arrays have
    one entry per link, and URL arrays have one entry per URL id.

    Attributes
    ----------
    links_ever, pages_ever : links and pages ever added, including forgotten pages
    expansion : for each page, the number of pages added before (int64)
    source, target : URL ids of the ends of each link (int64)
    weight : weight of each link (float64). The m-th link of a host to a URL with the same words
        around has the weight 1/sqrt(m), so that repeated template links count little.
    reading, around : critic's log-odds of relevance by the words of each link, and by the words
        around each link (float32)
    relevance : relevance of the page of each link (float64)
    first : whether a link was the first link to its target (bool)
    position : first DOM leaf of each link (int32)
    page : row in `pages` of the page of each link (int64)
    y : relevance by URL id; NaN for unfetched URLs (float64)
    url_row : row in `url_rows` by URL id; -1 for none (int64)
    links, pages, url_rows : hashed features of links, pages and URLs
    """

    def __init__(self) -> None:
        self.links_ever = 0
        self.pages_ever = 0
        self.expansion = GrowingArray(np.int64)
        self.source = GrowingArray(np.int64)
        self.target = GrowingArray(np.int64)
        self.weight = GrowingArray(np.float64)
        self.reading = GrowingArray(np.float32)
        self.around = GrowingArray(np.float32)
        self.relevance = GrowingArray(np.float64)
        self.first = GrowingArray(np.bool_)
        self.position = GrowingArray(np.int32)
        self.page = GrowingArray(np.int64)
        self.y = GrowingArray(np.float64, fill=np.nan)
        self.url_row = GrowingArray(np.int64, fill=-1)
        self._keys = GrowingArray(np.uint32)
        self.links = RowStore()
        self.pages = RowStore()
        self.url_rows = RowStore()
        self._seen = np.zeros(1 << _SEEN_BITS, np.uint16)

    def __len__(self) -> int:
        return len(self.target)

    @property
    def n_urls(self) -> int:
        """Length of the arrays with one entry per URL id; all URL ids are below this length."""
        return len(self.y)

    def keys(self, urls: Ints) -> NDArray[np.uint32]:
        """Return the `url_set_keys` of `urls`, uint32 (n, 15); keys of unknown URLs are 0."""
        return self._keys.data.reshape(-1, _KEYS)[urls]

    def features_of_urls(self, urls: Ints) -> SparseRows:
        """Return the hashed features of URLs; may run while another thread calls `add`.

        In a crawl in rounds (batches of fetches), the method `add` may replace the features of a
        queued URL.
        """
        rows = self.url_row.data[urls]  # first, so that all rows exist
        return self.url_rows.rows(len(self.url_rows)).take(rows)

    def grow(self, n_urls: int) -> None:
        """Extend the arrays that are indexed by URL id to the length `n_urls`."""
        self._keys.grow(n_urls * _KEYS)
        self.url_row.grow(n_urls)
        self.y.grow(n_urls)

    def has_keys(self, url: int) -> bool:
        """Return whether the hashes `url_set_keys` of a URL are known."""
        return url < self.n_urls and bool(self._keys.data[(url + 1) * _KEYS - 1])

    def add(self, url: int | Ints, features: PageFeatures, *, forget: bool = False) -> None:
        """Add pages and their links.

        Parameters
        ----------
        url : URL id of the page, or int64 (n_pages,)
        forget : whether to add only the link targets
        """
        urls, n, n_pages = np.atleast_1d(url), len(features.targets), len(features.relevance)
        self.grow(max(int(urls.max()), int(features.targets.max(initial=0))) + 1)
        table = self._keys.data.reshape(-1, _KEYS)
        table[features.new] = features.url_keys
        table[urls] = features.own_keys
        rows = len(self.url_rows) + np.arange(len(features.new))
        self.url_rows.extend(features.urls)  # first, since a training may read meanwhile
        self.url_row.data[features.new] = rows
        page = features.page_of("targets")
        weight = self._weights(features, page)
        self.links_ever += n
        self.pages_ever += n_pages
        if forget:
            return
        self.expansion.extend(np.arange(self.pages_ever - n_pages, self.pages_ever))
        self.weight.extend(weight)
        self.source.extend(urls[page])
        self.relevance.extend(features.relevance[page])
        self.reading.extend(features.reading)
        self.around.extend(features.around)
        self.position.extend(features.position)
        is_first = np.zeros(n, bool)
        is_first[features.first_links()] = True
        self.first.extend(is_first)
        self.page.extend(len(self.pages) + page)
        self.pages.extend(features.pages())
        self.links.extend(features.links)
        self.target.extend(features.targets)

    def without_pages(self, forgotten: Bools, n_links: int) -> Self:
        """Return a table with the first `n_links` links, except those of `forgotten` pages.

        Parameters
        ----------
        forgotten : bool (n_pages,), mask of the pages of these links
        """
        page = self.page.data[:n_links]
        links, pages = np.flatnonzero(~forgotten[page]), np.flatnonzero(~forgotten)
        kept = copy.copy(self)  # both tables share the URLs, which are never forgotten
        for name in _COLUMNS:
            setattr(kept, name, _growing_array(getattr(self, name).data[links]))
        kept.page = _growing_array((np.cumsum(~forgotten) - 1)[page[links]])
        kept.expansion = _growing_array(self.expansion.data[pages])
        kept.links, kept.pages = self.links.take(links), self.pages.take(pages)
        return kept

    def append_rest(self, other: Self, n_links: int, n_pages: int) -> None:
        """Append the table `other`, except its first `n_links` links and `n_pages` pages."""
        for name in (*_COLUMNS, "page"):
            late = getattr(other, name).data[n_links:]
            shift = len(self.pages) - n_pages if name == "page" else 0
            getattr(self, name).extend(late + shift if shift else late)
        self.expansion.extend(other.expansion.data[n_pages:])
        self.links.extend(other.links.row_slice(n_links))
        self.pages.extend(other.pages.row_slice(n_pages))
        self.links_ever, self.pages_ever = other.links_ever, other.pages_ever

    def forgotten_pages(self, n_pages: int, pages_ever: int) -> Bools:
        """Return a mask of the forgotten pages among the first `pages_ever` pages.

        The mask is empty if no page was forgotten.
        """
        if n_pages == pages_ever:
            return np.zeros(0, bool)
        forgotten = np.ones(pages_ever, bool)
        forgotten[self.expansion.data[:n_pages]] = False
        return forgotten

    def _weights(self, features: PageFeatures, page: Ints) -> Floats:
        """Return link weights by the number of earlier links with equal host, target and words."""
        links, host = features.links, features.own_keys[:, 0].astype(np.uint64)
        total = np.zeros(len(links.indices) + 1, np.uint64)
        (links.indices.astype(np.uint64) * _MULTIPLIER).cumsum(out=total[1:])
        words = total[links.indptr[1:]] - total[links.indptr[:-1]]
        key = words ^ features.targets.astype(np.uint64) ^ (host << np.uint64(24))[page]
        slots = ((key * _MULTIPLIER) >> np.uint64(64 - _SEEN_BITS)).astype(np.int64)
        before = self._seen[slots].astype(np.float64)
        if len(host) > 1:  # earlier pages of these count
            pairs, at = np.unique(slots * len(host) + page, return_inverse=True)
            slot = pairs // len(host)
            before += (np.arange(len(slot)) - slot.searchsorted(slot))[at]
        before = np.minimum(before, np.iinfo(np.uint16).max - 1)
        self._seen[slots] = (before + 1).astype(np.uint16)  # the last page's for equal slots
        return 1.0 / np.sqrt(before + 1.0)


def _growing_array(values: NDArray[np.generic]) -> GrowingArray:
    array = GrowingArray(values.dtype)
    array.extend(values)
    return array
