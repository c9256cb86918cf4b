"""Many small plots side by side, one a topic, on common axes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

from focuscrawl.report import figure_style
from focuscrawl.report.figure_style import Line, axes, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4
_WIDE, _HIGH = 2.6, 1.9  # inches of one plot
#: the look of bars; fill and hatch tell them apart
EDGE: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.6}
GREY: dict[str, Any] = {**EDGE, "color": "#9a9a9a"}
WHITE: dict[str, Any] = {**EDGE, "color": "white", "hatch": "////"}


@contextmanager
def panels(
    table: pd.DataFrame, x: str, y: str, *, share_x: bool = True, share_y: bool = True
) -> Iterator[tuple[Figure, list[tuple[Axes, pd.DataFrame]]]]:
    """Give a figure with one plot a web and topic of `table`, and the rows of each.

    Parameters
    ----------
    x, y : what the axes are, with units
    """
    groups = list(table.groupby(["web", "topic"], sort=False))
    columns = min(len(groups), _COLUMNS)
    rows = -(-len(groups) // columns)
    with axes(max(_WIDE * columns, 4.4), _HIGH * rows + 1.1) as (figure, first):
        first.remove()
        plots = figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)
        for empty in plots.flat[len(groups) :]:
            empty.remove()
        if share_x:  # the lowest plot of a column has the numbers, wherever it is
            for plot in plots.flat[max(len(groups) - columns, 0) : len(groups)]:
                plot.tick_params(labelbottom=True)
        given = []
        for plot, ((web, topic), rows_of) in zip(plots.flat, groups, strict=False):
            plot.set_title(plain(f"{web}: {short(str(topic))}"), fontsize=8)
            plot.tick_params(labelsize=7)
            given.append((plot, rows_of))
        figure.supxlabel(x, fontsize=10)
        figure.supylabel(y, fontsize=10)
        yield figure, given


def lines(plot: Axes, table: pd.DataFrame, x: str, y: str, *, by: str, order: list[str]) -> None:
    """Draw one line a value of `by`; its place in `order` says how it looks."""
    for name, rows in table.groupby(by, sort=False, observed=True):
        Line.of(order.index(str(name))).draw(plot, rows[x], rows[y], str(name), lw=1.4)


def order_of(names: pd.Series[Any]) -> list[str]:
    """Return what the strategies of a figure are among: their places there say how they look.

    Those of the study, where the column is of its categories; else those of the column.
    """
    if isinstance(names.dtype, pd.CategoricalDtype):
        return [str(name) for name in names.cat.categories]
    return list(dict.fromkeys(names))


def legend(figure: Figure, names: list[str], columns: int = 4) -> None:
    """Name the lines of all plots at once, above them, whether or not each has all of them."""
    found = {}
    for plot in figure.axes:
        handles, labels = plot.get_legend_handles_labels()
        found.update(dict(zip(labels, handles, strict=True)))
    named = [plain(name) for name in names if plain(name) in found]
    figure_style.legend(
        figure,
        {name: found[name] for name in named},
        loc="outside upper center",
        columns=columns,
    )


def topic_axis(plot: Axes, table: pd.DataFrame) -> None:
    """Name the rows of `table`, one a web and topic, downwards on the y axis."""
    pairs = zip(table["web"], table["topic"], strict=True)
    names = [plain(f"{web}: {short(str(topic))}") for web, topic in pairs]
    plot.set_yticks(range(len(names)), names)
    plot.set_ylim(len(names) - 0.5, -0.5)
    plot.set_ylabel("topic")
    plot.grid(visible=False, axis="y")


def short(topic: str) -> str:
    """Return the last part of a topic's path; the last two where that alone says little."""
    parts = topic.strip("/").split("/")
    name = "/".join(parts[-2:]) if parts[-1] == "Other" else parts[-1]
    return name.replace("_", " ")
