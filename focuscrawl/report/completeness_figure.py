"""A figure of how complete a crawl was by its own estimates, while it went on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.report.figure_style import Line, axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from focuscrawl.completeness import Estimate


def completeness_figure(estimates: Sequence[Estimate], number: int = 0) -> Figure:
    """Draw the estimated recall with its interval against fetches.

    Parameters
    ----------
    number : of the crawl among those of the report, from 0; it has the colour of its curve
    """
    fetched = [each.fetched for each in estimates]
    low, high = zip(*(each.interval for each in estimates), strict=True)
    line = Line.of(number)
    with axes(height=3.2) as (figure, plot):
        plot.fill_between(fetched, low, high, color=line.colour, alpha=0.15, lw=0)
        line.draw(plot, fetched, [each.recall for each in estimates], "estimate")
        plot.set(
            xlabel="fetches",
            ylabel="recall, with 90 % interval",
            xlim=(0, fetched[-1]),
            ylim=(-0.01, 1.01),
        )
    return figure
