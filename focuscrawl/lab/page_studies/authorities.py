"""How far from the seeds the prominent pages of a crawl are [F99: remote resources]."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.distiller import Distiller, LinkGraph, Sites, best
from focuscrawl.foundation.urls import host
from focuscrawl.lab.page_studies.instances import FETCHES, best_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.lab.whole_web import WholeWeb

_TOP = 100


def authority_table(whole: WholeWeb, topic: str, seeds: Sequence[str]) -> pd.DataFrame:
    """Distil a best-first crawl, and return the authorities.

    Returns
    -------
    One row a page, at most 100, the best first: ``url``, ``score``, ``distance``: fewest clicks
    from a seed over the links that the crawl has found.
    """
    relevance = whole.relevance(topic)
    start = whole.numbers(seeds)
    fetched = best_first(whole, relevance, start, FETCHES)
    known = set(fetched)
    distance = dict.fromkeys(start, 0)
    waiting = deque(start)
    while waiting:
        page = waiting.popleft()
        for target in whole.links(page) if page in known else ():
            if target not in distance:
                distance[target] = distance[page] + 1
                waiting.append(target)
    scores = Distiller(link_graph(whole, relevance, hosts_of(whole), fetched)).distill()
    chosen = best(scores.authorities, _TOP).tolist()
    return pd.DataFrame(
        {
            "url": [whole.urls[page] for page in chosen],
            "score": scores.authorities[chosen],
            "distance": np.array([distance[page] for page in chosen], np.int64),
        }
    )


def hosts_of(whole: WholeWeb) -> NDArray[np.int64]:
    """Return a number for the host of each page, int64 (n,)."""
    return pd.factorize(np.array([host(url) for url in whole.urls], object))[0]


def link_graph(
    whole: WholeWeb,
    relevance: NDArray[np.float64],
    hosts: NDArray[np.int64],
    fetched: Sequence[int],
) -> LinkGraph:
    """Return the links of the pages that were fetched first of all with their content.

    A copy is linked to under another URL: the first page with the content stands for all.

    Parameters
    ----------
    relevance, hosts : of all pages, see `hosts_of`
    fetched : pages, in their order
    """
    content, pages = whole.content, np.array(fetched, np.int64)
    pages = pages[np.sort(np.unique(content[pages], return_index=True)[1])]
    first = np.full(len(content), -1)
    first[content[pages]] = pages
    links = [np.array(whole.links(page), np.int64) for page in pages.tolist()]
    source = np.repeat(pages, [len(each) for each in links])
    target = np.concatenate([*links, np.zeros(0, np.int64)])
    target = np.where(first[content[target]] >= 0, first[content[target]], target)
    known = np.full(len(content), np.nan)
    known[pages] = relevance[pages]
    return LinkGraph(source, target, Sites.fitting(source, target, hosts).of_pages, known)
