"""How relevant what was fetched is: [A02] figures 4 and 5, [F99] distributions of relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.lab.figures.panels import EDGE, GREY, WHITE, legend, order_of, panels, topic_axis
from focuscrawl.report import figure_style
from focuscrawl.report.figure_style import Line, axes, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 10


def good_bad_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Count good fetches, of relevance above 0.5, and bad ones; mean over draws.

    Returns
    -------
    One row a web and topic: ``good``, ``bad``, fetches
    """
    good = (fetches["relevance"] > 0.5).rename("good")
    of_run = good.groupby([fetches[name] for name in ("web", "topic", "draw")], sort=False)
    counts = pd.DataFrame({"good": of_run.sum(), "bad": of_run.size() - of_run.sum()})
    return counts.groupby(["web", "topic"], sort=False).mean().reset_index()


def draw_good_bad(table: pd.DataFrame) -> Figure:
    """Draw `good_bad_table`, one pair of bars a topic."""
    place = np.arange(len(table))
    with axes(7.0, 0.9 + 0.3 * len(table)) as (figure, plot):
        good = table["good"]
        plot.barh(place, good, 0.7, label="good, R > 0.5", **GREY)
        plot.barh(place, table["bad"], 0.7, good, label="bad", **WHITE)
        topic_axis(plot, table)
        plot.set_xlabel("fetches of the baseline (mean over draws)")
        figure_style.legend(figure, loc="outside lower center")
    return figure


def relevance_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Count fetches by relevance, all draws together.

    Returns
    -------
    Ten rows a web, topic and strategy: ``relevance``, where the tenth of [0, 1] begins;
    ``share`` of the fetches
    """
    rows = []
    for key, values in fetches.groupby(["web", "topic", "strategy"], sort=False)["relevance"]:
        counts = np.histogram(values, BINS, (0.0, 1.0))[0]
        rows += [(*key, i / BINS, count / len(values)) for i, count in enumerate(counts)]
    return pd.DataFrame(rows, columns=["web", "topic", "strategy", "relevance", "share"])


def draw_relevance(table: pd.DataFrame) -> Figure:
    """Draw `relevance_table`: a group of bars a tenth, one bar a strategy."""
    order = order_of(table["strategy"])
    names = [name for name in order if (table["strategy"] == name).any()]
    width = 0.9 / BINS / len(names)
    with panels(table, "relevance R, in tenths", "share of fetches") as (figure, plots):
        for plot, rows in plots:
            for name, bars in rows.groupby("strategy", sort=False, observed=True):
                number = names.index(str(name))
                left = bars["relevance"] + 0.05 / BINS + number * width
                look = {**EDGE, "color": Line.of(order.index(str(name))).colour}
                plot.bar(left, bars["share"], width, align="edge", label=plain(str(name)), **look)
            plot.set(xlim=(0, 1), ylim=(0, 1))
        legend(figure, names)
    return figure
