"""The curves of one crawl, or of several in one figure.

Every function takes pages as `focuscrawl.report.measures.load_pages` returns them and gives a
matplotlib figure that belongs to nobody: save it, or show it in a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.colors import to_rgba

from focuscrawl.report import measures
from focuscrawl.report.figure_style import Line, axes, evenly_spread, legend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focuscrawl.report.milestones import Milestone

_POINTS = 2000  # of a curve; more than a figure has pixels
#: looks of milestones; two of them after one fetch can both be seen
_MARKS: dict[str, dict[str, Any]] = {
    "restart": {"marker": "|", "ms": 18, "mew": 1.5},
    "alarm": {"marker": "v", "ms": 8, "mec": "white"},
    "topic changed": {"marker": "D", "ms": 7, "mec": "white"},
}


def loss_figure(
    crawls: Mapping[str, pd.DataFrame], milestones: Mapping[str, Sequence[Milestone]] | None = None
) -> Figure:
    """Draw the loss rate against fetches (METHODS 1; A02, figure 10).

    Parameters
    ----------
    crawls : pages of each crawl by its label
    milestones : what happened to a crawl, by its label; marked on its curve
    """
    windows, seen = set(), set()
    with axes() as (figure, plot):
        for number, (label, pages) in enumerate(crawls.items()):
            line, window = Line.of(number), measures.default_window(len(pages))
            rate = measures.loss_rate(pages)
            shown = evenly_spread(len(pages), _POINTS)
            if len(pages) > window:
                windows.add(window)
                moving = 1.0 - measures.moving_harvest_rate(pages, window)
                plot.plot(
                    pages.index[shown], moving.iloc[shown], color=line.colour, lw=0.7, alpha=0.45
                )
            line.draw(plot, pages.index[shown], rate.iloc[shown], label)
            for kind, look in _MARKS.items():
                told = (milestones or {}).get(label, ())
                at = [each.seq for each in told if each.kind == kind and each.seq in rate.index]
                if at:
                    seen.add(kind)
                    plot.plot(at, rate[at], ls="", color=line.colour, **look)
        if windows:
            spans = " or ".join(map(str, sorted(windows)))
            plot.plot([], [], color="0.4", lw=0.7, label=f"thin: the last {spans} fetches only")
        for kind, look in _MARKS.items():
            if kind in seen:
                plot.plot([], [], ls="", color="0.4", label=kind, **look)
        longest = max(map(len, crawls.values()), default=0)
        plot.set(
            xlabel="fetches",
            ylabel="loss rate = 1 - harvest rate",
            xlim=(0, max(longest, 1)),
            ylim=(-0.01, 1.01),
        )
        if longest:
            legend(figure, columns=3)
        _say_if_empty(plot, longest)
    return figure


def relevance_figure(pages: pd.DataFrame, number: int = 0) -> Figure:
    """Draw how many fetches had which relevance.

    Parameters
    ----------
    number : of the crawl among those of the report, from 0; it has the colour of its curve
    """
    histogram = measures.relevance_histogram(pages)
    left, width = histogram.index.to_numpy(), 1.0 / len(histogram)
    look: dict[str, Any] = {"align": "edge", "edgecolor": "black", "linewidth": 0.6}
    with axes(height=3.2) as (figure, plot):
        judged = histogram["judged"].to_numpy()
        colour = to_rgba(Line.of(number).colour, 0.5)
        plot.bar(left, judged, width, color=colour, label="pages", **look)
        if histogram["unjudged"].any():
            plot.bar(
                left[:1],
                histogram["unjudged"].to_numpy()[:1],
                width,
                judged[:1],
                color="white",
                hatch="////",
                label="redirects, errors, duplicates, no HTML",
                **look,
            )
            plot.legend()
        plot.set(xlabel="relevance R", ylabel="fetches", xlim=(0, 1))
        _say_if_empty(plot, len(pages))
    return figure


def _say_if_empty(plot: Axes, fetches: int) -> None:
    if not fetches:
        plot.set_ylim(0, 1)
        plot.text(0.5, 0.5, "no fetches yet", transform=plot.transAxes, ha="center", color="0.4")
