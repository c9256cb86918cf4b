"""Compares several crawls after equal numbers of fetches, and the pages of two crawls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.foundation.databases import open_database
from focuscrawl.foundation.files import replace_atomically
from focuscrawl.report.measures import harvest_rate, load_pages, moving_harvest_rate
from focuscrawl.report.plain_text import align_columns, one_line
from focuscrawl.report.summary import Summary

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.store import CrawlStore


#: crawls are comparable if they agree in these (methods.md 1)
_SAME = ("topic", "web", "critic")


_POINTS = 300  # points of a curve
SHOWN = 100  #: pages of a part shown at once
PARTS = ("only_a", "both", "only_b")  #: parts of the pages of two crawls


@dataclass(frozen=True)
class ComparedCrawl:
    """The name and the results of one crawl in a comparison."""

    label: str  #: name of the crawl, see `crawl_labels`
    fetched: int  #: all fetches of the crawl
    loss_rate: float | None  #: loss rate of all fetches; None before the first fetch
    common_loss_rate: float | None  #: loss rate of as many fetches as the shortest crawl has
    #: 1 - common loss / common loss of the first crawl (methods.md 1). None for the first crawl,
    #: for crawls with another topic, web or critic, and if the first crawl has no loss.
    loss_reduction: float | None


def crawl_labels(summaries: Sequence[Summary]) -> list[str]:
    """Return a different name for each crawl, which starts with the strategy of the crawl.

    If crawls have the same strategy, the name continues with the topic, or with the name or path
    of the folder. If there is only one crawl, its name is the strategy and the topic.
    """
    folders = [Path(summary.folder) for summary in summaries]
    parts = [
        [one_line(summary.identity.get("strategy", "?")) for summary in summaries],
        [
            one_line(summary.identity.get("topic", "?").rstrip("/").rpartition("/")[2])
            for summary in summaries
        ],
        [folder.name for folder in folders],
        [summary.folder for summary in summaries],
    ]
    if len(summaries) == 1:
        return [f"{parts[0][0]}, {parts[1][0]}"]
    named = parts[0]
    for part in parts[1:]:
        if len(set(named)) == len(named):
            break
        longer = [f"{name}, {more}" for name, more in zip(named, part, strict=True)]
        if len(set(longer)) > len(set(named)):
            named = longer
    return named


def compare(summaries: Sequence[Summary], crawls: Sequence[pd.DataFrame]) -> list[ComparedCrawl]:
    """Compare crawls after the largest number of fetches that all crawls have reached.

    Parameters
    ----------
    summaries, crawls : sequence
        Summary and pages (`load_pages`) of each crawl. The first crawl is the baseline.
    """
    common = min(map(len, crawls))
    rates = [harvest_rate(pages) for pages in crawls]
    losses = [1.0 - float(rate.iloc[common - 1]) if common else None for rate in rates]
    baseline = losses[0]
    rows = []
    for label, summary, rate, loss in zip(
        crawl_labels(summaries), summaries, rates, losses, strict=True
    ):
        same = _comparable(summary, summaries[0])
        reduction = None
        if same and summary is not summaries[0] and loss is not None and baseline:
            reduction = 1.0 - loss / baseline
        rows.append(
            ComparedCrawl(
                label=label,
                fetched=len(rate),
                loss_rate=1.0 - float(rate.iloc[-1]) if len(rate) else None,
                common_loss_rate=loss,
                loss_reduction=reduction,
            )
        )
    return rows


def have_same_topic_and_strategy(summaries: Sequence[Summary]) -> bool:
    """Return whether all crawls have the same topic and strategy."""
    whose = {(each.identity.get("topic"), each.identity.get("strategy")) for each in summaries}
    return len(summaries) > 1 and len(whose) == 1


def _comparable(summary: Summary, first: Summary) -> bool:
    return all(summary.identity.get(key) == first.identity.get(key) for key in _SAME)


def describe_relevant_counts(
    summaries: Sequence[Summary], crawls: Sequence[pd.DataFrame]
) -> str | None:
    """Describe how many relevant pages each crawl found in the same number of fetches.

    The result is None if the crawls have different topics, webs or critics.
    """
    if not all(_comparable(summary, summaries[0]) for summary in summaries):
        return None
    common = min(map(len, crawls))
    had = [int((pages["relevance"].iloc[:common] > RELEVANT).sum()) for pages in crawls]
    each = [f"{n:,} with {name}" for n, name in zip(had, crawl_labels(summaries), strict=True)]
    return f"relevant pages in {common:,} fetches each: {', '.join(each)}"


def describe_results(summaries: Sequence[Summary], crawls: Sequence[pd.DataFrame]) -> str | None:
    """Describe the relevant pages of comparable crawls in one or two sentences, or return None."""
    parts = (
        describe(summaries, crawls) for describe in (describe_relevant_counts, describe_overlap)
    )
    return ". ".join(part for part in parts if part) or None


def describe_overlap(summaries: Sequence[Summary], crawls: Sequence[pd.DataFrame]) -> str | None:
    """Describe an upper bound of the total recall of two crawls, computed from common pages.

    The estimator of the number of relevant pages is that of Chapman (1951). Crawls tend to find
    the same pages, so the estimated number is too small, and the estimated recall is often far too
    large. The result is None if there are not two crawls of the same topic, web and critic, or if
    the crawls share start pages.
    """
    if len(summaries) != 2 or not _comparable(summaries[1], summaries[0]):
        return None
    starts = [
        {*pages["url"][(pages["depth"] == 0) & pages["referrer"].isna()]} for pages in crawls
    ]
    if starts[0] & starts[1]:
        return None
    a, b = (
        {*pages["url"][pages["relevance"] > RELEVANT]} - starts[0] - starts[1] for pages in crawls
    )
    common, found = len(a & b), len(a | b)
    if not common:
        return None
    expected = (len(a) + 1) * (len(b) + 1) / (common + 1) - 1
    return (
        f"both crawls found {common:,} of {found:,} relevant pages. Together, they have found "
        f"at most {min(found / expected, 1.0):.0%} of the relevant pages within reach, and often "
        "far less"
    )


def column_names(compared: Sequence[ComparedCrawl]) -> list[str]:
    """Return the column names of the comparison table."""
    common = min(row.fetched for row in compared)
    return ["crawl", "fetched", "loss rate", f"loss at {common:,}", "loss reduction"]


def row_cells(row: ComparedCrawl) -> list[str]:
    """Return the cells of the comparison table for one crawl; a dash for a missing value."""
    rates = [
        "-" if rate is None else f"{rate:.3f}" for rate in (row.loss_rate, row.common_loss_rate)
    ]
    reduction = "-" if row.loss_reduction is None else f"{row.loss_reduction:+.0%}"
    return [row.label, f"{row.fetched:,}", *rates, reduction]


def format_comparison(compared: Sequence[ComparedCrawl]) -> str:
    """Return the comparison of crawls as a text table for a terminal."""
    return "\n".join(align_columns([column_names(compared), *map(row_cells, compared)], left={0}))


def compare_two_crawls(a: CrawlStore, b: CrawlStore, lists: Path | None = None) -> dict[str, Any]:
    """Compare two crawls, which may be running.

    Parameters
    ----------
    lists : Path or None
        File for all pages of each part, for `load_part_pages`; an existing file is replaced.

    Returns
    -------
    dict
        ``labels``; ``heading`` and ``rows`` of the table; ``sentence`` (str or None); ``curves``:
        for each crawl (fetches, harvest rate, recent harvest rate or None); and for each of
        `PARTS` the numbers ``pages`` and ``relevant``, and ``best``: the `SHOWN` most relevant
        pages with ``url``, ``title`` and the relevance in ``a`` and ``b``.
    """
    summaries = [Summary.of(store) for store in (a, b)]
    pages = [load_pages(store) for store in (a, b)]
    compared = compare(summaries, pages)
    of_a, of_b = (each.set_index("url") for each in pages)
    both = of_a.join(of_b[["relevance"]], how="inner", rsuffix="_b")
    parts = {
        "only_a": _PagePart(of_a[~of_a.index.isin(of_b.index)], "relevance", None),
        "both": _PagePart(both, "relevance", "relevance_b"),
        "only_b": _PagePart(of_b[~of_b.index.isin(of_a.index)], None, "relevance"),
    }
    if lists is not None:
        _write_parts(lists, parts)
    return {
        "labels": crawl_labels(summaries),
        "heading": column_names(compared),
        "rows": [row_cells(each) for each in compared],
        "sentence": describe_results(summaries, pages),
        "curves": [harvest_curve(each) for each in pages],
        **{name: part.best() for name, part in parts.items()},
    }


def load_part_pages(lists: Path, part: str, start: int, n: int = SHOWN) -> list[dict[str, Any]]:
    """Return the `n` most relevant pages of a group, such as the pages that both crawls fetched.

    Parameters
    ----------
    lists : Path
        File of `compare_two_crawls`.
    part : str
        One of `PARTS`.
    """
    with closing(open_database(lists, mode="ro")) as connection:
        rows = connection.execute(
            "SELECT url, title, a, b FROM page WHERE part = ? AND place >= ? AND place < ?",
            (part, start, start + n),
        )
        names = ("url", "title", "a", "b")
        return [dict(zip(names, row, strict=True)) for row in rows]


def _write_parts(path: Path, parts: dict[str, _PagePart]) -> None:
    with replace_atomically(path) as draft, closing(open_database(draft)) as connection:
        connection.execute("BEGIN")
        connection.execute(
            "CREATE TABLE page (part TEXT, place INTEGER, url TEXT, title TEXT, a REAL, b REAL, "
            "PRIMARY KEY (part, place)) WITHOUT ROWID"
        )
        for name, part in parts.items():
            rows = ((name, place, *row) for place, row in enumerate(part.rows()))
            connection.executemany("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")


def harvest_curve(pages: pd.DataFrame) -> list[tuple[int, float, float | None]]:
    """Return rows with the number of fetches, harvest rate so far, and recent harvest rate."""
    if pages.empty:
        return []
    at = np.unique(np.linspace(0, len(pages) - 1, _POINTS).astype(int))
    so_far, late = harvest_rate(pages).to_numpy()[at], moving_harvest_rate(pages).to_numpy()[at]
    return [
        (int(i) + 1, float(mean), None if np.isnan(recent) else float(recent))
        for i, mean, recent in zip(at, so_far, late, strict=True)
    ]


class _PagePart:
    """A part of the pages of two crawls, in the order of their relevance.

    Parameters
    ----------
    pages : DataFrame
        Pages, indexed by URL.
    a, b : str or None
        Columns of the relevance in each crawl; None for a crawl that has not fetched the pages.
    """

    def __init__(self, pages: pd.DataFrame, a: str | None, b: str | None) -> None:
        relevance = pages[[name for name in (a, b) if name is not None]].max(axis=1)
        order = relevance.sort_values(ascending=False, kind="stable").index
        self._pages, self._columns = pages.loc[order], (a, b)
        self._relevant = int((relevance > RELEVANT).sum())

    def rows(self, n: int | None = None) -> Iterator[tuple[str, str | None, Any, Any]]:
        """Yield the URL, the title and the relevance in each crawl for the first `n` pages."""
        pages = self._pages.head(n) if n is not None else self._pages
        a, b = (
            [None] * len(pages) if name is None else pages[name].astype(float).tolist()
            for name in self._columns
        )
        yield from zip(pages.index, pages["title"], a, b, strict=True)

    def best(self) -> dict[str, Any]:
        """Return the number of pages and of relevant pages, and the most relevant pages."""
        return {
            "pages": len(self._pages),
            "relevant": self._relevant,
            "best": [
                {"url": url, "title": title, "a": a, "b": b}
                for url, title, a, b in self.rows(SHOWN)
            ],
        }
