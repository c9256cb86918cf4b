"""Data of the papers' figures, and grids of small plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

from focuscrawl.report import figures
from focuscrawl.report.figures import LineStyle, escape_label, single_plot
from studies.topic_tasks import read_tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focuscrawl.lab.results import Results


# labels of the strategies in figures; without a strategy a study has no figure of the strategy
SOFT = "best-first"  # the baseline of [A02], soft focus in [F99]
HARD = "hard-focus"
UNFOCUSED = "breadth-first"
APPRENTICE = "apprentice"
OFFLINE = "apprentice, offline"  # trained on the baseline's crawl
RECALL = "recall"  # also trained on the baseline's crawl, and confined to its fetched URLs
OF_PAPER = "paper's own"  # the apprentice of [A02], trained during the crawl
OF_PAPER_OFFLINE = "paper's own, offline"  # trained on the baseline's crawl, as in [A02]
OF_PAPER_RECALL = "paper's own, recall"
SWITCHED = "switched"  # crawls of `studies.takeover`, not a strategy of a study

#: returns the data of a figure or a finding from results; None if there are none
Data = Callable[["Results"], pd.DataFrame | None]

RUN = ["web", "topic", "draw", "strategy"]
_COLUMNS = [*RUN, "seq", "relevance"]


def fetches_of(
    results: Results, strategies: Sequence[str], *more: str, needed: int | None = None
) -> pd.DataFrame | None:
    """Return the fetches of some strategies up to the study's budget of comparison.

    Parameters
    ----------
    results : Results
        Results of the study.
    strategies : Sequence[str]
        Labels of the strategies.
    more : str
        Columns besides ``web``, ``topic``, ``draw``, ``strategy``, ``seq`` and ``relevance``.
    needed : int or None
        Number of strategies that the results must have; all by default. With fewer, return None.
    """
    there = [name for name in strategies if name in results.strategies]
    if not there or len(there) < (len(strategies) if needed is None else needed):
        return None
    columns = [*_COLUMNS, *more]
    parts = [results.fetches(columns, strategy=name) for name in there]
    texts = [*(name for name in RUN if name != "draw"), *(n for n in more if n == "host")]
    fetches = pd.concat([part.astype(dict.fromkeys(texts, object)) for part in parts])
    budgets = results.runs[[*RUN, "budget"]].astype(dict.fromkeys(texts[:3], object))
    fetches = fetches.merge(budgets, on=RUN)
    kept = fetches[fetches["seq"] <= fetches["budget"]]
    return None if kept.empty else kept.drop(columns="budget").reset_index(drop=True)


def table_of(results: Results, kind: str, name: str) -> pd.DataFrame | None:
    """Return a table of `studies.topic_tasks` in the order of the study; None without a table."""
    table = read_tables(results.folder / kind, name)
    if table is None:
        return None
    whose = results.runs[["web", "topic"]].astype(object).drop_duplicates()
    found = whose.merge(table, on=["web", "topic"])
    return None if found.empty else found


def fetches(*strategies: str, needed: int | None = None) -> Data:
    """Return a function for the fetches of some strategies, see `fetches_of`."""
    return lambda results: fetches_of(results, strategies, needed=needed)


def table(kind: str, name: str) -> Data:
    """Return a function for a table of work on every topic, see `table_of`."""
    return lambda results: table_of(results, kind, name)


_PANEL_COLUMNS = 4
_WIDE, _HIGH = 2.6, 1.9  # size of one plot in inches
#: styles of bars, by fill and hatch
EDGE: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.6}
GREY: dict[str, Any] = {**EDGE, "color": "#9a9a9a"}
WHITE: dict[str, Any] = {**EDGE, "color": "white", "hatch": "////"}


@contextmanager
def panels(
    table: pd.DataFrame, x: str, y: str, *, share_x: bool = True, share_y: bool = True
) -> Iterator[tuple[Figure, list[tuple[Axes, pd.DataFrame]]]]:
    """Yield a figure with one plot for each web and topic of `table`, and the plots' rows.

    Axis labels are `x` and `y`, with units.
    """
    groups = list(table.groupby(["web", "topic"], sort=False))
    columns = min(len(groups), _PANEL_COLUMNS)
    rows = -(-len(groups) // columns)
    with single_plot(max(_WIDE * columns, 4.4), _HIGH * rows + 1.1) as (figure, first):
        first.remove()
        plots = figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)
        for empty in plots.flat[len(groups) :]:
            empty.remove()
        if share_x:  # the lowest plot of each column has the tick labels
            for plot in plots.flat[max(len(groups) - columns, 0) : len(groups)]:
                plot.tick_params(labelbottom=True)
        given = []
        for plot, ((web, topic), rows_of) in zip(plots.flat, groups, strict=False):
            plot.set_title(escape_label(f"{web}: {short(str(topic))}"), fontsize=8)
            plot.tick_params(labelsize=7)
            given.append((plot, rows_of))
        figure.supxlabel(x, fontsize=10)
        figure.supylabel(y, fontsize=10)
        yield figure, given


def lines(plot: Axes, table: pd.DataFrame, x: str, y: str, *, by: str, order: list[str]) -> None:
    """Draw one line for each value of `by`, in the style of the value's place in `order`."""
    for name, rows in table.groupby(by, sort=False, observed=True):
        LineStyle.of(order.index(str(name))).draw(plot, rows[x], rows[y], str(name), lw=1.4)


def order_of(names: pd.Series[Any]) -> list[str]:
    """Return the strategies whose order determines the line styles of a figure.

    These are the categories of a categorical column, else the values of the column.
    """
    if isinstance(names.dtype, pd.CategoricalDtype):
        return [str(name) for name in names.cat.categories]
    return list(dict.fromkeys(names))


def legend(figure: Figure, names: list[str], columns: int = 4) -> None:
    """Draw one legend for all plots, above the plots."""
    found = {}
    for plot in figure.axes:
        handles, labels = plot.get_legend_handles_labels()
        found.update(dict(zip(labels, handles, strict=True)))
    named = [escape_label(name) for name in names if escape_label(name) in found]
    figures.add_legend(
        figure,
        {name: found[name] for name in named},
        loc="outside upper center",
        columns=columns,
    )


def topic_axis(plot: Axes, table: pd.DataFrame) -> None:
    """Label the y axis with the web and topic of each row of `table`, from top to bottom."""
    pairs = zip(table["web"], table["topic"], strict=True)
    names = [escape_label(f"{web}: {short(str(topic))}") for web, topic in pairs]
    plot.set_yticks(range(len(names)), names)
    plot.set_ylim(len(names) - 0.5, -0.5)
    plot.set_ylabel("topic")
    plot.grid(visible=False, axis="y")


def short(topic: str) -> str:
    """Return the last part of a topic's path, or the last two if the last is not descriptive."""
    parts = topic.strip("/").split("/")
    name = "/".join(parts[-2:]) if parts[-1] == "Other" else parts[-1]
    return name.replace("_", " ")
