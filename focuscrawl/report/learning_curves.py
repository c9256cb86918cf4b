"""Learning curves of consecutive crawls: what a crawl gains by those before it (METHODS 8).

The paper draws the share of relevant pages collected against the share of pages collected, one
curve a crawl; a curve above the one before is positive learning. How many relevant pages there are
nobody knows on the live Web, so those count that any of the crawls compared has found
(*pooling*, as in the evaluation of retrieval).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.report.figure_style import Line, axes, evenly_spread, legend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

_POINTS = 200  # of a curve


@dataclass(frozen=True)
class Curve:
    """The learning curve of one crawl.

    Attributes
    ----------
    label : of the crawl
    share : float64 (n,), of the pooled relevant pages, collected by the first 1, 2, ... fetches
    area : mean of `share` over the fetches, those that a crawl did not make counted as in vain
    """

    label: str
    share: NDArray[np.float64]
    area: float


def learning_curves(crawls: Mapping[str, pd.DataFrame], budget: int | None = None) -> list[Curve]:
    """Return the learning curves of crawls, in their order.

    Parameters
    ----------
    crawls : by label, with columns ``url`` and ``relevance``, a row a fetch
    budget : fetches that are looked at; None: as many as the longest crawl has
    """
    most = budget or max(map(len, crawls.values()), default=0)
    found = {
        label: pages["url"].where(pages["relevance"] > RELEVANT)[:most]
        for label, pages in crawls.items()
    }
    pool = len({url for urls in found.values() for url in urls.dropna()})
    curves = []
    for label, urls in found.items():
        share = np.zeros(most)
        share[: len(urls)] = urls.notna().cumsum() / max(pool, 1)
        share[len(urls) :] = share[len(urls) - 1] if len(urls) else 0.0
        curves.append(Curve(label, share, float(share.mean()) if most else 0.0))
    return curves


def learned(curves: Sequence[Curve]) -> list[str]:
    """Say for each crawl how it did, and by how much its area is above that of the one before."""
    lines = []
    for i, curve in enumerate(curves):
        found = float(curve.share[-1]) if len(curve.share) else 0.0
        line = f"{curve.label}: area {curve.area:.3f}, {found:.0%} of the relevant pages"
        if i:
            gain = curve.area - curves[i - 1].area
            kind = "positive" if gain > 0 else "negative" if gain < 0 else "no"
            line += f"; {gain:+.3f}, {kind} learning"
        lines.append(line)
    return lines


def learning_figure(curves: Sequence[Curve]) -> Figure:
    """Draw learning curves."""
    with axes() as (figure, plot):
        for number, curve in enumerate(curves):
            Line.of(number).draw(plot, *points(curve), curve.label)
        plot.set(
            xlabel="% of the fetches",
            ylabel="% of the relevant pages found by any",
            xlim=(0, 100),
            ylim=(-1, 101),
        )
        if curves:
            legend(figure, columns=2)
    return figure


def points(curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a curve in percent, thinned, from (0, 0) on."""
    n = len(curve.share)
    chosen = evenly_spread(n, _POINTS)
    at = np.concatenate([[0.0], 100.0 * (chosen + 1) / max(n, 1)])
    return at, np.concatenate([[0.0], 100.0 * curve.share[chosen]])
