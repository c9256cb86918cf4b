"""Learning curves of consecutive crawls (METHODS 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from focuscrawl.lab.figures.panels import legend, lines, panels
from focuscrawl.lab.learning_curves import chains, curves_of
from focuscrawl.report.learning_curves import points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results


def learnable_figure(results: Results) -> Figure | None:
    """Draw the curves of consecutive crawls of the learnable crawler."""
    return _figure(results, "learnable")


def apprentice_figure(results: Results) -> Figure | None:
    """Draw the curves of consecutive crawls of the apprentice."""
    return _figure(results, "apprentice")


def _figure(results: Results, strategy: str) -> Figure | None:
    """Draw the first chain of a strategy, one plot a topic; the first draw."""
    chain = next((c for c in chains(results) if results.strategies[c[0]] == strategy), None)
    if chain is None:
        return None
    parts = []
    for web, topic, draw, curves in curves_of(results, chain):
        for label in chain if draw == 0 else ():
            if label in curves:
                at, share = points(curves[label])
                whose = {"web": web, "topic": topic, "strategy": label}
                parts.append(pd.DataFrame({**whose, "at": at, "share": share}))
    if not parts:
        return None
    table = pd.concat(parts, ignore_index=True)
    y = "% of the relevant pages found by any"
    with panels(table, "% of the fetches", y, share_x=True) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "at", "share", by="strategy", order=chain)
            plot.set(xlim=(0, 100), ylim=(0, 100))
        legend(figure, chain)
    return figure
