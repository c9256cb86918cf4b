"""Best authorities of crawls: from disjoint seeds ([F99] figure 7), and far from the seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.lab.figures.panels import GREY, legend, lines, panels

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


def distance_table(authorities: pd.DataFrame) -> pd.DataFrame:
    """Count authorities by distance.

    Parameters
    ----------
    authorities : of `focuscrawl.lab.page_studies.authorities`

    Returns
    -------
    Rows by web and topic: ``distance`` in links, from 0 to the largest of all; ``pages``
    """
    most = int(authorities["distance"].max())
    counts = authorities.groupby(["web", "topic"], sort=False)["distance"].value_counts()
    wide = counts.unstack(fill_value=0).reindex(columns=range(most + 1), fill_value=0)
    wide = wide.loc[list(zip(authorities["web"], authorities["topic"], strict=True))]
    wide = wide[~wide.index.duplicated()]
    wide.columns.name = None
    long = wide.reset_index().melt(["web", "topic"], range(most + 1), "distance", "pages")
    return long.astype({"distance": int})


def draw_distance(table: pd.DataFrame) -> Figure:
    """Draw `distance_table`."""
    x, y = "links from the nearest seed", "pages of the top 100"
    with panels(table, x, y) as (figure, plots):
        for plot, rows in plots:
            plot.bar(rows["distance"], rows["pages"], 0.8, **GREY)
            plot.set_xticks(rows["distance"].tolist())
    return figure
