"""Two crawls beside each other: their curves, the pages that only one has, and those of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.report import comparison
from focuscrawl.report.measures import harvest_rate, load_pages, moving_harvest_rate
from focuscrawl.report.summary import Summary

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.store import CrawlStore

_POINTS = 300  # of a curve
_SHOWN = 100


def two_crawls(a: CrawlStore, b: CrawlStore) -> dict[str, Any]:
    """Compare two crawls, which may be running.

    Returns
    -------
    ``labels``; ``heading`` and ``rows`` of `focuscrawl.report.comparison`; ``sentence``, or None;
    ``curves``, of each (fetches, harvest rate so far, of late), of late None where nothing is;
    and ``only_a``, ``both``, ``only_b``: ``pages``, ``relevant``, and ``best``, the most relevant
    of them, with ``url``, ``title`` and relevance in ``a`` and ``b``.
    """
    summaries = [Summary.of(store) for store in (a, b)]
    pages = [load_pages(store) for store in (a, b)]
    compared = comparison.compare(summaries, pages)
    of_a, of_b = (each.set_index("url") for each in pages)
    both = of_a.join(of_b[["relevance"]], how="inner", rsuffix="_b")
    return {
        "labels": comparison.labels(summaries),
        "heading": comparison.heading(compared),
        "rows": [comparison.cells(each) for each in compared],
        "sentence": comparison.in_one_sentence(summaries, pages),
        "curves": [_curve(each) for each in pages],
        "only_a": _part(of_a[~of_a.index.isin(of_b.index)], ["relevance", None]),
        "both": _part(both, ["relevance", "relevance_b"]),
        "only_b": _part(of_b[~of_b.index.isin(of_a.index)], [None, "relevance"]),
    }


def _curve(pages: pd.DataFrame) -> list[tuple[int, float, float | None]]:
    if pages.empty:
        return []
    at = np.unique(np.linspace(0, len(pages) - 1, _POINTS).astype(int))
    so_far, late = harvest_rate(pages).to_numpy()[at], moving_harvest_rate(pages).to_numpy()[at]
    return [
        (int(i) + 1, float(mean), None if np.isnan(recent) else float(recent))
        for i, mean, recent in zip(at, so_far, late, strict=True)
    ]


def _part(pages: pd.DataFrame, columns: list[str | None]) -> dict[str, Any]:
    relevance = pages[[name for name in columns if name is not None]].max(axis=1)
    best = pages.loc[relevance.sort_values(ascending=False, kind="stable").index[:_SHOWN]]
    a, b = (
        [None] * len(best) if name is None else [float(each) for each in best[name]]
        for name in columns
    )
    named = zip(best.index, best["title"], a, b, strict=True)
    return {
        "pages": len(pages),
        "relevant": int((relevance > RELEVANT).sum()),
        "best": [{"url": url, "title": title, "a": x, "b": y} for url, title, x, y in named],
    }
