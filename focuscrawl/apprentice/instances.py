"""Training instances: one row of features a URL, kept from lesson to lesson."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from focuscrawl.apprentice.hashing import SparseRows, hstack, row_pointers
from focuscrawl.apprentice.learners import Instances, row_sums, unit_scale
from focuscrawl.apprentice.link_features import BITS
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import LinkTable


#: hashed features of links, addresses and pages lie one after another
SPACE = 1 << BITS
N_FEATURES = 3 * SPACE
_SLICE = 100_000  # links scored in one go, so that a large frontier needs little memory
_NOTHING = Instances(SparseRows.empty(0), np.zeros(0), np.zeros((0, 0)))


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
    """Make one instance a URL: the mean of its links' features, and its own.

    Parameters
    ----------
    table : links and features
    n_links : only the first so many links
    urls : int64 (n,), distinct, with links and addresses
    inputs : float64 (n, k), their dense inputs
    unit_length : scale the features of a link, page or address to length 1; else they are ones,
        or have the values that they have
    only_first : take only the first link to each URL
    max_links : take no more links to a URL than these, the first found
    each_link : make one instance a link (u, v) instead, as the paper does [A02 section 2.3]
    n_pages : int64 (n,); take only the links to the URL i that the first n_pages[i] expanded
        pages have

    Returns
    -------
    m instances, and the number of the URL of each: int64 (m,), positions in `urls`
    """
    target = table.target.data[:n_links]
    row_of = np.full(table.n_urls, -1)
    row_of[urls] = np.arange(len(urls))
    taken = row_of[target] >= 0
    links = np.flatnonzero(taken & table.first.data[:n_links] if only_first else taken)
    row = row_of[target[links]]
    if n_pages is not None:
        known = table.expansion.data[table.page.data[links]] < n_pages[row]
        links, row = links[known], row[known]
    order = np.argsort(row, kind="stable")
    links, row = links[order], row[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    links, row = links[rank < max_links], row[rank < max_links]
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
        blocks.append(SparseRows(rows.indices + np.int32(i * SPACE), row_pointers(lengths)))
    rows, order = hstack(*blocks)
    values = np.empty(len(rows.indices))
    values[order] = np.concatenate(block_values)
    return Instances(rows, values, inputs[owner]), owner


def link_margins(
    of_links: NDArray[np.float32],
    of_pages: Floats,
    table: LinkTable,
    links: Ints | range,
    *,
    unit_length: bool,
) -> Floats:
    """Return the margins of links and their pages by weights (SPACE,) of either.

    Parameters
    ----------
    links : int64 (n,), their numbers, ascending; what a range has is not copied
    """
    rows, margins = table.links.rows(len(table)), np.zeros(len(links))
    for start in range(0, len(links), _SLICE):
        some = links[start : start + _SLICE]
        margins[start : start + _SLICE] = row_margins(of_links, rows.take(some), unit_length)
    chosen = slice(links.start, links.stop) if isinstance(links, range) else links
    page = table.page.data[chosen]
    if len(page):
        pages = table.pages.rows(int(page[-1]) + 1).row_slice(
            int(page[0])
        )  # in the order expanded
        margins += row_margins(of_pages, pages, unit_length)[page - page[0]]
    return margins


def row_margins(weights: NDArray[np.floating], rows: SparseRows, unit_length: bool) -> Floats:
    """Return the sum of the weights of each row's features, scaled to length 1 if asked for."""
    each = weights.take(rows.indices)
    margin = row_sums(each if rows.values is None else each * rows.values, rows.indptr)
    return margin * unit_scale(rows) if unit_length else margin


class InstanceCache:
    """Makes the instances of judged URLs with `make_instances`, each of them once.

    Parameters
    ----------
    unit_length, max_links : see `make_instances`
    """

    def __init__(self, *, unit_length: bool, max_links: int) -> None:
        self._unit_length = unit_length
        self._max_links = max_links
        self._table: LinkTable | None = None
        self._urls = np.zeros(0, np.int64)
        self._instances = _NOTHING

    def instances(self, table: LinkTable, n_links: int, judged: JudgedUrls) -> Instances:
        """Return one instance a URL; only the instances of the last call are remembered."""
        if table is not self._table:  # links were forgotten
            self._urls, self._instances = np.zeros(0, np.int64), _NOTHING
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
    """Return the instances numbered `row`, those of `new` being numbered after those of before.

    Most of them follow one another as they did: they are copied stretch by stretch.
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
    """n URLs that were judged, in the order fetched.

    Attributes
    ----------
    urls : int64 (n,), their numbers
    inputs : float64 (n, k), their inputs when they were fetched
    predicted : float64 (n,), their scores when they were fetched
    n_pages : int64 (n,), pages expanded before each URL was fetched, those forgotten included
    """

    urls: Ints
    inputs: Floats
    predicted: Floats
    n_pages: Ints

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Return those of which a pack has the columns."""
        return cls(*(np.asarray(arrays[name]) for name in cls._fields))

    def latest(self, n: int) -> JudgedUrls:
        """Return the last `n` of them, or all there are."""
        first = max(0, len(self.urls) - n)
        return JudgedUrls._make(column[first:] for column in self)

    def take(self, rows: Ints) -> JudgedUrls:
        """Return those at the positions `rows`."""
        return JudgedUrls._make(column[rows] for column in self)


class TrainingBuffer:
    """The latest judged URLs.

    Parameters
    ----------
    memory : how many are kept
    width : k, inputs of each

    Attributes
    ----------
    n_added : number of URLs added, those forgotten included
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
        """Those kept; views that stay as they are."""
        inputs = self._inputs.data.reshape(-1, self._width)
        judged = JudgedUrls(self._urls.data, inputs, self._predicted.data, self._n_pages.data)
        return judged.latest(self._memory)

    def add(self, judged: JudgedUrls) -> None:
        """Append some; what is too old is forgotten."""
        if len(self._urls) >= 2 * self._memory + 1024:
            kept = self.judged
            self._clear()  # anew: somebody may be reading the old ones
            self._extend(kept)
        self._extend(judged)
        self.n_added += len(judged.urls)

    def _extend(self, judged: JudgedUrls) -> None:
        self._urls.extend(judged.urls)
        self._inputs.extend(judged.inputs.ravel())
        self._predicted.extend(judged.predicted)
        self._n_pages.extend(judged.n_pages)
