"""Co-citation on a page: how the links already followed did, by distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Floats, Ints


def cocitation(page: Ints, position: NDArray[np.int32], y: Floats, d_max: int) -> Floats:
    """Return (HIGH, d) and (LOW, d) of each link [A02 section 2.2.3].

    1 where a link of the same page whose first leaf is d leaves away was followed, and its target
    had R > 1/2 or not.

    Parameters
    ----------
    page : int64 (n,), number of the page of each link, ascending
    position : int32 (n,), first leaf of each link, ascending within a page
    y : float64 (n,), relevance of the target, NaN if it was not fetched
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
