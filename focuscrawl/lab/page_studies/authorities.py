"""How far from the seeds the prominent pages of a crawl are [F99: remote resources]."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from focuscrawl.distiller import Distiller, LinkGraph, Sites, best
from focuscrawl.lab.page_studies.instances import FETCHES, best_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.lab.whole_web import WholeWeb

_TOP = 100


def authority_table(
    whole: WholeWeb, topic: str, seeds: Sequence[str], *, fetches: int = FETCHES, top: int = _TOP
) -> pd.DataFrame:
    """Distil a best-first crawl, and return the authorities.

    Returns
    -------
    One row a page, at most `top`, the best first: ``url``, ``score``, ``distance``: fewest clicks
    from a seed over the links that the crawl has found.
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
    scores = Distiller(_graph(whole, relevance, first)).distill()
    chosen = best(scores.authorities, top).tolist()
    return pd.DataFrame(
        {
            "url": [whole.urls[page] for page in chosen],
            "score": scores.authorities[chosen],
            "distance": np.array([distance[page] for page in chosen], np.int64),
        }
    )


def _graph(whole: WholeWeb, relevance: NDArray[np.float64], first: dict[int, int]) -> LinkGraph:
    """Return the links of the pages that were fetched first of all with their content."""
    links = [
        (page, first.get(int(whole.content[target]), target))
        for page in first.values()
        for target in whole.links(page)
    ]
    source, target = np.array(links, np.int64).reshape(-1, 2).T
    hosts: dict[str, int] = {}
    host = np.array([hosts.setdefault(urlsplit(url).netloc, len(hosts)) for url in whole.urls])
    known = np.full(len(whole.urls), np.nan)
    fetched = list(first.values())
    known[fetched] = relevance[fetched]
    return LinkGraph(source, target, Sites.fitting(source, target, host).of_pages, known)
