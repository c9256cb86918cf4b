"""Training instances: one row of features a URL, of all links into it; and sums by weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.learners.matrix import Instances, row_sums, unit
from focuscrawl.apprentice.options import MAX_LINKS
from focuscrawl.apprentice.page_facts import BITS
from focuscrawl.apprentice.sparse_rows import SparseRows, beside, pointers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.foundation.arrays import Floats, Ints

#: hashed features of links, addresses and pages lie one after another
SPACE = 1 << BITS
N_FEATURES = 3 * SPACE
_SLICE = 100_000  # links scored in one go, so that a large frontier needs little memory


def make_instances(
    table: LinkTable,
    n_links: int,
    urls: Ints,
    inputs: Floats,
    *,
    unit_length: bool = True,
    each_link: bool = False,
    only_first: bool = False,
    most: int = MAX_LINKS,
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
    most : take no more links to a URL than these, the first found
    each_link : make one instance a link (u, v) instead, as the paper does [A02 section 2.3]

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
    order = np.argsort(row, kind="stable")
    links, row = links[order], row[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    links, row = links[rank < most], row[rank < most]
    share = table.weight.data[links]
    share = share / np.bincount(row, share, len(urls))[row]
    owner = np.arange(len(urls))
    if each_link:
        owner, row, share = row, np.arange(len(links)), np.ones(len(links))
    n = len(owner)
    parts = (
        (table.links.rows(n_links).take(links), share, row),
        (table.addresses_of(urls[owner]), np.ones(n), np.arange(n)),
        (table.pages.rows(len(table.pages)).take(table.page.data[links]), share, row),
    )
    blocks = []
    for rows, value, at in parts:
        scaled = unit(rows) * value if unit_length else value
        lengths = np.bincount(at, rows.lengths, n).astype(np.int64)
        values = np.repeat(scaled, rows.lengths)
        if rows.values is not None:
            values = values * rows.values
        blocks.append((SparseRows(rows.indices, pointers(lengths)), values))
    return _side_by_side(blocks, inputs[owner]), owner


def _side_by_side(blocks: list[tuple[SparseRows, Floats]], inputs: Floats) -> Instances:
    moved = [
        SparseRows(rows.indices + np.int32(i * SPACE), rows.indptr)
        for i, (rows, _) in enumerate(blocks)
    ]
    rows, order = beside(*moved)
    values = np.empty(len(rows.indices))
    values[order] = np.concatenate([value for _, value in blocks])
    return Instances(rows, values, inputs)


def link_margins(
    of_links: NDArray[np.float32],
    of_pages: Floats,
    table: LinkTable,
    links: Ints | range,
    *,
    unit_length: bool = True,
) -> Floats:
    """Return what links and their pages say by weights (SPACE,) of either.

    Parameters
    ----------
    links : int64 (n,), their numbers, ascending; what a range has is not copied
    """
    rows, margins = table.links.rows(len(table)), np.zeros(len(links))
    for start in range(0, len(links), _SLICE):
        some = links[start : start + _SLICE]
        margins[start : start + _SLICE] = _margins(of_links, rows.take(some), unit_length)
    chosen = slice(links.start, links.stop) if isinstance(links, range) else links
    page = table.page.data[chosen]
    if len(page):
        pages = table.pages.rows(int(page[-1]) + 1).part(int(page[0]))  # in the order expanded
        margins += _margins(of_pages, pages, unit_length)[page - page[0]]
    return margins


def address_margins(
    weights: Floats, table: LinkTable, urls: Ints, *, unit_length: bool = True
) -> Floats:
    """Return what the addresses of `urls` say by `weights` (N_FEATURES,)."""
    return _margins(weights[SPACE : 2 * SPACE], table.addresses_of(urls), unit_length)


def _margins(weights: NDArray[np.floating], rows: SparseRows, unit_length: bool) -> Floats:
    said = weights.take(rows.indices)
    margin = row_sums(said if rows.values is None else said * rows.values, rows.indptr)
    return margin * unit(rows) if unit_length else margin
