"""Forgetting: which pages go when there are more links than the options allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from focuscrawl.apprentice.evidence import UrlEvidence
    from focuscrawl.apprentice.link_table import LinkTable
    from focuscrawl.foundation.arrays import Bools, Floats, Ints

_ROOM = 0.75  # of the links allowed are kept, so that it is not done all the time


def least_promising(
    table: LinkTable, n_links: int, n_pages: int, promise: Floats, most: int
) -> Bools:
    """Choose the pages to forget, so that well below `most` links are left.

    A page is worth the best URL that it links to: nothing that is told of it from its other pages
    matters more. First to go are pages whose targets have all been fetched, the oldest first.

    Parameters
    ----------
    n_links, n_pages : only the first so many are looked at
    promise : float64 by URL, its score, -1 where it does not wait

    Returns
    -------
    bool (n_pages,), True to forget
    """
    page, target = table.page.data[:n_links], table.target.data[:n_links]
    best = np.full(n_pages, -1.0)
    np.maximum.at(best, page, promise[target])
    order = np.lexsort((-np.arange(n_pages), -best))
    links = np.bincount(page, minlength=n_pages)[order]
    forgotten = np.ones(n_pages, bool)
    forgotten[order[np.cumsum(links) <= _ROOM * most]] = False
    return forgotten


def without_links(table: LinkTable, evidence: UrlEvidence, y: Floats) -> Ints:
    """Return the URLs that were not fetched and that no page links to which is left.

    Parameters
    ----------
    y : float64 by URL, NaN where it was not fetched
    """
    if table.links_ever == len(table):
        return np.zeros(0, np.int64)
    met = np.flatnonzero((table.address.data[: len(y)] >= 0) & np.isnan(y))
    return np.setdiff1d(met, evidence.urls(), assume_unique=True)
