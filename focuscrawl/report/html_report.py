"""A report as one HTML page that needs nothing else: no script, no server, no network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.visit import NOINDEX
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.report import comparison, measures
from focuscrawl.report.figures import completeness_figure, png, relevance_figure
from focuscrawl.report.outcomes import PAGE
from focuscrawl.report.plain_text import pluralize
from focuscrawl.report.summary import load_estimates, replay_harvest_monitor
from focuscrawl.report.templates import load_template, rows_of
from focuscrawl.store.crawl_store import reporting_damage

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from focuscrawl.report.comparison import ComparedCrawl
    from focuscrawl.report.summary import Summary
    from focuscrawl.store import CrawlStore


_ROWS = 10  # of a table of hosts
_PAGES = 25
_EVENTS = 30
#: kinds of events that can be many: what they are of, and why
_COUNTED_EVENTS = {
    "excluded": ("URL", "for robots.txt and the like"),
    NOINDEX: ("page", "asked not to be indexed"),
}
_MODELS = 15
_ALARMS = 10


def crawl_section(
    label: str, store: CrawlStore, summary: Summary, pages: pd.DataFrame, number: int = 0
) -> dict[str, Any]:
    """Return what is shown of one crawl, by the names it has in the template.

    Hosts, depths and best pages, these without the seeds, are rows of tables of
    `focuscrawl.report.measures`; of events, models and falls of the harvest rate there are the
    last ones. Events that can be many are only counted. No host is among the best and the worst.

    Parameters
    ----------
    number : of the crawl in the report, from 0, which says its colour
    """
    hosts = measures.by_host(pages)
    rich = hosts["mean_relevance"] >= pages["relevance"].mean()
    best_hosts, others = hosts[rich & (hosts["relevance"] > 0)], hosts[~rich]
    estimates = load_estimates(store)
    wasted = others.sort_values("wasted", ascending=False, kind="stable")
    return {
        "label": label,
        "summary": summary.lines(),
        "relevance": png(relevance_figure(pages, number)),
        "completeness": png(completeness_figure(estimates, number)) if estimates else None,
        "best_hosts": rows_of(best_hosts.head(_ROWS)),
        "worst_hosts": rows_of(wasted.head(_ROWS)),
        "best_pages": rows_of(_best_pages(store, pages)),
        "outcomes": [*measures.by_outcome(pages).items()],
        "depths": rows_of(measures.by_depth(pages)),
        "events": _events(store),
        "models": _models(store),
        "alarms": replay_harvest_monitor(store)[1][-_ALARMS:],
    }


def render_report(
    sections: Sequence[dict[str, Any]],
    compared: Sequence[ComparedCrawl],
    curves: Sequence[tuple[str, bytes]],
) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    sections : the crawls, see `crawl_section`
    compared : the same crawls beside each other; shown when there are several
    curves : (what it shows, PNG) of the figures that all crawls are in
    """
    return load_template("report.html.j2").render(
        sections=sections,
        heading=comparison.column_names(compared),
        compared=[comparison.row_cells(row) for row in compared],
        curves=curves,
    )


def _best_pages(store: CrawlStore, pages: pd.DataFrame) -> pd.DataFrame:
    """Return the most relevant pages; of equal ones, those first that more relevant pages name.

    Many a page is relevant beyond doubt: the relevance alone would leave the order of fetching.
    """
    found = pages[(pages["outcome"] == PAGE) & (pages["relevance"] > 0) & (pages["depth"] > 0)]
    if found.empty:
        return found.assign(named=0)
    found = found.nlargest(_PAGES, "relevance", keep="all")
    named = """
        SELECT p.seq, count(DISTINCT l.source)
        FROM page p JOIN link l ON l.target = p.url JOIN page s ON s.url = l.source
        WHERE p.relevance >= ? AND s.relevance > ? AND l.source <> l.target GROUP BY p.seq
    """
    least = float(found["relevance"].min())
    counts = dict(map(tuple, store.rows(named, (least, RELEVANT))))
    found = found.assign(named=[counts.get(seq, 0) for seq in found.index])
    by = ["relevance", "named"]
    return found.sort_values(by, ascending=False, kind="stable").head(_PAGES)


def _events(store: CrawlStore) -> list[tuple[str, int, str, str]]:
    kinds = json.dumps([*_COUNTED_EVENTS])
    last = """SELECT at, seq, kind, detail FROM events
              WHERE kind NOT IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?"""
    events = [*map(tuple, store.rows(last, (kinds, _EVENTS)))]
    figures = """SELECT kind, max(at), max(seq), count(*) FROM events
                 WHERE kind IN (SELECT value FROM json_each(?)) GROUP BY kind"""
    for kind, at, seq, n in store.rows(figures, (kinds,)):
        what, why = _COUNTED_EVENTS[kind]
        events.append((at, seq, kind, f"{pluralize(n, what)} so far, {why}"))
    return sorted(events, key=lambda event: (event[0], event[1]))


def _models(store: CrawlStore) -> dict[str, Any]:
    """Return the last lessons: ``names`` of what was measured, and ``rows``."""
    last = """SELECT version, trained_at_seq, instances, metrics FROM models
              ORDER BY version DESC LIMIT ?"""
    rows = [*map(tuple, store.rows(last, (_MODELS,)))]
    with reporting_damage(store.location):
        found = [_numbers(metrics) for *_, metrics in rows]
    names = list(dict.fromkeys(name for metrics in found for name in metrics))
    cells = [[_number(each.get(name)) for name in names] for each in found]
    lessons = [(*row[:3], each) for row, each in zip(rows, cells, strict=True)]
    return {"names": names, "rows": lessons[::-1]}


def _numbers(metrics: str) -> dict[str, float]:
    read = json.loads(metrics).items()
    return {name: value for name, value in read if isinstance(value, int | float)}


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"
