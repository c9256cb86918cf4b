"""Loss and harvest against fetches: [A02] figures 10, 12, 13b and 14; [F99] harvest rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.lab.figures.panels import legend, lines, panels, thin
from focuscrawl.lab.figures.study_data import (
    APPRENTICE,
    HARD,
    OFFLINE,
    RECALL,
    SOFT,
    SWITCHED,
    UNFOCUSED,
    fetches_of,
    table_of,
)
from focuscrawl.report.measures import default_window

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results


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
        shown = thin(shortest)
        mean = np.mean([draw[shown] for draw in draws], axis=0)
        whose = dict(zip(("web", "topic", "strategy"), key, strict=True))
        parts.append(pd.DataFrame({**whose, "fetches": shown + 1, name: mean}))
    return pd.concat(parts, ignore_index=True)


def draw_curves(table: pd.DataFrame, y: str, label: str) -> Figure:
    """Draw `loss_table`, `moving_table` or `switch_table`."""
    names = list(dict.fromkeys(table["strategy"]))
    bounded = y != "lost"
    with panels(table, "fetches", label, share_x=False, share_y=bounded) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "fetches", y, by="strategy", order=names)
            plot.set_xlim(0, max(int(rows["fetches"].max()), 1))
            plot.set_ylim(0, 1 if bounded else None)
            if SWITCHED in names:
                half = int(rows.loc[rows["strategy"] == SWITCHED, "fetches"].max()) // 2
                plot.axvline(half, color="0.4", lw=0.8, label="switch")
        legend(figure, [*names, "switch"])
    return figure


def loss_figure(results: Results) -> Figure | None:
    """[A02] figure 10: loss of the baseline and of the apprentice."""
    fetches = fetches_of(results, [SOFT, APPRENTICE, OFFLINE], needed=2)
    if fetches is None or set(fetches["strategy"]) == {APPRENTICE, OFFLINE}:
        return None
    return draw_curves(loss_table(fetches), "loss", "loss rate")


def recall_figure(results: Results) -> Figure | None:
    """[A02] figure 12: loss of the recall crawl, between the baseline and the apprentice."""
    fetches = fetches_of(results, [SOFT, RECALL, OFFLINE])
    return None if fetches is None else draw_curves(loss_table(fetches), "loss", "loss rate")


def switched_fetches(results: Results) -> pd.DataFrame | None:
    """Return the fetches of the crawls that switch, and the baseline's from the same seeds."""
    switched = table_of(results, "takeover", "fetches")
    if switched is None:
        return None
    switched = switched.assign(strategy=SWITCHED, draw=0)
    baseline = fetches_of(results, [SOFT])
    if baseline is None:
        return switched
    return pd.concat([baseline[baseline["draw"] == 0], switched], ignore_index=True)


def switch_figure(results: Results) -> Figure | None:
    """[A02] figures 13b and 14: loss before and after the apprentice takes over."""
    fetches = switched_fetches(results)
    if fetches is None:
        return None
    return draw_curves(switch_table(fetches), "lost", "fetches lost, sum of 1 - R")


def focus_figure(results: Results) -> Figure | None:
    """[F99] rate of relevant pages, unfocused, soft and hard focus."""
    fetches = fetches_of(results, [UNFOCUSED, SOFT, HARD], needed=2)
    if fetches is None:
        return None
    return draw_curves(moving_table(fetches), "harvest", "mean R of latest fetches")
