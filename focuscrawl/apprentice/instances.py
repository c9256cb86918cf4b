"""Training instances: one row of features per URL, cached between trainings."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from focuscrawl.apprentice.hashing import SparseRows, hstack, row_pointers
from focuscrawl.apprentice.learners import Instances, row_sums, unit_scale
from focuscrawl.apprentice.link_features import HASH_SIZE
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import LinkTable


#: hashed features of links, then of URLs, then of pages
N_FEATURES = 3 * HASH_SIZE
_SLICE = 100_000  # links scored at once, so that a large frontier needs little memory
_NO_INSTANCES = Instances(SparseRows.empty(0), np.zeros(0), np.zeros((0, 0)))


def make_instances(
    table: LinkTable,
    n_links: int,
    urls: Ints,
    inputs: Floats,
    *,
    unit_length: bool,
    max_links: int,
    each_link: bool = False,
    only_first: bool = False,
    n_pages: Ints | None = None,
) -> tuple[Instances, Ints]:
    """Create a training instance per URL from the mean features of links and the URL's features.

    Parameters
    ----------
    n_links : only the first `n_links` links are used
    urls : int64 (n_urls,), distinct URL ids with links
    inputs : float64 (n_urls, k), dense inputs of the URLs
    unit_length : whether the features of each link, page or URL are scaled to length 1
    max_links : only the first `max_links` links into a URL are used
    each_link : whether to create one instance per link instead [A02 section 2.3]
    only_first : whether only the first link into a URL is used
    n_pages : int64 (n_urls,), only links on the first n_pages[i] expanded pages are used for URL i

    Returns
    -------
    instances : the instances
    owner : int64 (n_instances,), position in `urls` of the URL of each instance
    """
    links, row = select_links(
        table, n_links, urls, max_links=max_links, only_first=only_first, n_pages=n_pages
    )
    share = table.weight.data[links]
    share = share / np.bincount(row, share, len(urls))[row]
    owner = np.arange(len(urls))
    if each_link:
        owner, row, share = row, np.arange(len(links)), np.ones(len(links))
    n = len(owner)
    parts = (
        (table.links.rows(n_links).take(links), share, row),
        (table.features_of_urls(urls[owner]), np.ones(n), np.arange(n)),
        (table.pages.rows(len(table.pages)).take(table.page.data[links]), share, row),
    )
    blocks, block_values = [], []
    for i, (rows, value, at) in enumerate(parts):
        scaled = unit_scale(rows) * value if unit_length else value
        lengths = np.bincount(at, rows.lengths, n).astype(np.int64)
        values = np.repeat(scaled, rows.lengths)
        if rows.values is not None:
            values = values * rows.values
        block_values.append(values)
        blocks.append(SparseRows(rows.indices + np.int32(i * HASH_SIZE), row_pointers(lengths)))
    rows, order = hstack(*blocks)
    values = np.empty(len(rows.indices))
    values[order] = np.concatenate(block_values)
    return Instances(rows, values, inputs[owner]), owner


def select_links(
    table: LinkTable,
    n_links: int,
    urls: Ints,
    *,
    max_links: int,
    only_first: bool = False,
    n_pages: Ints | None = None,
) -> tuple[Ints, Ints]:
    """Return the links that `make_instances` uses to create the instances of URLs.

    Returns
    -------
    links : int64 (n,), positions of the links in `table`, by URL and then in the order found
    row : int64 (n,), position in `urls` of the target of each link
    """
    target = table.target.data[:n_links]
    row_of = np.full(table.n_urls, -1)
    row_of[urls] = np.arange(len(urls))
    chosen = row_of[target] >= 0
    links = np.flatnonzero(chosen & table.first.data[:n_links] if only_first else chosen)
    row = row_of[target[links]]
    if n_pages is not None:
        known = table.expansion.data[table.page.data[links]] < n_pages[row]
        links, row = links[known], row[known]
    order = np.argsort(row, kind="stable")
    links, row = links[order], row[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    return links[rank < max_links], row[rank < max_links]


def link_margins(
    link_weights: NDArray[np.float32],
    page_weights: Floats,
    table: LinkTable,
    links: Ints | range,
    *,
    unit_length: bool,
) -> Floats:
    """Return the margin of each link: the weighted sum of the features of the link and its page.

    Parameters
    ----------
    link_weights, page_weights : (HASH_SIZE,), weights of the features of links and of pages
    links : int64 (n_links,) or range, positions of the links, ascending. A range avoids copies.
    unit_length : whether the features of each link or page are scaled to length 1
    """
    rows, margins = table.links.rows(len(table)), np.zeros(len(links))
    for start in range(0, len(links), _SLICE):
        some = links[start : start + _SLICE]
        margins[start : start + _SLICE] = row_margins(link_weights, rows.take(some), unit_length)
    chosen = slice(links.start, links.stop) if isinstance(links, range) else links
    page = table.page.data[chosen]
    if len(page):  # ascending, as pages are in the order expanded
        pages = table.pages.rows(int(page[-1]) + 1).row_slice(int(page[0]))
        margins += row_margins(page_weights, pages, unit_length)[page - page[0]]
    return margins


def row_margins(weights: NDArray[np.floating], rows: SparseRows, unit_length: bool) -> Floats:
    """Return the weighted sum of each row's features; `unit_length` scales rows to length 1."""
    each = weights.take(rows.indices)
    margin = row_sums(each if rows.values is None else each * rows.values, rows.indptr)
    return margin * unit_scale(rows) if unit_length else margin


