"""Figures of crawls: loss, harvest rate, overlap, relevance, frontier and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from focuscrawl.lab.study_tables import chain_curves, knowledge_chains
from focuscrawl.report import figures
from focuscrawl.report.figures import (
    LineStyle,
    curve_points,
    escape_label,
    evenly_spaced,
    single_plot,
)
from focuscrawl.report.measures import default_window
from studies.figure_data import (
    EDGE,
    GREY,
    SOFT,
    SWITCHED,
    WHITE,
    fetches_of,
    legend,
    lines,
    order_of,
    panels,
    table_of,
    topic_axis,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results
    from studies.figure_data import Data


_POINTS = 200  # maximum number of points of a curve
_LABELS = {
    "loss": "loss rate, mean of 1 - R over the fetches so far",
    "harvest": "mean relevance R of recent fetches",
    "lost": "expected number of lost pages, sum of 1 - R",
}


def loss_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the loss rate after n fetches, mean over draws (methods 1; [A02] section 3.5).

    Rows by web, topic and strategy have ``fetches`` and ``loss`` at up to 200 points, up to the
    length of the shortest draw.
    """
    return _curves(fetches, "loss", lambda r: 1.0 - np.cumsum(r) / np.arange(1, len(r) + 1))


def moving_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the moving average of relevance, mean over draws ([F99] harvest rate).

    Rows are those of `loss_table`, with ``harvest`` over a window of 100 fetches, or a tenth of a
    small crawl, that ends at ``fetches``. Curves start at the first complete window.
    """

    def moving(r: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pd.Series[float]:
        return pd.Series(r).rolling(default_window(len(r))).mean()

    return _curves(fetches, "harvest", moving).dropna().reset_index(drop=True)


def lost_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the expected number of lost pages after n fetches, mean over draws.

    Rows are those of `loss_table`, with ``lost``, the sum of 1 - R, as in [A02] figures 10, 12,
    13b and 14.
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
        shown = evenly_spaced(shortest, _POINTS)
        mean = np.mean([draw[shown] for draw in draws], axis=0)
        whose = dict(zip(("web", "topic", "strategy"), key, strict=True))
        parts.append(pd.DataFrame({**whose, "fetches": shown + 1, name: mean}))
    return pd.concat(parts, ignore_index=True)


def draw_curves(table: pd.DataFrame) -> Figure:
    """Draw `moving_table` or `lost_table`."""
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
    """Return the fetches of the baseline and of those apprentices that the results have."""
    if SOFT not in results.strategies:
        return None
    return fetches_of(results, [SOFT, *apprentices], needed=2)


def switched_fetches(results: Results, *, name: str = "fetches") -> pd.DataFrame | None:
    """Return the fetches of the crawls of `take_over`, and of the baseline from the same seeds."""
    switched = table_of(results, "takeover", name)
    if switched is None:
        return None
    switched = switched.assign(strategy=SWITCHED, draw=0)
    baseline = fetches_of(results, [SOFT])
    if baseline is None:
        return switched
    return pd.concat([baseline[baseline["draw"] == 0], switched], ignore_index=True)


_OVERLAP_POINTS = 50  # points of a curve


def of_two(results: Results, *, apprentices: Sequence[str]) -> pd.DataFrame | None:
    """Return the fetches of the baseline and of the first available of the `apprentices`."""
    for second in apprentices:
        found = fetches_of(results, [SOFT, second], "url")
        if found is not None:
            return found
    return None


def strategies_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Count the URLs that one or both of two strategies fetched; mean over draws.

    Rows by web and topic have the strategies ``first`` and ``second``, the numbers of URLs
    ``only_first``, ``both`` and ``only_second``, and ``shared``, the share of common URLs.
    """
    first, second = dict.fromkeys(fetches["strategy"])
    rows = []
    for (web, topic, _), run in fetches.groupby(["web", "topic", "draw"], sort=False):
        a, b = (set(run.loc[run["strategy"] == name, "url"]) for name in (first, second))
        if a and b:
            rows.append((web, topic, len(a - b), len(a & b), len(b - a)))
    names = ["only_first", "both", "only_second"]
    table = pd.DataFrame(rows, columns=["web", "topic", *names])
    table = table.groupby(["web", "topic"], sort=False).mean().reset_index()
    shared = table["both"] / table[names].sum(axis=1)
    return table.assign(first=first, second=second, shared=shared)


