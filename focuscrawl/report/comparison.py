"""Comparison of several crawls: loss rates at equal numbers of fetches, against the first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.report.measures import harvest_rate
from focuscrawl.report.plain_text import one_line, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from focuscrawl.report.summary import Summary

#: crawls are compared when these are the same (METHODS 1)
_SAME = ("topic", "web", "critic")


@dataclass(frozen=True)
class Compared:
    """One crawl among several.

    Attributes
    ----------
    label : strategy, topic, folder: as much of it as tells the crawls apart
    fetched : all of its fetches
    loss_rate : over all of its fetches; None before the first
    common_loss_rate : over as many fetches as the shortest crawl has
    loss_reduction : 1 - common loss / common loss of the first crawl (METHODS 1); None for the
        first, for crawls of another topic, web or critic, and where the first has no loss
    """

    label: str
    fetched: int
    loss_rate: float | None
    common_loss_rate: float | None
    loss_reduction: float | None


def labels(summaries: Sequence[Summary]) -> list[str]:
    """Name crawls by strategy, then topic, then folder: as much as tells them apart.

    One crawl alone is named by strategy and topic.
    """
    folders = [Path(summary.home) for summary in summaries]
    parts = [
        [one_line(summary.identity.get("strategy", "?")) for summary in summaries],
        [
            one_line(summary.identity.get("topic", "?").rstrip("/").rpartition("/")[2])
            for summary in summaries
        ],
        [folder.name for folder in folders],
        [summary.home for summary in summaries],
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


def compare(summaries: Sequence[Summary], crawls: Sequence[pd.DataFrame]) -> list[Compared]:
    """Compare crawls at the number of fetches that all of them have.

    Parameters
    ----------
    summaries, crawls : summary and pages (`load_pages`) of each crawl; the first is the baseline
    """
    common = min(map(len, crawls))
    rates = [harvest_rate(pages) for pages in crawls]
    losses = [1.0 - float(rate.iloc[common - 1]) if common else None for rate in rates]
    baseline = losses[0]
    rows = []
    for label, summary, rate, loss in zip(
        labels(summaries), summaries, rates, losses, strict=True
    ):
        same = _comparable(summary, summaries[0])
        reduction = None
        if same and summary is not summaries[0] and loss is not None and baseline:
            reduction = 1.0 - loss / baseline
        rows.append(
            Compared(
                label=label,
                fetched=len(rate),
                loss_rate=1.0 - float(rate.iloc[-1]) if len(rate) else None,
                common_loss_rate=loss,
                loss_reduction=reduction,
            )
        )
    return rows


def consecutive(summaries: Sequence[Summary]) -> bool:
    """Tell whether a crawl may have learned from those before it: one topic, one strategy."""
    whose = {(each.identity.get("topic"), each.identity.get("strategy")) for each in summaries}
    return len(summaries) > 1 and len(whose) == 1


def _comparable(summary: Summary, first: Summary) -> bool:
    return all(summary.identity.get(key) == first.identity.get(key) for key in _SAME)


def in_one_sentence(summaries: Sequence[Summary], crawls: Sequence[pd.DataFrame]) -> str | None:
    """Say how many pages on the topic each crawl had for the same number of fetches.

    None for crawls of different topics, webs or critics.
    """
    if not all(_comparable(summary, summaries[0]) for summary in summaries):
        return None
    common = min(map(len, crawls))
    had = [int((pages["relevance"].iloc[:common] > RELEVANT).sum()) for pages in crawls]
    each = [f"{n:,} with {name}" for n, name in zip(had, labels(summaries), strict=True)]
    return f"of {common:,} fetches each, pages on the topic: {', '.join(each)}"


def heading(compared: Sequence[Compared]) -> list[str]:
    """Return the names of the columns of `cells`."""
    common = min(row.fetched for row in compared)
    return ["crawl", "fetched", "loss rate", f"loss at {common:,}", "loss reduction"]


def cells(row: Compared) -> list[str]:
    """Return what is shown of one crawl; a dash where there is nothing to say."""
    rates = [
        "-" if rate is None else f"{rate:.3f}" for rate in (row.loss_rate, row.common_loss_rate)
    ]
    reduction = "-" if row.loss_reduction is None else f"{row.loss_reduction:+.0%}"
    return [row.label, f"{row.fetched:,}", *rates, reduction]


def text(compared: Sequence[Compared]) -> str:
    """Return the comparison for a terminal."""
    return "\n".join(table([heading(compared), *map(cells, compared)], left={0}))
