"""Co-citation on a page: how the links already followed did, by page and by distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats, Ints

_NEAR = 6  # links on either side
_BELIEF = 1.0  # how many followed links R(u) counts for


def hub_rates(page: Ints, relevance: Floats, y: Floats) -> Floats:
    """Return how relevant the followed links of each link's page were, shrunk to R(u).

    Parameters
    ----------
    page : int64 (n,), number of the page of each link, ascending
    relevance : (n,), R(u)
    y : (n,), relevance of the target, NaN if it was not fetched

    Returns
    -------
    float64 (n,)
    """
    known = np.isfinite(y)
    n_pages = int(page[-1]) + 1 if len(page) else 0
    total = np.bincount(page, np.where(known, y, 0.0), n_pages)[page]
    count = np.bincount(page, known, n_pages)[page]
    return (total + _BELIEF * relevance) / (count + _BELIEF)


def near_links(page: Ints, y: Floats) -> tuple[Floats, Floats]:
    """Return relevance and number of the followed links beside each link, itself left out.

    The co-citation of [A02 section 2.2.3], counted over the six links on either side on the same
    page. Parameters as in `hub_rates`.
    """
    known = np.isfinite(y).astype(np.float64)
    value = np.where(known > 0, y, 0.0)
    at = np.arange(len(page))
    links = np.bincount(page)
    end = np.cumsum(links)
    low = np.maximum(at - _NEAR, (end - links)[page])
    high = np.minimum(at + _NEAR + 1, end[page])
    totals = np.concatenate([[0.0], np.cumsum(value)])
    counts = np.concatenate([[0.0], np.cumsum(known)])
    return totals[high] - totals[low] - value, counts[high] - counts[low] - known


def cocitation(page: Ints, position: NDArray[np.int32], y: Floats, d_max: int) -> Floats:
    """Return (HIGH, d) and (LOW, d) of each link [A02 section 2.2.3].

    1 where a link of the same page whose first leaf is d leaves away was followed, and its target
    had R > 1/2 or not.

    Parameters
    ----------
    page, y : as in `hub_rates`
    position : int32 (n,), first leaf of each link, ascending within a page
    d_max : greatest distance

    Returns
    -------
    float64 (n, 2 (2 d_max + 1)), HIGH from -d_max to d_max, then LOW
    """
    width = 2 * d_max + 1
    found = np.zeros((len(page), 2 * width))
    level = np.where(y > 0.5, 0, width) + d_max
    known = np.isfinite(y)
    for apart in range(1, d_max + 1):  # links between: each covers a leaf of its own at least
        distance = position[apart:] - position[:-apart]
        near = (page[apart:] == page[:-apart]) & (distance <= d_max) & (distance >= 0)
        left = np.flatnonzero(near)
        right = left + apart
        distance = distance[left]
        for one, other, offset in ((left, right, distance), (right, left, -distance)):
            told = known[other]
            found[one[told], (level[other] + offset)[told]] = 1.0
    return found
