"""Learning curves of consecutive crawls (METHODS 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from focuscrawl.lab.consecutive_crawls import chains, curves_of
from focuscrawl.lab.figures.panels import legend, lines, order_of, panels
from focuscrawl.report.learning_curves import points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focuscrawl.lab.figures.study_data import Data
    from focuscrawl.lab.results import Results


def points_of(strategy: str) -> Data:
    """Return what finds the curves of the first chain of consecutive crawls of a strategy.

    Of the first draw. Rows by web, topic and ``strategy`` (label of the crawl): ``at``, per cent
    of the fetches, and ``share``, per cent of the relevant pages that any of the crawls found
    """

    def find(results: Results) -> pd.DataFrame | None:
        of_strategy = (c for c in chains(results) if results.strategies[c[0]] == strategy)
        chain = next(of_strategy, None)
        if chain is None:
            return None
        parts = []
        for web, topic, draw, curves in curves_of(results, chain):
            for label in chain if draw == 0 else ():
                if label in curves:
                    at, share = points(curves[label])
                    whose = {"web": web, "topic": topic, "strategy": label}
                    parts.append(pd.DataFrame({**whose, "at": at, "share": share}))
        return pd.concat(parts, ignore_index=True) if parts else None

    return find


def draw_learning(table: pd.DataFrame) -> Figure:
    """Draw `points_of` a strategy."""
    chain = order_of(table["strategy"])
    y = "% of the relevant pages found by any"
    with panels(table, "% of the fetches", y) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "at", "share", by="strategy", order=chain)
            plot.set(xlim=(0, 100), ylim=(0, 100))
        legend(figure, chain)
    return figure
