"""A URL as an instance: all links into it, their pages, and its address, in one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.facts import BITS
from focuscrawl.apprentice.learners.instances import Instances, row_sums, unit
from focuscrawl.apprentice.rows import Rows, pointers, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.known import Known

#: hashed features of links, addresses and pages lie one after another
SPACE = 1 << BITS
N_FEATURES = 3 * SPACE
#: links of a URL that are learned from, the first found: bounds the cost of popular URLs
MAX_LINKS = 16
_SLICE = 100_000  # links scored in one go, so that a large frontier needs little memory


def bags(
    known: Known, n_links: int, urls: NDArray[np.int64], inputs: NDArray[np.float64]
) -> Instances:
    """Make one instance a URL: the mean of its links' features, and its own.

    Parameters
    ----------
    known : links and features
    n_links : only the first so many links
    urls : int64 (n,), distinct, with links and addresses
    inputs : float64 (n, k), their dense inputs
    """
    target = known.target.data[:n_links]
    row_of = np.full(known.n_urls, -1)
    row_of[urls] = np.arange(len(urls))
    links = np.flatnonzero(row_of[target] >= 0)
    row = row_of[target[links]]
    order = np.argsort(row, kind="stable")
    links, row = links[order], row[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    links, row = links[rank < MAX_LINKS], row[rank < MAX_LINKS]
    share = known.weight.data[links]
    share = share / np.bincount(row, share, len(urls))[row]
    blocks = [
        _spread(known.links.rows(n_links).take(links), share, row, len(urls)),
        _spread(
            known.addresses.rows(len(known.addresses)).take(known.address.data[urls]),
            np.ones(len(urls)),
            np.arange(len(urls)),
            len(urls),
        ),
        _spread(
            known.pages.rows(len(known.pages)).take(known.page.data[links]),
            share,
            row,
            len(urls),
        ),
    ]
    return _side_by_side(blocks, inputs)


def _spread(
    rows: Rows, share: NDArray[np.float64], owner: NDArray[np.int64], n: int
) -> tuple[Rows, NDArray[np.float64]]:
    """Join the rows of each owner, scaled to unit length and by `share`."""
    values = np.repeat(unit(rows) * share, rows.lengths)
    lengths = np.bincount(owner, rows.lengths, n).astype(np.int64)
    return Rows(rows.indices, pointers(lengths)), values


def _side_by_side(
    blocks: list[tuple[Rows, NDArray[np.float64]]], inputs: NDArray[np.float64]
) -> Instances:
    lengths = np.array([rows.lengths for rows, _ in blocks])
    indptr = pointers(lengths.sum(axis=0))
    indices = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1])
    begin = indptr[:-1].copy()
    for number, ((rows, value), length) in enumerate(zip(blocks, lengths, strict=True)):
        at = ranges(begin, length)
        indices[at] = rows.indices + np.int32(number * SPACE)
        values[at] = value
        begin += length
    return Instances(Rows(indices, indptr), values, inputs)


def link_margins(
    weights: NDArray[np.float64], known: Known, first: int, end: int
) -> NDArray[np.float64]:
    """Return what links `first` to `end` and their pages say by `weights` (N_FEATURES,)."""
    of_links = weights[:SPACE].astype(np.float32)
    rows = known.links.rows(end)
    found = [np.zeros(0)]
    for start in range(first, end, _SLICE):
        stop = min(start + _SLICE, end)
        a, b = rows.indptr[start], rows.indptr[stop]
        part = Rows(rows.indices[a:b], rows.indptr[start : stop + 1] - a)
        found.append(row_sums(of_links[part.indices], part.indptr) * unit(part))
    page = known.page.data[first:end]
    if not len(page):
        return found[0]
    of_pages = _margins(weights[2 * SPACE :], known.pages.rows(int(page[-1]) + 1))
    margins: NDArray[np.float64] = np.concatenate(found)
    margins += of_pages[page]
    return margins


def address_margins(
    weights: NDArray[np.float64], known: Known, urls: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return what the addresses of `urls` say by `weights` (N_FEATURES,)."""
    rows = known.addresses.rows(len(known.addresses)).take(known.address.data[urls])
    return _margins(weights[SPACE : 2 * SPACE], rows)


def _margins(weights: NDArray[np.float64], rows: Rows) -> NDArray[np.float64]:
    return row_sums(weights[rows.indices], rows.indptr) * unit(rows)
