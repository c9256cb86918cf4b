"""Figures of link contexts and of authorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from focuscrawl.report import figures
from focuscrawl.report.figures import single_plot
from studies.figure_data import GREY, WHITE, legend, lines, panels, topic_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_WINDOW = "d_max, DOM leaves on either side"
_OFFSET = "DOM offset d from the link, leaves"
_BUCKETS = ["positive", "negative", "average"]
_TAGS = 5
_FEATURES = ["offsets", "+ class names", "+ class prefixes", "+ co-citation"]


def window_table(accuracy: pd.DataFrame, folds: str) -> pd.DataFrame:
    """Return the accuracy on relevant, other and all links by d_max.

    Rows by web, topic, ``links`` (positive, negative, average) and ``d_max`` have ``accuracy``,
    from `studies.page_studies.accuracy_table` with `folds`.
    """
    chosen = accuracy[(accuracy["features"] == "offsets") & (accuracy["folds"] == folds)]
    return chosen.melt(["web", "topic", "d_max"], _BUCKETS, "links", "accuracy")


def draw_window(table: pd.DataFrame) -> Figure:
    """Draw `window_table`."""
    with panels(table, _WINDOW, "share predicted correctly") as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "d_max", "accuracy", by="links", order=_BUCKETS)
        legend(figure, _BUCKETS)
    return figure


def offsets_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy on all links of words with and without offsets by d_max.

    Rows by web, topic, ``what`` (features, and the kind of folds) and ``d_max`` have ``average``.
    """
    chosen = accuracy[accuracy["features"].isin(["offsets", "text"])]
    seen = chosen["folds"].map({"links": "links held out", "pages": "pages held out"})
    words = chosen["features"].map({"offsets": "words with offsets", "text": "words"})
    return chosen.assign(what=words + ", " + seen)[["web", "topic", "what", "d_max", "average"]]


def draw_offsets(table: pd.DataFrame) -> Figure:
    """Draw `offsets_table`."""
    names = sorted(set(table["what"]))
    with panels(table, _WINDOW, "share of links predicted correctly") as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "d_max", "average", by="what", order=names)
        legend(figure, names, 2)
    return figure


def draw_by_offset(table: pd.DataFrame, *, column: str, label: str) -> Figure:
    """Draw ``gain`` or ``rates`` of `studies.page_studies`."""
    with panels(table, _OFFSET, label, share_y=False) as (figure, plots):
        for plot, rows in plots:
            plot.plot(rows["offset"], rows[column], color="black", marker="o", ms=2.5, lw=1.2)
            plot.set(ylim=(0, None), xticks=range(-8, 9, 4))
    return figure


def tags_table(tags: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the most frequent elements around links, except ``a``, by offset.

    Rows by web, topic, ``tag`` (the five most frequent over all topics) and ``offset`` have
    ``share``, from `studies.page_studies.tag_table`.
    """
    others = tags[tags["tag"] != "a"]
    most = others.groupby("tag")["share"].sum().nlargest(_TAGS).index.tolist()
    # offsets without an element have the share 0, not a missing value
    every = tags[["web", "topic", "offset"]].drop_duplicates()
    wide = others.pivot_table(index=["web", "topic", "offset"], columns="tag", values="share")
    wide = wide.reindex(columns=most).reindex(pd.MultiIndex.from_frame(every))
    wide = wide.fillna(0.0).reset_index()
    return wide.melt(["web", "topic", "offset"], most, "tag", "share")


def draw_tags(table: pd.DataFrame) -> Figure:
    """Draw `tags_table`."""
    names = list(dict.fromkeys(table["tag"]))
    with panels(table, _OFFSET, "share of the leaves at d", share_y=False) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "offset", "share", by="tag", order=names)
            plot.set(ylim=(0, None), xticks=range(-8, 9, 4))
        legend(figure, names, 5)
    return figure


def features_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Return the effect of further features on the accuracy on all links, at d_max = 5.

    Rows by web, topic and ``folds`` have the accuracy of ``offsets`` alone, and the difference for
    ``+ class names``, ``+ class prefixes`` and ``+ co-citation``.
    """
    chosen = accuracy[(accuracy["d_max"] == 5) & (accuracy["features"] != "text")]
    wide = chosen.pivot_table(
        index=["web", "topic", "folds"], columns="features", values="average", sort=False
    )
    wide.columns = [str(name).removeprefix("offsets ") for name in wide.columns]
    wide = wide[_FEATURES]
    return pd.concat(
        [wide["offsets"], wide[_FEATURES[1:]].sub(wide["offsets"], axis=0)], axis=1
    ).reset_index()


def draw_features(table: pd.DataFrame) -> Figure:
    """Draw `features_table` with pages held out, one row for each topic."""
    table = table[table["folds"] == "pages"].reset_index(drop=True)
    with single_plot(7.0, 1.2 + 0.3 * len(table)) as (figure, plot):
        for name, marker, colour in zip(
            _FEATURES[1:], "os^", ("white", "#9a9a9a", "black"), strict=True
        ):
            plot.plot(
                100 * table[name], table.index, marker, mfc=colour, mec="black", label=name[2:]
            )
        plot.axvline(0, color="black", lw=0.8)
        topic_axis(plot, table)
        plot.set_xlabel("change of the share of links predicted correctly, percentage points")
        figures.add_legend(figure, loc="outside lower center")
    return figure


_KINDS = ["pages", "hosts"]


def agreement_table(agreement: pd.DataFrame) -> pd.DataFrame:
    """Return the mean ``overlap`` over pairs of samples, by web, topic, ``of`` and ``top``.

    `agreement` is from `studies.authorities`; ``top`` ends at the shortest list of a pair.
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
    """Count the servers of the authorities, and the authorities, by distance.

    Rows by web and topic have ``distance`` in links, from 0 to the maximum of all topics;
    ``servers``, the number of hosts whose nearest authority has this distance, as in [F99]; and
    ``pages``, the number of authorities, from `studies.page_studies.authority_table`.
    """
    topic, of = ["web", "topic"], ["web", "topic", "distance"]
    nearest = authorities.groupby([*topic, "host"], sort=False)["distance"].min().reset_index()
    counts = pd.DataFrame(
        {"servers": nearest.groupby(of).size(), "pages": authorities.groupby(of).size()}
    )
    names = authorities[topic].drop_duplicates()
    every = names.merge(
        pd.DataFrame({"distance": range(int(authorities["distance"].max()) + 1)}), how="cross"
    )
    return every.join(counts.fillna(0).astype(int), on=of).fillna(0)


def draw_distance(table: pd.DataFrame) -> Figure:
    """Draw `distance_table`."""
    x, y = "links from the nearest seed", "servers or pages of the top 100"
    kinds = (("servers", -0.2, GREY), ("pages", 0.2, WHITE))
    with panels(table, x, y) as (figure, plots):
        for plot, rows in plots:
            for name, shift, look in kinds:
                plot.bar(rows["distance"] + shift, rows[name], 0.4, label=name, **look)
            plot.set_xticks(rows["distance"].tolist())
        legend(figure, [name for name, *_ in kinds])
    return figure
