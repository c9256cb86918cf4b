"""Computes harvest rate, loss rate and other measures of a crawl (methods.md 1).

Time is counted in fetches, not in seconds. All fetches of a crawl count, even those that failed.
Redirects, errors, exact duplicates and documents other than HTML have relevance 0.
"""

from __future__ import annotations

import os
from contextlib import closing

import numpy as np
import pandas as pd

from focuscrawl.foundation.urls import host
from focuscrawl.report.outcomes import PAGE, outcome
from focuscrawl.report.status import open_store
from focuscrawl.store import CrawlStore

_TEXT = ("url", "topic", "referrer", "content_type", "title", "duplicate_of", "error")
_NUMBERS = {
    "status": np.int16,
    "relevance": np.float64,
    "depth": np.int32,
    "score": np.float64,
    "bytes": np.int64,
    "links": np.int32,
    "dropped": np.int32,
}
BINS = 20  # bins of the relevance histogram


def load_pages(crawl: str | os.PathLike[str] | CrawlStore) -> pd.DataFrame:
    """Read the table of fetches of a crawl, which may be running.

    Parameters
    ----------
    crawl : path or CrawlStore
        Folder of the crawl, or its open store.

    Returns
    -------
    DataFrame
        A row for each fetch, indexed by ``seq`` from 1, with the columns of the store's view
        ``pages``, ``host`` and ``outcome`` (see `focuscrawl.report.outcomes`). ``fetched_at`` is
        UTC; missing numbers are NaN, missing texts None.

    Raises
    ------
    UserError
        The folder has no crawl, or no crawl that this version can read.
    """
    if not isinstance(crawl, CrawlStore):
        with closing(open_store(crawl)) as store:
            return load_pages(store)
    columns = ["seq", *_TEXT, *_NUMBERS, "fetched_at"]
    rows = crawl.rows(f"SELECT {', '.join(columns)} FROM pages ORDER BY seq")
    pages = pd.DataFrame(map(tuple, rows), columns=columns).set_index("seq")
    pages.index = pages.index.astype(np.int64)
    texts = pages[[*_TEXT]].astype(object)
    pages = pages.astype(_NUMBERS).assign(**texts.where(texts.notna(), None))
    pages["fetched_at"] = pd.to_datetime(pages["fetched_at"], format="ISO8601", utc=True)
    pages["host"] = pd.Series([host(url) for url in pages["url"]], pages.index, dtype=object)
    came = zip(pages["status"], pages["error"], pages["duplicate_of"].notna(), strict=True)
    pages["outcome"] = pd.Series([outcome(*each) for each in came], pages.index, dtype=object)
    return pages


def harvest_rate(pages: pd.DataFrame) -> pd.Series[float]:
    """Return the mean relevance of the first n fetches, for every n (methods.md 1)."""
    relevance = pages["relevance"]
    return (relevance.cumsum() / np.arange(1, len(relevance) + 1)).rename("harvest_rate")


def loss_rate(pages: pd.DataFrame) -> pd.Series[float]:
    """Return the loss rate, 1 - harvest rate, of the first n fetches, for every n."""
    return (1.0 - harvest_rate(pages)).rename("loss_rate")


def default_window(fetches: int) -> int:
    """Return the window of moving averages: a tenth of the fetches, but between 10 and 100."""
    return min(100, max(10, fetches // 10))


def moving_harvest_rate(pages: pd.DataFrame, window: int | None = None) -> pd.Series[float]:
    """Return for each fetch the mean relevance of this and the `window` - 1 fetches before.

    The first ``window - 1`` values of the result are NaN.
    """
    if window is None:
        window = default_window(len(pages))
    return pages["relevance"].rolling(window).mean().rename("moving_harvest_rate")


def relevance_histogram(pages: pd.DataFrame, bins: int = BINS) -> pd.DataFrame:
    """Return the number of fetches in each range of relevance.

    Returns
    -------
    DataFrame
        `bins` rows of equal width over [0, 1], indexed by their lower edge: numbers of ``judged``
        pages and of ``unjudged`` fetches, which are all in the first row.
    """
    edges = np.linspace(0.0, 1.0, bins + 1)
    judged = pages["outcome"] == PAGE
    counts = {
        "judged": np.histogram(pages.loc[judged, "relevance"], edges)[0],
        "unjudged": np.histogram(pages.loc[~judged, "relevance"], edges)[0],
    }
    return pd.DataFrame(counts, index=pd.Index(edges[:-1], name="relevance"))


def by_host(pages: pd.DataFrame) -> pd.DataFrame:
    """Return the fetches and the total relevance of each host, the largest total first.

    Returns
    -------
    DataFrame
        Indexed by host: ``fetches``, ``relevance`` (sum), ``mean_relevance``, ``share`` of the
        relevance of the crawl, ``wasted`` (fetches minus relevance).
    """
    hosts = _grouped(pages, "host")
    total = hosts["relevance"].sum()
    hosts["share"] = hosts["relevance"] / total if total else 0.0
    hosts["wasted"] = hosts["fetches"] - hosts["relevance"]
    return hosts.sort_values(["relevance", "fetches"], ascending=[False, True], kind="stable")


def by_depth(pages: pd.DataFrame) -> pd.DataFrame:
    """Return the number of fetches, the total and the mean relevance for each number of clicks."""
    return _grouped(pages, "depth")


def by_outcome(pages: pd.DataFrame) -> pd.Series[int]:
    """Return the number of fetches by outcome, the most frequent outcome first."""
    return pages["outcome"].value_counts().rename("fetches")


def _grouped(pages: pd.DataFrame, column: str) -> pd.DataFrame:
    relevance = pages.groupby(column, sort=True)["relevance"]
    return pd.DataFrame(
        {
            "fetches": relevance.size(),
            "relevance": relevance.sum(),
            "mean_relevance": relevance.mean(),
        }
    )
