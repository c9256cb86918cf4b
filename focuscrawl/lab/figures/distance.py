"""How far the best pages are from the seeds: [F99] remote resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.lab.figures.panels import GREY, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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