class InstanceCache:
    """Creates training instances of URLs; reuses instances that an earlier training created.

    Parameters
    ----------
    unit_length, max_links : see `make_instances`
    """

    def __init__(self, *, unit_length: bool, max_links: int) -> None:
        self._unit_length = unit_length
        self._max_links = max_links
        self._table: LinkTable | None = None
        self._urls = np.zeros(0, np.int64)
        self._instances = _NO_INSTANCES

    def instances(self, table: LinkTable, n_links: int, judged: JudgedUrls) -> Instances:
        """Return one training instance per judged URL."""
        if table is not self._table:  # pages were forgotten
            self._urls, self._instances = np.zeros(0, np.int64), _NO_INSTANCES
        row_of = np.full(table.n_urls, -1)
        row_of[self._urls] = np.arange(len(self._urls))
        row = row_of[judged.urls]
        missing = np.flatnonzero(row < 0)
        new, _ = make_instances(
            table,
            n_links,
            judged.urls[missing],
            np.zeros((len(missing), 0)),
            unit_length=self._unit_length,
            max_links=self._max_links,
            n_pages=judged.n_pages[missing],
        )
        row[missing] = len(self._urls) + np.arange(len(missing))
        self._instances = _join_instances(self._instances, new, row)
        self._table, self._urls = table, judged.urls
        return Instances(self._instances.rows, self._instances.values, judged.inputs)


def _join_instances(before: Instances, new: Instances, row: Ints) -> Instances:
    """Return the instances at the positions `row` in `before` followed by `new`.

    Most instances keep their order, so contiguous runs are copied at once.
    """
    n = len(before.rows)
    cuts = np.flatnonzero((np.diff(row) != 1) | (row[1:] == n)) + 1
    bounds = [0, *cuts.tolist(), len(row)]
    indices, values = [before.rows.indices[:0]], [before.values[:0]]
    for start, end in pairwise(bounds):
        if start < end:
            first = int(row[start])
            part, first = (new, first - n) if first >= n else (before, first)
            a, b = part.rows.indptr[first], part.rows.indptr[first + end - start]
            indices.append(part.rows.indices[a:b])
            values.append(part.values[a:b])
    lengths = np.concatenate([before.rows.lengths, new.rows.lengths])[row]
    rows = SparseRows(np.concatenate(indices), row_pointers(lengths))
    return Instances(rows, np.concatenate(values), np.zeros((len(row), 0)))


