"""How far from the seeds the prominent pages of a crawl are [F99: remote resources]."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.lab.pages.instances import FETCHES, best_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.lab.whole import WholeWeb

_TOP = 100


def authority_table(
    whole: WholeWeb, topic: str, seeds: Sequence[str], *, fetches: int = FETCHES, top: int = _TOP
) -> pd.DataFrame:
    """Return the relevant pages that the most other relevant pages of a best-first crawl link to.

    [F99] takes the authorities of its distiller; counting relevant in-links is its first step,
    undamped and not iterated.

    Returns
    -------
    One row a page, at most `top`, the most linked to first: ``url``, ``links``, ``distance``:
    fewest clicks from a seed over the links that the crawl has found.
    """
    relevance = whole.relevance(topic)
    start = whole.numbers(seeds)
    fetched = best_first(whole, relevance, start, fetches)
    known = set(fetched)
    distance = dict.fromkeys(start, 0)
    waiting = deque(start)
    while waiting:
        page = waiting.popleft()
        for target in whole.links(page) if page in known else ():
            if target not in distance:
                distance[target] = distance[page] + 1
                waiting.append(target)
    # a copy is linked to under another URL: the first page with the content stands for all
    first: dict[int, int] = {}
    for page in fetched:
        first.setdefault(int(whole.content[page]), page)
    relevant = [page for page in first.values() if relevance[page] > 0.5]
    votes = np.zeros(len(whole.urls), np.int64)
    for page in relevant:
        voted = {first.get(int(whole.content[target]), page) for target in whole.links(page)}
        votes[list(voted - {page})] += 1
    ranked = sorted(relevant, key=lambda page: -int(votes[page]))[:top]
    chosen = [page for page in ranked if votes[page]]
    return pd.DataFrame(
        {
            "url": [whole.urls[page] for page in chosen],
            "links": votes[chosen],
            "distance": np.array([distance[page] for page in chosen], np.int64),
        }
    )
