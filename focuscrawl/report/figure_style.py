"""One look for all figures: told apart by colour on a screen and by dashes on paper."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from focuscrawl.report.plain_text import middle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

_DPI = 150
_LETTERS = 8  # of a legend in an inch of a figure
_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "figure.constrained_layout.use": True,
}
# Colours that differ in lightness, too, and to colour-blind eyes (after Okabe and Ito).
_COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)))


class Line(NamedTuple):
    """How the n-th crawl of a figure is drawn."""

    colour: str
    dashes: Any

    @classmethod
    def of(cls, number: int) -> Line:
        """Return the look of crawl `number`, from 0; 35 differ."""
        return cls(_COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)])

    def draw(self, plot: Axes, x: ArrayLike, y: ArrayLike, label: str, **look: Any) -> None:
        """Draw a curve and name it in the legend; `look` is what else matplotlib is to know."""
        style = {"color": self.colour, "ls": self.dashes, "lw": 1.8, **look}
        plot.plot(x, y, label=plain(label), **style)


def evenly_spread(n: int, most: int) -> NDArray[np.int64]:
    """Choose at most `most` of n points of a curve, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


@contextmanager
def axes(width: float = 7.0, height: float = 4.2) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of one plot in the house style, in inches; no global state is kept."""
    with mpl.rc_context():
        mpl.rcdefaults()  # a `matplotlibrc` of the current folder may be a stranger's
        mpl.rcParams.update(_STYLE)  # type: ignore[arg-type]  # wants a Literal a key
        figure = Figure(figsize=(width, height), dpi=_DPI)
        yield figure, figure.add_subplot()


def legend(
    figure: Figure,
    named: Mapping[str, Artist] | None = None,
    *,
    columns: int = 4,
    **look: Any,
) -> None:
    """Name what is drawn, beside the plots: in so many columns as are whole.

    Parameters
    ----------
    named : what to name, by its label; None: all that has one
    columns : at most
    look : what else matplotlib is to know; it goes below the plots by default
    """
    look = {"loc": "outside lower left", **look}
    if named is None:
        named = {}
        for plot in figure.axes:
            handles, labels = plot.get_legend_handles_labels()
            named.update(zip(labels, handles, strict=True))
    longest = int(_LETTERS * figure.get_figwidth())
    labels = [middle(label, longest) for label in named]
    for count in range(min(columns, len(labels)), 0, -1):
        drawn = figure.legend([*named.values()], labels, ncols=count, **look)
        with _any_script():
            if count == 1 or drawn.get_window_extent().width <= figure.bbox.width:
                return
        drawn.remove()


@contextmanager
def _any_script() -> Iterator[None]:
    """Draw a topic's name in a script that the font lacks, too: boxes will do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def png(figure: Figure, dpi: float = _DPI) -> bytes:
    """Draw a figure with so many points an inch; the same data give the same bytes."""
    with _any_script(), BytesIO() as file:
        figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
        return file.getvalue()


def plain(text: str) -> str:
    """Keep a label from being read as mathematics, or as hidden (a leading underscore)."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text
