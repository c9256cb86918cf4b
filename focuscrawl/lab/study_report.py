"""HTML report of a study, with its loss curves and tables.

The report's figures are matplotlib figures created without pyplot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from focuscrawl.lab.study_tables import by_topic, web_tables
from focuscrawl.report.figures import curves_figure, escape_label, png, single_plot
from focuscrawl.report.plain_text import pluralize
from focuscrawl.report.templates import load_template

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.lab.results import Results


PAGE = "report.html"
_POINTS = 100  # of a curve
_JUDGED = "judged"
#: suffix of file names: columns of the fetches and of the runs that the figures show
_JUDGES = {"-judge": ("judged", "judged_loss"), "": ("relevance", "loss")}

Curves = dict[str, dict[str, "Floats"]]


def mean_curves(results: Results, web: str, by: str = "relevance") -> Curves:
    """Return the loss rate after each percent of the budget, as a mean over seed samples.

    Parameters
    ----------
    results : Results
        Results of the study.
    web : str
        Name of the web.
    by : str
        Column of the fetches: ``relevance``, or ``judged`` for the evaluator's classifier, which
        excludes start pages as in the tables.

    Returns
    -------
    dict[str, dict[str, Floats]]
        By topic and strategy, an array of shape (100,): the mean loss rate after 1 %, 2 %, ... of
        the budget. Fetches that a crawl did not make count as lost.
    """
    sums: dict[str, dict[str, list[Floats]]] = {}
    for run, fetches in results.iter_runs([by, "referrer"], web):
        found = fetches[: run.budget]
        starts = found["referrer"].isna() & (by == _JUDGED)
        budget = run.budget - int(starts.sum())
        lost = np.ones(max(budget, 1))
        lost[: (~starts).sum()] -= found[by].to_numpy()[~starts]
        rate = lost.cumsum() / np.arange(1, len(lost) + 1)
        after = np.ceil(np.arange(1, _POINTS + 1) / _POINTS * len(lost)).astype(np.int64) - 1
        sums.setdefault(run.topic, {}).setdefault(run.strategy, []).append(rate[after])
    return {
        topic: {label: np.mean(draws, axis=0) for label, draws in strategies.items()}
        for topic, strategies in sums.items()
    }


def topic_figure(curves: Mapping[str, Floats], budget: float, strategies: list[str]) -> Figure:
    """Draw the loss curves of one topic.

    Parameters
    ----------
    curves : Mapping[str, Floats]
        Curves of `mean_curves` by strategy.
    budget : float
        Mean number of fetches at the end of the curves.
    strategies : list[str]
        All strategies of the study, which determine the line styles.
    """
    at = np.arange(1, _POINTS + 1) / _POINTS * budget
    return _figure(curves, at, strategies, "fetches", "loss rate, mean over draws")


def web_figure(curves: Curves, strategies: list[str]) -> Figure:
    """Draw a web's median loss curve over topics for each strategy that ran on all topics."""
    topics = curves.values()
    medians = {
        label: np.median([found[label] for found in topics], axis=0)
        for label in strategies
        if all(label in found for found in topics)
    }
    at = np.arange(1, _POINTS + 1) / _POINTS * 100
    return _figure(
        medians, at, strategies, "fetches, % of the budget", "loss rate, median over topics"
    )


