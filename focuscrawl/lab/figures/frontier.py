"""What becomes of the frontier when the apprentice takes over: [A02] figure 13a."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.lab.figures.panels import legend, lines, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BEFORE, _AFTER = "before: relevance of the source page", "after: the apprentice"


def priorities_table(counts: pd.DataFrame) -> pd.DataFrame:
    """Return which priorities the URLs of the frontier have before and after.

    Parameters
    ----------
    counts : ``priorities`` of `focuscrawl.lab.takeover_study.take_over`

    Returns
    -------
    Ten rows a web, topic and ``when``: ``score``, the middle of the tenth of [0, 1]; ``share``
    of the URLs
    """
    long = counts.melt(["web", "topic", "score"], ["before", "after"], "when", "urls")
    total = long.groupby(["web", "topic", "when"])["urls"].transform("sum")
    return long.assign(
        score=long["score"] + 0.05,
        share=long["urls"] / total.clip(lower=1),
        when=long["when"].map({"before": _BEFORE, "after": _AFTER}),
    )


def draw_priorities(table: pd.DataFrame) -> Figure:
    """Draw `priorities_table`."""
    names = [_BEFORE, _AFTER]
    x, y = "priority, in tenths", "share of the frontier"
    with panels(table, x, y) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "score", "share", by="when", order=names)
            for line in plot.get_lines():
                line.set(marker="o", markersize=3)
            plot.set(xlim=(0, 1), ylim=(0, 1))
        legend(figure, names, 2)
    return figure
