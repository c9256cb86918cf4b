"""Creates the report of ``focuscrawl report`` as one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.target_pages import target_states
from focuscrawl.crawl.visit import NOINDEX
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.report import comparison, measures
from focuscrawl.report.figures import completeness_figure, png, relevance_figure
from focuscrawl.report.outcomes import PAGE
from focuscrawl.report.plain_text import pluralize
from focuscrawl.report.summary import load_estimates, replay_harvest_monitor
from focuscrawl.report.templates import load_template, rows_of
from focuscrawl.store.crawl_store import reporting_damage
from focuscrawl.store.schema import STATES

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.report.comparison import ComparedCrawl
    from focuscrawl.report.summary import Summary
    from focuscrawl.store import CrawlStore


_ROWS = 10  # rows of a table of hosts
_PAGES = 25
_EVENTS = 30
#: frequent events, which are only counted: their subject and the reason
_COUNTED_EVENTS = {
    "excluded": ("URL", "most because of robots.txt"),
    NOINDEX: ("page", "with the directive noindex"),
}
_MODELS = 15
_ALARMS = 10


def crawl_section(
    label: str, store: CrawlStore, summary: Summary, pages: pd.DataFrame, number: int = 0
) -> dict[str, Any]:
    """Return the values of one crawl for the report's HTML template.

    The values are the result of `crawl_tables`, the label of the crawl and its figures.

    Parameters
    ----------
    number : int
        Index of the crawl in the report, which selects the colour of its curves.
    """
    estimates = load_estimates(store)
    return {
        "label": label,
        "relevance": png(relevance_figure(pages, number)),
        "completeness": png(completeness_figure(estimates, number)) if estimates else None,
        **crawl_tables(store, summary, pages),
    }


def crawl_tables(store: CrawlStore, summary: Summary, pages: pd.DataFrame) -> dict[str, Any]:
    """Return the summary and the tables of one crawl for an HTML template.

    The list of the best pages does not include seeds. The lists of events, of models and of alarms
    include only their latest entries.
    """
    hosts = measures.by_host(pages)
    rich = hosts["mean_relevance"] >= pages["relevance"].mean()
    best_hosts, others = hosts[rich & (hosts["relevance"] > 0)], hosts[~rich]
    wasted = others.sort_values("wasted", ascending=False, kind="stable")
    return {
        "summary": summary.lines(),
        "targets": [
            (url, "not known" if state is None else STATES[state])
            for url, state in target_states(store, Path(store.location).parent).items()
        ],
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
    """Return the report on one or more crawls as an HTML page.

    Parameters
    ----------
    sections : sequence of dict
        The crawls, see `crawl_section`.
    compared : sequence of ComparedCrawl
        The comparison, shown if there are several crawls.
    curves : sequence of tuple
        Title and PNG of the figures of all crawls.
    """
    return load_template("report.html.j2").render(
        sections=sections,
        heading=comparison.column_names(compared),
        compared=[comparison.row_cells(row) for row in compared],
        curves=curves,
    )


def _best_pages(store: CrawlStore, pages: pd.DataFrame) -> pd.DataFrame:
    """Return the most relevant pages; equal ones by the number of relevant pages linking to them.

    Many pages have a relevance of almost 1, so the relevance alone does not order them.
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
        subject, reason = _COUNTED_EVENTS[kind]
        events.append((at, seq, kind, f"{pluralize(n, subject)} so far, {reason}"))
    return sorted(events, key=lambda event: (event[0], event[1]))


def _models(store: CrawlStore) -> dict[str, Any]:
    """Return the last models: ``names`` of their metrics, and ``rows``."""
    last = """SELECT version, trained_at_seq, instances, metrics FROM models
              ORDER BY version DESC LIMIT ?"""
    rows = [*map(tuple, store.rows(last, (_MODELS,)))]
    with reporting_damage(store.location):
        found = [_numbers(metrics) for *_, metrics in rows]
    names = list(dict.fromkeys(name for metrics in found for name in metrics))
    cells = [[_number(each.get(name)) for name in names] for each in found]
    models = [(*row[:3], each) for row, each in zip(rows, cells, strict=True)]
    return {"names": names, "rows": models[::-1]}


def _numbers(metrics: str) -> dict[str, float]:
    read = json.loads(metrics).items()
    return {name: value for name, value in read if isinstance(value, int | float)}


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"