def reduction_figure(topics: pd.DataFrame, strategies: list[str], baseline: str) -> Figure:
    """Draw each strategy's loss reduction on every topic of a web.

    Parameters
    ----------
    topics : pd.DataFrame
        Rows of one web from `focuscrawl.lab.study_tables.by_topic`.
    strategies : list[str]
        Strategies from top to bottom.
    baseline : str
        Label of the baseline.
    """
    reductions = {
        label: topics.loc[topics["strategy"] == label, "reduction"].dropna().to_numpy()
        for label in strategies
        if label != baseline
    }
    shown = {label: values for label, values in reductions.items() if len(values)}
    with single_plot(height=1.2 + 0.32 * max(len(shown), 2)) as (figure, plot):
        for place, values in enumerate(shown.values()):
            # values far below -100 % are drawn at the edge of the axis
            within = np.clip(values, -1, 1)
            plot.plot(within, np.full(len(within), place), "o", mfc="none", mec="0.35", ms=5)
            plot.plot(np.median(within), place, "|", color="black", ms=17, mew=2.5)
        plot.axvline(0, color="black", lw=0.8)
        plot.set(
            xlabel=f"loss reduction against {escape_label(baseline)}; ○ one topic, | median",
            xlim=(-1.05, 1.05),
            ylim=(len(shown) - 0.5, -0.5),
        )
        plot.set_yticks(range(len(shown)), [escape_label(label) for label in shown])
        plot.set_xticks([-1, -0.5, 0, 0.5, 1], ["-100 % or less", "-50 %", "0", "50 %", "100 %"])
    return figure


def _figure(
    curves: Mapping[str, Floats], at: Floats, strategies: list[str], xlabel: str, ylabel: str
) -> Figure:
    return curves_figure(
        {label: (at, losses) for label, losses in curves.items()},
        labels=strategies,
        marked=True,
        height=5.2,
        xlabel=xlabel,
        ylabel=ylabel,
        xlim=(0, at[-1]),
        ylim=(-0.01, 1.01),
    )


class Picture(NamedTuple):
    """A figure of a study's report with its file name and caption."""

    name: str
    caption: str
    png: bytes


def report_files(results: Results, *, csv: bool = False) -> dict[str, bytes]:
    """Return a dict from the name of each file of a study's report to its content.

    Parameters
    ----------
    results : Results
        Results of the study.
    csv : bool
        Add the tables as CSV files.
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
        for table in (table for web in webs for table in web["tables"]):
            files[f"{_slug(table.name)}.csv"] = table.frame.to_csv(index=False).encode()
    return files


def _web(results: Results, web: str) -> dict[str, Any]:
    runs, strategies = results.runs[results.runs["web"] == web], list(results.strategies)
    budgets = runs.groupby("topic", sort=False, observed=True)["budget"].mean()
    whole, of_topics = [], []
    for by, (column, loss) in _JUDGES.items():
        if not runs[loss].notna().any():
            continue
        judge = f", by the {by.strip('-')}" if by else ""
        curves = mean_curves(results, web, column)
        caption = f"{web}: loss rate{judge}, median over topics"
        whole.append(_picture(web, f"median{by}", caption, web_figure(curves, strategies)))
        topics = by_topic(runs.assign(loss=runs[loss]), results.baseline)
        if topics["reduction"].notna().any():
            spread = reduction_figure(topics, strategies, results.baseline)
            caption = f"{web}: loss reduction{judge} on each topic"
            whole.append(_picture(web, f"reductions{by}", caption, spread))
        for topic, budget in budgets.items():
            drawn = topic_figure(curves[str(topic)], float(budget), strategies)
            of_topics.append(_picture(web, f"{topic}{by}", f"{web} {topic}{judge}", drawn))
    return {"name": web, "tables": web_tables(results, web), "whole": whole, "topics": of_topics}


def _picture(web: str, what: str, caption: str, figure: Figure) -> Picture:
    return Picture(f"{_slug(web)}-{_slug(what)}.png", caption, png(figure))


def _facts(results: Results) -> list[tuple[str, str]]:
    runs = results.runs
    topics = [
        f"{pluralize(of_web['topic'].nunique(), 'topic')} of {web}"
        for web, of_web in runs.groupby("web", sort=False, observed=True)
    ]
    cost = f"{runs['seconds'].sum() / 60:,.0f} min in total, {runs['seconds'].mean():.1f} s a run"
    return [
        ("topics", ", ".join(topics)),
        ("strategies", ", ".join(results.strategies)),
        ("baseline", results.baseline),
        ("draws", f"{runs['draw'].nunique()}"),
        ("runs", f"{len(runs):,}, {runs['fetches'].sum():,} fetches"),
        ("run time", cost),
        ("peak memory", f"{runs['megabytes'].max():,.0f} MB"),
    ]


def _slug(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("_") or "all"
