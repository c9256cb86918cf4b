"""Two crawls beside each other: their curves, the pages that only one has, and those of both."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.foundation.databases import open_database
from focuscrawl.foundation.drafts import draft_of
from focuscrawl.report import comparison
from focuscrawl.report.measures import harvest_rate, load_pages, moving_harvest_rate
from focuscrawl.report.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from focuscrawl.store import CrawlStore

_POINTS = 300  # of a curve
SHOWN = 100  #: pages of a part at a time
PARTS = ("only_a", "both", "only_b")  #: of the pages of two crawls


def two_crawls(a: CrawlStore, b: CrawlStore, lists: Path | None = None) -> dict[str, Any]:
    """Compare two crawls, which may be running.

    Parameters
    ----------
    lists : file that all pages of each part are written to, for `pages_of_part`; it may be there

    Returns
    -------
    ``labels``; ``heading`` and ``rows`` of `focuscrawl.report.comparison`; ``sentence``, or None;
    ``curves``, of each (fetches, harvest rate so far, of late), of late None where nothing is;
    and the `PARTS` ``only_a``, ``both``, ``only_b``: ``pages``, ``relevant``, and ``best``, the
    `SHOWN` most relevant of them, with ``url``, ``title`` and relevance in ``a`` and ``b``.
    """
    summaries = [Summary.of(store) for store in (a, b)]
    pages = [load_pages(store) for store in (a, b)]
    compared = comparison.compare(summaries, pages)
    of_a, of_b = (each.set_index("url") for each in pages)
    both = of_a.join(of_b[["relevance"]], how="inner", rsuffix="_b")
    parts = {
        "only_a": _Part(of_a[~of_a.index.isin(of_b.index)], "relevance", None),
        "both": _Part(both, "relevance", "relevance_b"),
        "only_b": _Part(of_b[~of_b.index.isin(of_a.index)], None, "relevance"),
    }
    if lists is not None:
        _write(lists, parts)
    return {
        "labels": comparison.labels(summaries),
        "heading": comparison.heading(compared),
        "rows": [comparison.cells(each) for each in compared],
        "sentence": comparison.in_one_sentence(summaries, pages),
        "curves": [_curve(each) for each in pages],
        **{name: part.best() for name, part in parts.items()},
    }


def pages_of_part(lists: Path, part: str, start: int, n: int = SHOWN) -> list[dict[str, Any]]:
    """Return pages of a part, the most relevant first: those from the place `start` on.

    Parameters
    ----------
    lists : file that `two_crawls` has written
    part : one of `PARTS`
    """
    with closing(open_database(lists, mode="ro")) as connection:
        rows = connection.execute(
            "SELECT url, title, a, b FROM page WHERE part = ? AND place >= ? AND place < ?",
            (part, start, start + n),
        )
        names = ("url", "title", "a", "b")
        return [dict(zip(names, row, strict=True)) for row in rows]


def _write(path: Path, parts: dict[str, _Part]) -> None:
    with draft_of(path) as draft, closing(open_database(draft)) as connection:
        connection.execute("BEGIN")
        connection.execute(
            "CREATE TABLE page (part TEXT, place INTEGER, url TEXT, title TEXT, a REAL, b REAL, "
            "PRIMARY KEY (part, place)) WITHOUT ROWID"
        )
        for name, part in parts.items():
            rows = ((name, place, *row) for place, row in enumerate(part.rows()))
            connection.executemany("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")


def _curve(pages: pd.DataFrame) -> list[tuple[int, float, float | None]]:
    if pages.empty:
        return []
    at = np.unique(np.linspace(0, len(pages) - 1, _POINTS).astype(int))
    so_far, late = harvest_rate(pages).to_numpy()[at], moving_harvest_rate(pages).to_numpy()[at]
    return [
        (int(i) + 1, float(mean), None if np.isnan(recent) else float(recent))
        for i, mean, recent in zip(at, so_far, late, strict=True)
    ]


class _Part:
    """Some pages of two crawls, the most relevant first.

    Parameters
    ----------
    pages : by URL
    a, b : columns of their relevance; None for the crawl that has not fetched them
    """

    def __init__(self, pages: pd.DataFrame, a: str | None, b: str | None) -> None:
        relevance = pages[[name for name in (a, b) if name is not None]].max(axis=1)
        order = relevance.sort_values(ascending=False, kind="stable").index
        self._pages, self._columns = pages.loc[order], (a, b)
        self._relevant = int((relevance > RELEVANT).sum())

    def rows(self, n: int | None = None) -> Iterator[tuple[str, str | None, Any, Any]]:
        """Yield URL, title and relevance in either crawl of the first `n` pages."""
        pages = self._pages.head(n) if n is not None else self._pages
        a, b = (
            [None] * len(pages) if name is None else pages[name].astype(float).tolist()
            for name in self._columns
        )
        yield from zip(pages.index, pages["title"], a, b, strict=True)

    def best(self) -> dict[str, Any]:
        """Return how many there are, how many of them relevant, and the first."""
        return {
            "pages": len(self._pages),
            "relevant": self._relevant,
            "best": [
                {"url": url, "title": title, "a": a, "b": b}
                for url, title, a, b in self.rows(SHOWN)
            ],
        }
