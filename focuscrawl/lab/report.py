"""The report of a study: one HTML page that needs nothing else, its pictures, its tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.lab.loss_curves import mean_curves, reduction_figure, topic_figure, web_figure
from focuscrawl.lab.measures import by_topic
from focuscrawl.lab.rendering import grids
from focuscrawl.report.figure_style import png
from focuscrawl.report.plain_text import counted
from focuscrawl.report.templates import load_template

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.lab.loss_curves import Curves
    from focuscrawl.lab.results import Results

PAGE = "report.html"

#: by whose word losses are drawn, as files are named: columns of fetches, and of runs
_JUDGES = {"-judge": ("judged", "judged_loss"), "": ("relevance", "loss")}


class Picture(NamedTuple):
    """A figure of the report: ``name`` for its file, ``caption`` for people."""

    name: str
    caption: str
    png: bytes


def report_files(results: Results, *, csv: bool = False) -> dict[str, bytes]:
    """Return the files of a report by name.

    Parameters
    ----------
    csv : with the tables in numbers, too
    """
    webs = [_web(results, web) for web in dict.fromkeys(results.runs["web"])]
    pictures = [picture for web in webs for picture in (*web["whole"], *web["topics"])]
    files = {picture.name: picture.png for picture in pictures}
    page = load_template("report.html.j2", "focuscrawl.lab").render(
        title=results.title,
        facts=_facts(results),
        failed=results.failed,
        webs=webs,
    )
    files[PAGE] = page.encode()
    if csv:
        for grid in (grid for web in webs for grid in web["grids"]):
            files[f"{_slug(grid.name)}.csv"] = grid.frame.to_csv(index=False).encode()
    return files


def _web(results: Results, web: str) -> dict[str, Any]:
    """Draw and tabulate one web of a study, as the template names it."""
    runs = results.runs[results.runs["web"] == web]
    whole, of_topics = [], []
    for by, (column, loss) in _JUDGES.items():
        if runs[loss].notna().any():
            curves = mean_curves(results, web, column)
            measured = runs.assign(loss=runs[loss])
            whole += _of_all_topics(results, web, curves, measured, by)
            of_topics += _of_topics(results, web, curves, measured, by)
    return {"name": web, "grids": grids(results, web), "whole": whole, "topics": of_topics}


def _of_all_topics(
    results: Results, web: str, curves: Curves, runs: pd.DataFrame, by: str
) -> list[Picture]:
    strategies, told = list(results.strategies), _told(by)
    median = png(web_figure(curves, strategies))
    pictures = [
        Picture(_file(web, f"median{by}"), f"{web}: loss rate{told}, median over topics", median)
    ]
    topics = by_topic(runs, results.baseline)
    if topics["reduction"].notna().any():
        spread = png(reduction_figure(topics, strategies, results.baseline))
        caption = f"{web}: reduction of loss{told} on each topic"
        pictures.append(Picture(_file(web, f"reductions{by}"), caption, spread))
    return pictures


def _of_topics(
    results: Results, web: str, curves: Curves, runs: pd.DataFrame, by: str
) -> list[Picture]:
    budgets = runs.groupby("topic", sort=False, observed=True)["budget"].mean()
    return [
        Picture(
            _file(web, f"{topic}{by}"),
            f"{web} {topic}{_told(by)}",
            png(topic_figure(curves[str(topic)], float(budget), list(results.strategies))),
        )
        for topic, budget in budgets.items()
    ]


def _told(by: str) -> str:
    return f", by the {by.strip('-')}" if by else ""


def _facts(results: Results) -> list[tuple[str, str]]:
    runs = results.runs
    topics = [
        f"{counted(of_web['topic'].nunique(), 'topic')} of {web}"
        for web, of_web in runs.groupby("web", sort=False, observed=True)
    ]
    cost = f"{runs['seconds'].sum() / 60:,.0f} min in all, {runs['seconds'].mean():.1f} s a run"
    return [
        ("compared", ", ".join(topics)),
        ("strategies", ", ".join(results.strategies)),
        ("baseline", results.baseline),
        ("draws", f"{runs['draw'].nunique()}"),
        ("runs", f"{len(runs):,}, {runs['fetches'].sum():,} fetches"),
        ("time of the processes", cost),
        ("memory", f"{runs['megabytes'].max():,.0f} MB in the largest run"),
    ]


def _file(web: str, what: str) -> str:
    return f"{_slug(web)}-{_slug(what)}.png"


def _slug(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("_") or "all"
