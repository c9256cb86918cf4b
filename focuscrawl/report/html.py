"""A report as one HTML page that needs nothing else: no script, no server, no network."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.crawl.visit import NOINDEX
from focuscrawl.report import comparison, measures
from focuscrawl.report.figure_style import png
from focuscrawl.report.figures import relevance_figure
from focuscrawl.report.harvest_falls import watch_again
from focuscrawl.report.outcome import PAGE
from focuscrawl.report.plain_text import counted, middle, one_line
from focuscrawl.report.templates import load_template, rows_of
from focuscrawl.store import schema
from focuscrawl.store.soundness import taking_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from jinja2 import Template

    from focuscrawl.diagnosis import Diagnosis
    from focuscrawl.report.comparison import Compared
    from focuscrawl.report.summary import Summary
    from focuscrawl.store import CrawlStore

_ROWS = 10  # of a table of hosts
_PAGES = 25
_EVENTS = 30
#: kinds of events that can be many: what they are of, and why
_COUNTED = {
    "excluded": ("URL", "for robots.txt and the like"),
    NOINDEX: ("page", "asked not to be indexed"),
}
_MODELS = 15
_ALARMS = 10
_TITLE = 110  # characters


@dataclass(frozen=True)
class Section:
    """One crawl of a report: what the template shows of it, as plain values.

    Attributes
    ----------
    label : name of the crawl in the report
    summary : (name, value), see `Summary.lines`
    relevance : data URI of the histogram
    best_hosts, worst_hosts : rows of `focuscrawl.report.measures.by_host`
    best_pages : rows of `focuscrawl.report.measures.load_pages`, without the seeds
    outcomes : (what came of it, fetches)
    depths : rows of `focuscrawl.report.measures.by_depth`
    events : (time, seq, kind, detail), the last ones; those that can be many are only counted
    models : (version, trained at, instances, metrics), the last ones
    alarms : falls of the harvest rate and their causes, as the crawl is judged now
    """

    label: str
    summary: list[tuple[str, str]]
    relevance: str
    best_hosts: list[Any]
    worst_hosts: list[Any]
    best_pages: list[Any]
    outcomes: list[tuple[str, int]]
    depths: list[Any]
    events: list[tuple[str, int, str, str]]
    models: list[tuple[int, int, int, str]]
    alarms: list[Diagnosis]

    @classmethod
    def of(cls, label: str, store: CrawlStore, summary: Summary, pages: pd.DataFrame) -> Section:
        """Gather what is shown of one crawl."""
        hosts = measures.by_host(pages)
        wasted = hosts[hosts["wasted"] > 0].sort_values("wasted", ascending=False, kind="stable")
        found = pages[(pages["outcome"] == PAGE) & (pages["relevance"] > 0) & (pages["depth"] > 0)]
        best = found.sort_values("relevance", ascending=False, kind="stable").head(_PAGES)
        return cls(
            label=label,
            summary=summary.lines(),
            relevance=data_uri(png(relevance_figure(pages))),
            best_hosts=rows_of(hosts[hosts["relevance"] > 0].head(_ROWS)),
            worst_hosts=rows_of(wasted.head(_ROWS)),
            best_pages=rows_of(best),
            outcomes=[(str(name), int(n)) for name, n in measures.by_outcome(pages).items()],
            depths=rows_of(measures.by_depth(pages)),
            events=_events(store),
            models=_models(store),
            alarms=watch_again(store)[1][-_ALARMS:],
        )


def page(
    sections: Sequence[Section], compared: Sequence[Compared], curves: Sequence[tuple[str, bytes]]
) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    sections : the crawls
    compared : the same crawls beside each other; shown when there are several
    curves : (what it shows, PNG) of the figures that all crawls are in
    """
    return _template().render(
        sections=sections,
        heading=comparison.heading(compared),
        compared=[comparison.cells(row) for row in compared],
        curves=[(name, data_uri(image)) for name, image in curves],
    )


def data_uri(image: bytes) -> str:
    """Return a PNG as a URI that holds all of it."""
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


@cache
def _template() -> Template:
    return load_template(
        "report.html.j2",
        one_line=lambda text: one_line(text, _TITLE),
        shortened=lambda url: middle(one_line(url), _TITLE),
    )


def _events(store: CrawlStore) -> list[tuple[str, int, str, str]]:
    e = schema.events.c
    last = sa.select(e.at, e.seq, e.kind, e.detail).where(e.kind.not_in(_COUNTED))
    events = [tuple(row) for row in store.rows(last.order_by(e.id.desc()).limit(_EVENTS))]
    last_one = (sa.func.max(e.at).label("at"), sa.func.max(e.seq).label("seq"))
    figures = sa.select(e.kind, *last_one, sa.func.count().label("n"))
    for row in store.rows(figures.where(e.kind.in_(_COUNTED)).group_by(e.kind)):
        what, why = _COUNTED[row.kind]
        events.append((row.at, row.seq, row.kind, f"{counted(row.n, what)} so far, {why}"))
    return sorted(events, key=lambda event: (event[0], event[1]))


def _models(store: CrawlStore) -> list[tuple[int, int, int, str]]:
    m = schema.models.c
    last = sa.select(m.version, m.trained_at_seq, m.instances, m.metrics)
    rows = [*store.rows(last.order_by(m.version.desc()).limit(_MODELS))]
    with taking_in(store.where):
        return [(*row[:3], _metrics(row.metrics)) for row in reversed(rows)]


def _metrics(text: str) -> str:
    metrics = json.loads(text)
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in metrics.items()
    )