class JudgedUrls(NamedTuple):
    """The URLs that the critic has judged, in the order fetched.

    Attributes
    ----------
    urls : int64 (n_urls,), URL ids
    inputs : float64 (n_urls, k), dense inputs at the time of the fetch
    predicted : float64 (n_urls,), scores at the time of the fetch
    n_pages : int64 (n_urls,), number of pages ever expanded before the fetch
    """

    urls: Ints
    inputs: Floats
    predicted: Floats
    n_pages: Ints

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Create a `JudgedUrls` from arrays with the names of its fields."""
        return cls(*(np.asarray(arrays[name]) for name in cls._fields))

    def latest(self, n: int) -> JudgedUrls:
        """Return the last `n` judged URLs, or all judged URLs if there are fewer than `n`."""
        first = max(0, len(self.urls) - n)
        return JudgedUrls._make(column[first:] for column in self)

    def take(self, rows: Ints) -> JudgedUrls:
        """Return the judged URLs at the positions `rows`."""
        return JudgedUrls._make(column[rows] for column in self)


class TrainingSet(NamedTuple):
    """The instances of one training, and the data needed to find the links of each instance.

    Attributes
    ----------
    instances : the features that the learner receives
    labels : float64 (n_instances,), the labels that the learner receives
    owner : int64 (n_instances,), position in `judged` of the URL of each instance
    judged : the judged URLs
    relevance : float64 (n_urls,), relevance R(v) of the judged URLs
    table, n_links, max_links, each_link : arguments of `make_instances`
    """

    instances: Instances
    labels: Floats
    owner: Ints
    judged: JudgedUrls
    relevance: Floats
    table: LinkTable
    n_links: int
    max_links: int
    each_link: bool

    def links(self) -> tuple[Ints, Ints]:
        """Return the positions in `table` of the links used, and the instance of each link."""
        urls, n_pages = self.judged.urls, self.judged.n_pages
        links, row = select_links(
            self.table, self.n_links, urls, max_links=self.max_links, n_pages=n_pages
        )
        return links, np.arange(len(links)) if self.each_link else row


class TrainingBuffer:
    """The latest judged URLs.

    Parameters
    ----------
    width : number of dense inputs of a URL

    Attributes
    ----------
    n_added : number of URLs ever added, including those dropped
    """

    def __init__(self, memory: int, width: int) -> None:
        self.n_added = 0
        self._memory = memory
        self._width = width
        self._clear()

    def _clear(self) -> None:
        self._urls = GrowingArray(np.int64)
        self._inputs = GrowingArray(np.float64)
        self._predicted = GrowingArray(np.float64)
        self._n_pages = GrowingArray(np.int64)

    def __len__(self) -> int:
        return min(len(self._urls), self._memory)

    @property
    def judged(self) -> JudgedUrls:
        """The judged URLs in the buffer. Later calls of `add` do not change the result."""
        inputs = self._inputs.data.reshape(-1, self._width)
        judged = JudgedUrls(self._urls.data, inputs, self._predicted.data, self._n_pages.data)
        return judged.latest(self._memory)

    def add(self, judged: JudgedUrls) -> None:
        """Append judged URLs, and drop the oldest URLs if the buffer is full."""
        if len(self._urls) >= 2 * self._memory + 1024:
            kept = self.judged
            self._clear()  # new arrays, since a training may still read the old arrays
            self._extend(kept)
        self._extend(judged)
        self.n_added += len(judged.urls)

    def _extend(self, judged: JudgedUrls) -> None:
        self._urls.extend(judged.urls)
        self._inputs.extend(judged.inputs.ravel())
        self._predicted.extend(judged.predicted)
        self._n_pages.extend(judged.n_pages)
