"""What crawls have in common: [A02] figure 11, [F99] robustness to the choice of seeds."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from focuscrawl.lab.figures.panels import (
    EDGE,
    WHITE,
    legend,
    lines,
    order_of,
    panels,
    topic_axis,
)
from focuscrawl.lab.figures.study_data import SOFT, fetches_of
from focuscrawl.report import figure_style
from focuscrawl.report.figure_style import Line, axes, evenly_spread, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results

_POINTS = 50  # of a curve


def of_two(results: Results, *, apprentices: Sequence[str]) -> pd.DataFrame | None:
    """Return the fetches of the baseline and of the first of the `apprentices` that is there."""
    for second in apprentices:
        found = fetches_of(results, [SOFT, second], "url")
        if found is not None:
            return found
    return None


def strategies_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Count the URLs that one of two strategies fetched, or the other, or both; mean over draws.

    Returns
    -------
    One row a web and topic: ``first``, ``second`` strategy; ``only_first``, ``both``,
    ``only_second``, and ``shared``: both, as a share of all
    """
    first, second = dict.fromkeys(fetches["strategy"])
    rows = []
    for (web, topic, _), run in fetches.groupby(["web", "topic", "draw"], sort=False):
        a, b = (set(run.loc[run["strategy"] == name, "url"]) for name in (first, second))
        if a and b:
            rows.append((web, topic, len(a - b), len(a & b), len(b - a)))
    names = ["only_first", "both", "only_second"]
    table = pd.DataFrame(rows, columns=["web", "topic", *names])
    table = table.groupby(["web", "topic"], sort=False).mean().reset_index()
    shared = table["both"] / table[names].sum(axis=1)
    return table.assign(first=first, second=second, shared=shared)


def draw_strategies(table: pd.DataFrame) -> Figure:
    """Draw `strategies_table`, one bar a topic."""
    place = np.arange(len(table))
    first, second = table["first"].iloc[0], table["second"].iloc[0]
    order = list(dict.fromkeys([*order_of(table["first"]), *order_of(table["second"])]))
    bars: dict[str, tuple[str, dict[str, Any]]] = {
        "only_first": (f"{first} only", {**EDGE, "color": Line.of(order.index(first)).colour}),
        "both": ("both", WHITE),
        "only_second": (f"{second} only", {**EDGE, "color": Line.of(order.index(second)).colour}),
    }
    with axes(7.0, 0.9 + 0.3 * len(table)) as (figure, plot):
        begin = np.zeros(len(table))
        for name, (label, look) in bars.items():
            plot.barh(place, table[name], 0.7, begin, label=plain(label), **look)
            begin += table[name].to_numpy()
        topic_axis(plot, table)
        plot.set_xlabel("URLs fetched (mean over draws)")
        figure_style.legend(figure, loc="outside lower center")
    return figure


def of_draws(results: Results) -> pd.DataFrame | None:
    """Return the fetches of the baseline, if there are several draws of the seeds."""
    found = fetches_of(results, [SOFT], "url", "host")
    return None if found is None or found["draw"].nunique() < 2 else found


def seeds_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return what crawls from different draws of the seeds have in common after n fetches.

    Parameters
    ----------
    fetches : of one strategy; with ``url`` and ``host``

    Returns
    -------
    Rows by web and topic: ``of`` (``URLs``, ``hosts``; no hosts where all are on one),
    ``fetches`` n, ``overlap``: those of both crawls, as a share of those of one; mean over pairs
    of draws
    """
    rows = []
    for (web, topic), of_topic in fetches.groupby(["web", "topic"], sort=False):
        draws = [run.sort_values("seq") for _, run in of_topic.groupby("draw")]
        hosts = of_topic["host"].nunique() > 1
        for a, b in combinations(draws, 2):
            shown = evenly_spread(min(len(a), len(b)), _POINTS)
            for of, column in (("URLs", "url"), ("hosts", "host"))[: 2 if hosts else 1]:
                common = _common(a[column].tolist(), b[column].tolist(), shown + 1)
                rows += [(web, topic, of, i / _POINTS, n, share) for i, n, share in common]
    names = ["web", "topic", "of", "place", "fetches", "overlap"]
    # pairs may differ in length: the i-th point of one goes with the i-th of the others
    table = pd.DataFrame(rows, columns=names).groupby(names[:4], sort=False).mean()
    return table.reset_index().drop(columns="place")


def _common(
    a: Sequence[str], b: Sequence[str], counts: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[tuple[int, int, float]]:
    found = []
    for i, n in enumerate(counts.tolist()):
        of_a, of_b = set(a[:n]), set(b[:n])
        found.append((i, n, 2 * len(of_a & of_b) / (len(of_a) + len(of_b))))
    return found


def draw_seeds(table: pd.DataFrame) -> Figure:
    """Draw `seeds_table`."""
    x, y = "fetches of each crawl", "share in common"
    with panels(table, x, y, share_x=False) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "fetches", "overlap", by="of", order=["URLs", "hosts"])
            plot.set(xlim=(0, rows["fetches"].max()), ylim=(0, 1))
        legend(figure, ["URLs", "hosts"])
    return figure
