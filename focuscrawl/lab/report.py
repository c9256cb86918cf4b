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
    from collections.abc import Mapping

    from focuscrawl.lab.figures import PaperFigure
    from focuscrawl.lab.loss_curves import Curves
    from focuscrawl.lab.results import Results

PAGE = "report.html"


class Picture(NamedTuple):
    """A figure of the report: ``name`` for its file, ``caption`` for people."""

    name: str
    caption: str
    png: bytes


def report_files(
    results: Results, figures: Mapping[str, PaperFigure], *, csv: bool = False
) -> dict[str, bytes]:
    """Return the files of a report by name.

    Parameters
    ----------
    figures : further ones by name; those that the results do not allow are left out
    csv : with the tables in numbers, too
    """
    curves = mean_curves(results)
    webs = [_web(results, web, curves) for web in dict.fromkeys(results.runs["web"])]
    more = [
        Picture(f"{name}.png", figure.title, png(drawn))
        for name, figure in figures.items()
        if (drawn := figure.of(results)) is not None
    ]
    pictures = [picture for web in webs for picture in (*web["whole"], *web["topics"])] + more
    files = {picture.name: picture.png for picture in pictures}
    page = load_template("report.html.j2", "focuscrawl.lab").render(
        title=results.title,
        facts=_facts(results),
        failed=results.failed,
        webs=webs,
        figures=more,
    )
    files[PAGE] = page.encode()
    if csv:
        for grid in (grid for web in webs for grid in web["grids"]):
            files[f"{_slug(grid.name)}.csv"] = grid.frame.to_csv(index=False).encode()
    return files


def _web(results: Results, web: str, curves: Curves) -> dict[str, Any]:
    """Draw and tabulate one web of a study, as the template names it."""
    runs = results.runs[results.runs["web"] == web]
    strategies = list(results.strategies)
    topics = by_topic(runs, results.baseline)
    median = png(web_figure(curves, web, strategies))
    whole = [Picture(_file(web, "median"), f"{web}: loss rate, median over topics", median)]
    if topics["reduction"].notna().any():
        spread = png(reduction_figure(topics, strategies, results.baseline))
        caption = f"{web}: reduction of loss on each topic"
        whole.append(Picture(_file(web, "reductions"), caption, spread))
    budgets = runs.groupby("topic", sort=False, observed=True)["budget"].mean()
    of_topics = []
    for topic, budget in budgets.items():
        figure = topic_figure(curves[web, str(topic)], float(budget), strategies)
        of_topics.append(Picture(_file(web, str(topic)), f"{web} {topic}", png(figure)))
    return {"name": web, "grids": grids(results, web), "whole": whole, "topics": of_topics}


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