def draw_strategies(table: pd.DataFrame) -> Figure:
    """Draw `strategies_table` with one bar for each topic."""
    place = np.arange(len(table))
    first, second = table["first"].iloc[0], table["second"].iloc[0]
    order = list(dict.fromkeys([*order_of(table["first"]), *order_of(table["second"])]))
    bars: dict[str, tuple[str, dict[str, Any]]] = {
        "only_first": (
            f"{first} only",
            {**EDGE, "color": LineStyle.of(order.index(first)).colour},
        ),
        "both": ("both", WHITE),
        "only_second": (
            f"{second} only",
            {**EDGE, "color": LineStyle.of(order.index(second)).colour},
        ),
    }
    with single_plot(7.0, 0.9 + 0.3 * len(table)) as (figure, plot):
        begin = np.zeros(len(table))
        for name, (label, look) in bars.items():
            plot.barh(place, table[name], 0.7, begin, label=escape_label(label), **look)
            begin += table[name].to_numpy()
        topic_axis(plot, table)
        plot.set_xlabel("URLs fetched (mean over draws)")
        figures.add_legend(figure, loc="outside lower center")
    return figure


def of_draws(results: Results) -> pd.DataFrame | None:
    """Return the fetches of the baseline if there are several draws of the seeds."""
    found = fetches_of(results, [SOFT], "url", "host")
    return None if found is None or found["draw"].nunique() < 2 else found


def seeds_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the overlap of crawls from different draws of the seeds after n fetches.

    Rows by web, topic and ``of`` (``URLs``, and ``hosts`` if several) have ``fetches`` and
    ``overlap``, the common share of one crawl's URLs or hosts, mean over pairs of draws.
    """
    rows = []
    for (web, topic), of_topic in fetches.groupby(["web", "topic"], sort=False):
        draws = [run.sort_values("seq") for _, run in of_topic.groupby("draw")]
        hosts = of_topic["host"].nunique() > 1
        for a, b in combinations(draws, 2):
            shown = evenly_spaced(min(len(a), len(b)), _OVERLAP_POINTS)
            for of, column in (("URLs", "url"), ("hosts", "host"))[: 2 if hosts else 1]:
                common = _common(a[column].tolist(), b[column].tolist(), shown + 1)
                rows += [(web, topic, of, i / _OVERLAP_POINTS, n, share) for i, n, share in common]
    names = ["web", "topic", "of", "place", "fetches", "overlap"]
    # pairs may differ in length, so the i-th points of all pairs are averaged
    table = pd.DataFrame(rows, columns=names).groupby(names[:4], sort=False).mean()
    return table.reset_index().drop(columns="place")


def _common(
    a: Sequence[str], b: Sequence[str], counts: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[tuple[int, int, float]]:
    found = []
    for i, n in enumerate(counts.tolist()):
        of_a, of_b = set(a[:n]), set(b[:n])
        found.append((i, n, 2 * len(of_a & of_b) / (len(of_a) + len(of_b))))
    return found


def draw_seeds(table: pd.DataFrame) -> Figure:
    """Draw `seeds_table`."""
    x, y = "fetches of each crawl", "share in common"
    with panels(table, x, y, share_x=False) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "fetches", "overlap", by="of", order=["URLs", "hosts"])
            plot.set(xlim=(0, rows["fetches"].max()), ylim=(0, 1))
        legend(figure, ["URLs", "hosts"])
    return figure


BINS = 10


def good_bad_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Count good fetches, with relevance above 0.5, and bad fetches; mean over draws.

    Rows by web and topic have ``good`` and ``bad``.
    """
    good = (fetches["relevance"] > 0.5).rename("good")
    of_run = good.groupby([fetches[name] for name in ("web", "topic", "draw")], sort=False)
    counts = pd.DataFrame({"good": of_run.sum(), "bad": of_run.size() - of_run.sum()})
    return counts.groupby(["web", "topic"], sort=False).mean().reset_index()


def draw_good_bad(table: pd.DataFrame) -> Figure:
    """Draw `good_bad_table` with a pair of bars for each topic."""
    place = np.arange(len(table))
    with single_plot(7.0, 0.9 + 0.3 * len(table)) as (figure, plot):
        good = table["good"]
        plot.barh(place, good, 0.7, label="good, R > 0.5", **GREY)
        plot.barh(place, table["bad"], 0.7, good, label="bad", **WHITE)
        topic_axis(plot, table)
        plot.set_xlabel("fetches of the baseline (mean over draws)")
        figures.add_legend(figure, loc="outside lower center")
    return figure


