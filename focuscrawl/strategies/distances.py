"""Clicks from each URL to the nearest goal, over the links a crawl knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Bools, Ints

FAR = 99  # no path is known


def distances(source: Ints, target: Ints, goals: Bools, *, limit: int) -> Ints:
    """Return the clicks from each URL to the nearest goal.

    Parameters
    ----------
    source, target : int64 (n_links,), the ends of the links
    goals : bool (n_urls,), the goals; their distance is 0
    limit : longest distance looked for

    Returns
    -------
    int64 (n_urls,), `FAR` where no path of at most `limit` clicks is known
    """
    n = len(goals)
    links = sparse.csr_matrix((np.ones(len(source), np.float32), (source, target)), shape=(n, n))
    found = np.where(goals, 0, FAR)
    for step in range(1, limit + 1):
        ring = (found == step - 1).astype(np.float32)
        if not ring.any():
            break
        found[(links @ ring > 0) & (found == FAR)] = step
    return found
