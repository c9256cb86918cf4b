"""Discounted rewards: what fetching a URL was worth by what a crawl found behind it."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.apprentice.sparse_rows import pointers
from focuscrawl.strategies.distances import FAR, distances

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats, Ints

HORIZON = 6  # fetches looked ahead: what comes later counts less than gamma^6, at most 1/64


def discounted_rewards(
    source: Ints, target: Ints, relevance: Floats, wanted: Ints, *, gamma: float
) -> Floats:
    """Return the value of fetching each of some URLs, by what a crawl has found behind it.

    After the URL itself, of all that is known to be linked from what was fetched since, what is
    nearest to a relevant page is fetched next, the more relevant before the less; the t-th fetch
    earns gamma^t times its relevance, if that is above 1/2: what Rennie and McCallum 1999 ask of
    an optimal spider, but for this: distances are not counted anew when a relevant page has been
    fetched, so a step may lead towards one that is no longer there to be had.

    Parameters
    ----------
    source, target : int64 (n_links,), the ends of the links
    relevance : float64 (n_urls,), NaN for URLs that were not fetched
    wanted : int64 (n,), fetched URLs
    gamma : discount a fetch, at most 1/2

    Returns
    -------
    float64 (n,), from 0 to 1 / (1 - gamma)
    """
    reward = np.where(relevance > 0.5, relevance, 0.0)
    away = distances(source, target, reward > 0, limit=HORIZON)
    begin, children = _nearest(source, target, away, reward)
    discount = (gamma ** np.arange(HORIZON + 1)).tolist()
    known = _Known(reward.tolist(), away.tolist(), begin.tolist(), children.tolist())
    promising = np.flatnonzero(away[wanted] < FAR)
    values = np.zeros(len(wanted))
    values[promising] = [_walk(url, discount, known) for url in wanted[promising].tolist()]
    return values


def _nearest(source: Ints, target: Ints, away: Ints, reward: Floats) -> tuple[Ints, Ints]:
    """Return, page by page, the targets nearest to a relevant page, more than can be fetched."""
    n = len(reward)
    near = np.flatnonzero(away[target] < FAR)
    pairs = np.unique(source[near] * n + target[near])
    source, target = pairs // n, pairs % n
    order = np.lexsort((target, -reward[target], away[target], source))
    source, target = source[order], target[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    kept = rank <= HORIZON
    return pointers(np.bincount(source[kept], minlength=n)), target[kept]


class _Known(NamedTuple):
    """Lists by page, since a walk goes page by page; the last two are those of `_nearest`."""

    reward: list[float]
    away: list[int]
    begin: list[int]
    children: list[int]


def _walk(url: int, discount: list[float], known: _Known) -> float:
    """Return the discounted sum of the rewards of the fetches from `url` on."""
    reward, away, begin, children = known
    total = 0.0
    queue, met = [(0, 0.0, url)], {url}
    for weight in discount:
        if not queue:
            break
        _, _, page = heapq.heappop(queue)
        total += weight * reward[page]
        for child in children[begin[page] : begin[page + 1]]:
            if child not in met:
                met.add(child)
                heapq.heappush(queue, (away[child], -reward[child], child))
    return total
