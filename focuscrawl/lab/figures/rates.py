"""Loss and harvest against fetches: [A02] figures 10, 12, 13b and 14; [F99] harvest rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.lab.figures.panels import legend, lines, order_of, panels
from focuscrawl.lab.figures.study_data import (
    SOFT,
    SWITCHED,
    fetches_of,
    table_of,
)
from focuscrawl.report.figure_style import evenly_spread
from focuscrawl.report.measures import default_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results

_POINTS = 200  # of a curve
_LABELS = {
    "loss": "loss rate",
    "harvest": "mean R of latest fetches",
    "lost": "fetches lost, sum of 1 - R",
}


def loss_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the loss rate after n fetches, mean over draws (METHODS 1; [A02] section 3.5).

    Returns
    -------
    Rows by web, topic and strategy: ``fetches`` n, up to the shortest of the draws, at most 200
    of them; ``loss``
    """
    return _curves(fetches, "loss", lambda r: 1.0 - np.cumsum(r) / np.arange(1, len(r) + 1))


def moving_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the mean relevance of the latest fetches, mean over draws ([F99] harvest rate).

    Returns
    -------
    Rows as in `loss_table`: ``fetches``, ``harvest`` of the window that ends there, of 100
    fetches or a tenth of a small crawl. Before the first full window there is nothing.
    """

    def moving(r: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pd.Series[float]:
        return pd.Series(r).rolling(default_window(len(r))).mean()

    return _curves(fetches, "harvest", moving).dropna().reset_index(drop=True)


def switch_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the sum of lost relevance against fetches, as [A02] figures 13b and 14 have it.

    Parameters
    ----------
    fetches : of `focuscrawl.lab.takeover_study`, and of the baseline to go beside it

    Returns
    -------
    Rows as in `loss_table`: ``fetches``, ``lost`` sum of 1 - R
    """
    return _curves(fetches, "lost", lambda r: np.cumsum(1.0 - r))


def _curves(fetches: pd.DataFrame, name: str, curve: object) -> pd.DataFrame:
    assert callable(curve)
    parts = []
    for key, of_strategy in fetches.groupby(["web", "topic", "strategy"], sort=False):
        draws = [
            np.asarray(curve(run.sort_values("seq")["relevance"].to_numpy()))
            for _, run in of_strategy.groupby("draw")
        ]
        shortest = min(map(len, draws))
        shown = evenly_spread(shortest, _POINTS)
        mean = np.mean([draw[shown] for draw in draws], axis=0)
        whose = dict(zip(("web", "topic", "strategy"), key, strict=True))
        parts.append(pd.DataFrame({**whose, "fetches": shown + 1, name: mean}))
    return pd.concat(parts, ignore_index=True)


def draw_curves(table: pd.DataFrame) -> Figure:
    """Draw `loss_table`, `moving_table` or `switch_table`."""
    order, y = order_of(table["strategy"]), str(table.columns[-1])
    bounded = y != "lost"
    x, label = "fetches", _LABELS[y]
    with panels(table, x, label, share_x=False, share_y=bounded) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "fetches", y, by="strategy", order=order)
            plot.set_xlim(0, max(int(rows["fetches"].max()), 1))
            plot.set_ylim(0, 1 if bounded else None)
            switched = rows.loc[rows["strategy"] == SWITCHED, "fetches"]
            if len(switched):
                half = int(switched.max()) // 2
                plot.axvline(half, color="0.4", lw=0.8, label="switch")
        legend(figure, [*order, "switch"])
    return figure


def of_baseline_and(results: Results, *, apprentices: Sequence[str]) -> pd.DataFrame | None:
    """Return the fetches of the baseline, and of apprentices, as far as there are any."""
    if SOFT not in results.strategies:
        return None
    return fetches_of(results, [SOFT, *apprentices], needed=2)


def switched_fetches(results: Results, *, name: str = "fetches") -> pd.DataFrame | None:
    """Return the fetches of the crawls that switch, and the baseline's from the same seeds.

    Parameters
    ----------
    name : of a table of `focuscrawl.lab.takeover_study.take_over`
    """
    switched = table_of(results, "takeover", name)
    if switched is None:
        return None
    switched = switched.assign(strategy=SWITCHED, draw=0)
    baseline = fetches_of(results, [SOFT])
    if baseline is None:
        return switched
    return pd.concat([baseline[baseline["draw"] == 0], switched], ignore_index=True)
