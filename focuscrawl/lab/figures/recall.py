"""Recall of a forage against its fetches, and the table that goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.report.figure_style import Line, axes, legend, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from focuscrawl.lab.forages import Forage


def recall_curve(forage: Forage, fetches: int) -> NDArray[np.float64]:
    """Return the share of the reachable goals found after 0, 1, ... `fetches` fetches."""
    brought = np.bincount(forage.found, minlength=fetches + 1)[: fetches + 1]
    curve: NDArray[np.float64] = np.cumsum(brought) / max(forage.reachable, 1)
    return curve


def recall_figure(forages: Mapping[str, Sequence[Forage]], title: str, fetches: int) -> Figure:
    """Draw recall against fetches: the mean over sites, and thin each of the first strategy's.

    Parameters
    ----------
    forages : of each strategy, one a site
    """
    x = np.arange(fetches + 1)
    with axes(height=4.4) as (figure, plot):
        for number, (strategy, of_sites) in enumerate(forages.items()):
            line = Line.of(number)
            curves = [recall_curve(each, fetches) for each in of_sites]
            if not number and len(curves) > 1:
                for curve in curves:
                    plot.plot(x, curve, color=line.colour, lw=0.7, alpha=0.45)
            line.draw(plot, x, np.mean(curves, axis=0), strategy)
        first = next(iter(forages))
        if len(forages[first]) > 1:
            plot.plot([], [], color="0.4", lw=0.7, label=f"thin: {first}, each site")
        plot.axhline(0.9, color="0.6", lw=0.8)
        plot.set(
            xlabel="fetches",
            ylabel="share of the reachable goals found",
            xlim=(0, fetches),
            ylim=(-0.01, 1.01),
            title=plain(title),
        )
        legend(figure, columns=3)
    return figure