def relevance_table(fetches: pd.DataFrame) -> pd.DataFrame:
    """Return the distribution of relevance over the fetches of all draws.

    Ten rows by web, topic and strategy have the bin's lower end (``relevance``) and ``share``.
    """
    rows = []
    for key, values in fetches.groupby(["web", "topic", "strategy"], sort=False)["relevance"]:
        counts = np.histogram(values, BINS, (0.0, 1.0))[0]
        rows += [(*key, i / BINS, count / len(values)) for i, count in enumerate(counts)]
    return pd.DataFrame(rows, columns=["web", "topic", "strategy", "relevance", "share"])


def draw_relevance(table: pd.DataFrame) -> Figure:
    """Draw `relevance_table` with a group of bars for each bin, one bar for each strategy."""
    order = order_of(table["strategy"])
    names = [name for name in order if (table["strategy"] == name).any()]
    width = 0.9 / BINS / len(names)
    with panels(table, "relevance R, bins of 0.1", "share of fetches") as (figure, plots):
        for plot, rows in plots:
            for name, bars in rows.groupby("strategy", sort=False, observed=True):
                number = names.index(str(name))
                left = bars["relevance"] + 0.05 / BINS + number * width
                look = {**EDGE, "color": LineStyle.of(order.index(str(name))).colour}
                plot.bar(
                    left, bars["share"], width, align="edge", label=escape_label(str(name)), **look
                )
            plot.set(xlim=(0, 1), ylim=(0, 1))
        legend(figure, names)
    return figure


_BEFORE, _AFTER = "before: relevance of the source page", "after: the apprentice"


def priorities_table(counts: pd.DataFrame) -> pd.DataFrame:
    """Return the distribution of the frontier's priorities before and after the switch.

    Ten rows by web, topic and ``when`` have the middle of the bin (``score``) and ``share``, from
    the ``priorities`` of `studies.takeover.take_over`.
    """
    long = counts.melt(["web", "topic", "score"], ["before", "after"], "when", "urls")
    total = long.groupby(["web", "topic", "when"])["urls"].transform("sum")
    return long.assign(
        score=long["score"] + 0.05,
        share=long["urls"] / total.clip(lower=1),
        when=long["when"].map({"before": _BEFORE, "after": _AFTER}),
    )


def draw_priorities(table: pd.DataFrame) -> Figure:
    """Draw `priorities_table`."""
    names = [_BEFORE, _AFTER]
    x, y = "priority, bins of 0.1", "share of the frontier"
    with panels(table, x, y) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "score", "share", by="when", order=names)
            for line in plot.get_lines():
                line.set(marker="o", markersize=3)
            plot.set(xlim=(0, 1), ylim=(0, 1))
        legend(figure, names, 2)
    return figure


def points_of(strategy: str) -> Data:
    """Return a function for the learning curves of the first chain of crawls of a strategy.

    Rows of the first draw by web, topic and ``strategy`` (label of the crawl) have ``at``, per
    cent of the fetches, and ``share``, per cent of the relevant pages that any crawl found.
    """

    def find(results: Results) -> pd.DataFrame | None:
        of_strategy = (
            c for c in knowledge_chains(results) if results.strategies[c[0]] == strategy
        )
        chain = next(of_strategy, None)
        if chain is None:
            return None
        parts = []
        for web, topic, draw, curves in chain_curves(results, chain):
            for label in chain if draw == 0 else ():
                if label in curves:
                    at, share = curve_points(curves[label])
                    whose = {"web": web, "topic": topic, "strategy": label}
                    parts.append(pd.DataFrame({**whose, "at": at, "share": share}))
        return pd.concat(parts, ignore_index=True) if parts else None

    return find


def draw_learning(table: pd.DataFrame) -> Figure:
    """Draw `points_of` a strategy."""
    chain = order_of(table["strategy"])
    y = "% of the relevant pages that any crawl found"
    with panels(table, "% of the fetches", y) as (figure, plots):
        for plot, rows in plots:
            lines(plot, rows, "at", "share", by="strategy", order=chain)
            plot.set(xlim=(0, 100), ylim=(0, 100))
        legend(figure, chain)
    return figure
