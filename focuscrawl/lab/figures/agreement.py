"""Best-rated pages of crawls from disjoint seeds: [F99] figure 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.lab.figures.panels import legend, lines, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_KINDS = ["pages", "hosts"]


def agreement_table(agreement: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over pairs of samples.

    Parameters
    ----------
    agreement : of `focuscrawl.lab.agreement`

    Returns
    -------
    Rows by web, topic and ``of``: ``top`` n, ``overlap``; n as far as every pair has so many
    """
    keys = ["web", "topic", "of", "top"]
    table = agreement.groupby(keys, sort=False)["overlap"].agg(["mean", "size"]).reset_index()
    pairs = table.groupby(keys[:3], sort=False)["size"].transform("max")
    table = table[table["size"] == pairs].rename(columns={"mean": "overlap"})
    return table.drop(columns="size").reset_index(drop=True)


def draw_agreement(table: pd.DataFrame) -> Figure:
    """Draw `agreement_table`."""
    x, y = "best authorities of each crawl", "share in common"
    with panels(table, x, y) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "top", "overlap", by="of", order=_KINDS)
            plot.set(xlim=(0, 100), ylim=(0, 1.02))
        legend(figure, _KINDS)
    return figure
