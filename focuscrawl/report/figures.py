"""Draws figures of crawls in one style, for reports, studies and notebooks.

The parameters `pages` are tables that `focuscrawl.report.measures.load_pages` returns. The figures
do not use pyplot. The function `png` converts a figure to an image, and notebooks show figures
directly.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.report import measures
from focuscrawl.report.plain_text import shorten_middle

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from focuscrawl.completeness.recall_estimate import RecallEstimate
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.report.outcomes import Milestone


_DPI = 150
_LETTERS_PER_INCH = 8  # characters of a legend
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
# Colours that also differ in lightness and for colour-blind people (after Okabe and Ito).
_COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)))

_MARKERS = "osD^vPX*<>hpd8"  # for figures with a dozen curves
_LEARNING_POINTS = 200  # points of a learning curve
_CURVE_POINTS = 2000  # points of a curve; more than a figure has pixels
#: markers of milestones; several at one fetch are all visible
_MARKS: dict[str, dict[str, Any]] = {
    "restart": {"marker": "|", "ms": 18, "mew": 1.5},
    "alarm": {"marker": "v", "ms": 8, "mec": "white"},
    "topic changed": {"marker": "D", "ms": 7, "mec": "white"},
}


class LineStyle(NamedTuple):
    """Line colour and dash pattern of one crawl in a figure."""

    colour: str
    dashes: Any

    @classmethod
    def of(cls, number: int) -> LineStyle:
        """Return the line style of the crawl with the index `number` in a figure."""
        return cls(_COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)])

    def draw(self, plot: Axes, x: ArrayLike, y: ArrayLike, label: str, **look: Any) -> None:
        """Draw a labelled curve in this style; `look` contains further matplotlib options."""
        style = {"color": self.colour, "ls": self.dashes, "lw": 1.8, **look}
        plot.plot(x, y, label=escape_label(label), **style)


def evenly_spaced(n: int, most: int) -> Ints:
    """Return at most `most` evenly spaced indices of n points, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


@contextmanager
def single_plot(width: float = 7.0, height: float = 4.2) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure with one plot in the common style; the sizes are in inches."""
    with mpl.rc_context():
        mpl.rcdefaults()  # a `matplotlibrc` of the current folder is untrusted
        mpl.rcParams.update(_STYLE)  # type: ignore[arg-type]  # wants a Literal a key
        figure = Figure(figsize=(width, height), dpi=_DPI)
        yield figure, figure.add_subplot()


def add_legend(
    figure: Figure,
    named: Mapping[str, Artist] | None = None,
    *,
    columns: int = 4,
    **look: Any,
) -> None:
    """Add a legend outside the plots of a figure, with as many columns as fit.

    Parameters
    ----------
    named : mapping or None
        Artists by label; None: all labelled artists.
    columns : int
        Largest number of columns.
    look
        Options of matplotlib; the legend is below the plots by default.
    """
    look = {"loc": "outside lower left", **look}
    if named is None:
        named = {}
        for plot in figure.axes:
            handles, labels = plot.get_legend_handles_labels()
            named.update(zip(labels, handles, strict=True))
    longest = int(_LETTERS_PER_INCH * figure.get_figwidth())
    labels = [shorten_middle(label, longest) for label in named]
    for count in range(min(columns, len(labels)), 0, -1):
        drawn = figure.legend([*named.values()], labels, ncols=count, **look)
        with _ignoring_missing_glyphs():
            if count == 1 or drawn.get_window_extent().width <= figure.bbox.width:
                return
        drawn.remove()


@contextmanager
def _ignoring_missing_glyphs() -> Iterator[None]:
    """Ignore the warning about scripts that the font lacks; boxes are drawn for them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def png(figure: Figure, dpi: float = _DPI) -> bytes:
    """Return a figure as PNG; equal figures give equal bytes."""
    with _ignoring_missing_glyphs(), BytesIO() as file:
        figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
        return file.getvalue()


def escape_label(text: str) -> str:
    """Escape ``$`` (mathematics) and a leading underscore (hidden label) for matplotlib."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def curves_figure(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    labels: Sequence[str] | None = None,
    marked: bool = False,
    columns: int = 4,
    height: float = 4.2,
    **looks: Any,
) -> Figure:
    """Draw one curve per crawl, with a legend below the plot.

    Parameters
    ----------
    curves : mapping
        x and y by label.
    labels : sequence of str or None
        Labels of all curves of a report, so that a curve has the same style in all figures.
    marked : bool
        Draw markers, which distinguish a dozen curves.
    columns : int
        Largest number of columns of the legend.
    height : float
        Height in inches.
    looks
        Options of `matplotlib.axes.Axes.set`, such as labels and limits of the axes.
    """
    with single_plot(height=height) as (figure, plot):
        for number, label in enumerate(curves if labels is None else labels):
            if label not in curves:
                continue
            look: dict[str, Any] = {}
            if marked:
                marker = _MARKERS[number % len(_MARKERS)]
                look = {"marker": marker, "markevery": (number % 10, 20)}
                look |= {"lw": 1.6, "ms": 5, "mfc": "white"}
            LineStyle.of(number).draw(plot, *curves[label], label, **look)
        plot.set(**looks)
        if curves:
            add_legend(figure, columns=columns, fontsize=8.5 if marked else None)
    return figure


def completeness_figure(estimates: Sequence[RecallEstimate], number: int = 0) -> Figure:
    """Draw the estimated recall and its confidence interval against the number of fetches.

    Parameters
    ----------
    number : int
        Index of the crawl in the report, which selects its colour.
    """
    fetched = [each.fetched for each in estimates]
    low, high = zip(*(each.interval for each in estimates), strict=True)
    line = LineStyle.of(number)
    with single_plot(height=3.2) as (figure, plot):
        plot.fill_between(fetched, low, high, color=line.colour, alpha=0.15, lw=0)
        line.draw(plot, fetched, [each.recall for each in estimates], "estimate")
        plot.set(
            xlabel="fetches",
            ylabel="recall, with 90 % interval",
            xlim=(0, fetched[-1]),
            ylim=(-0.01, 1.01),
        )
    return figure


@dataclass(frozen=True)
class LearningCurve:
    """Learning curve of one crawl in a sequence of crawls (methods.md 8).

    A learning curve shows the share of the relevant pages found against the share of the fetches
    made. If a curve is above the curve of the previous crawl, the crawl has learned from the
    previous crawl. The relevant pages of all compared crawls are pooled, because the total number
    of relevant pages on the live Web is unknown.
    """

    label: str  #: name of the crawl
    #: of shape (n_fetches,): share of the pooled relevant pages after 1, 2, ... fetches
    share: Floats
    area: float  #: mean of `share` over the fetches. A shorter crawl keeps its last share.


def learning_curves(
    crawls: Mapping[str, pd.DataFrame], budget: int | None = None
) -> list[LearningCurve]:
    """Return the learning curve of each crawl, in the order of the crawls.

    Parameters
    ----------
    crawls : mapping of DataFrame
        Tables by label, with a row for each fetch and the columns ``url`` and ``relevance``.
    budget : int or None
        Number of fetches that count; None: those of the longest crawl.
    """
    most = budget or max(map(len, crawls.values()), default=0)
    found = {
        label: pages["url"].where(pages["relevance"] > RELEVANT)[:most]
        for label, pages in crawls.items()
    }
    pool = len({url for urls in found.values() for url in urls.dropna()})
    curves = []
    for label, urls in found.items():
        share = np.zeros(most)
        share[: len(urls)] = urls.notna().cumsum() / max(pool, 1)
        share[len(urls) :] = share[len(urls) - 1] if len(urls) else 0.0
        curves.append(LearningCurve(label, share, float(share.mean()) if most else 0.0))
    return curves


def describe_learning(curves: Sequence[LearningCurve]) -> list[str]:
    """Return a line of text for each crawl: area below its curve, gain over the previous crawl."""
    lines = []
    for i, curve in enumerate(curves):
        found = float(curve.share[-1]) if len(curve.share) else 0.0
        line = f"{curve.label}: area {curve.area:.3f}, {found:.0%} of the relevant pages"
        if i:
            gain = curve.area - curves[i - 1].area
            kind = "positive" if gain > 0 else "negative" if gain < 0 else "no"
            line += f"; {gain:+.3f}, {kind} learning"
        lines.append(line)
    return lines


def learning_figure(curves: Sequence[LearningCurve]) -> Figure:
    """Draw the learning curves of crawls in one figure."""
    return curves_figure(
        {curve.label: curve_points(curve) for curve in curves},
        columns=2,
        xlabel="% of the fetches",
        ylabel="% of the pooled relevant pages",
        xlim=(0, 100),
        ylim=(-1, 101),
    )


def curve_points(curve: LearningCurve) -> tuple[Floats, Floats]:
    """Return the x and y coordinates of up to a few hundred points of the curve, in percent."""
    n = len(curve.share)
    chosen = evenly_spaced(n, _LEARNING_POINTS)
    at = np.concatenate([[0.0], 100.0 * (chosen + 1) / max(n, 1)])
    return at, np.concatenate([[0.0], 100.0 * curve.share[chosen]])


def loss_figure(
    crawls: Mapping[str, pd.DataFrame], milestones: Mapping[str, Sequence[Milestone]] | None = None
) -> Figure:
    """Draw the loss rate of crawls against the number of fetches [A02 figure 10].

    Parameters
    ----------
    crawls : mapping of DataFrame
        Pages of each crawl by label.
    milestones : mapping or None
        Milestones of each crawl by label, marked on its curve.
    """
    windows, seen = set(), set()
    with single_plot() as (figure, plot):
        for number, (label, pages) in enumerate(crawls.items()):
            line, window = LineStyle.of(number), measures.default_window(len(pages))
            rate = measures.loss_rate(pages)
            shown = evenly_spaced(len(pages), _CURVE_POINTS)
            if len(pages) > window:
                windows.add(window)
                moving = 1.0 - measures.moving_harvest_rate(pages, window)
                plot.plot(
                    pages.index[shown], moving.iloc[shown], color=line.colour, lw=0.7, alpha=0.45
                )
            line.draw(plot, pages.index[shown], rate.iloc[shown], label)
            for kind, look in _MARKS.items():
                events = (milestones or {}).get(label, ())
                at = [each.seq for each in events if each.kind == kind and each.seq in rate.index]
                if at:
                    seen.add(kind)
                    plot.plot(at, rate[at], ls="", color=line.colour, **look)
        if windows:
            spans = " or ".join(map(str, sorted(windows)))
            plot.plot([], [], color="0.4", lw=0.7, label=f"thin: last {spans} fetches")
        for kind, look in _MARKS.items():
            if kind in seen:
                plot.plot([], [], ls="", color="0.4", label=kind, **look)
        longest = max(map(len, crawls.values()), default=0)
        plot.set(
            xlabel="fetches",
            ylabel="loss rate = 1 - harvest rate",
            xlim=(0, max(longest, 1)),
            ylim=(-0.01, 1.01),
        )
        if longest:
            add_legend(figure, columns=3)
        _label_if_empty(plot, longest)
    return figure


def relevance_figure(pages: pd.DataFrame, number: int = 0) -> Figure:
    """Draw a histogram of the relevance of a crawl's fetches.

    Parameters
    ----------
    number : int
        Index of the crawl in the report, which selects its colour.
    """
    histogram = measures.relevance_histogram(pages)
    left, width = histogram.index.to_numpy(), 1.0 / len(histogram)
    look: dict[str, Any] = {"align": "edge", "edgecolor": "black", "linewidth": 0.6}
    with single_plot(height=3.2) as (figure, plot):
        judged = histogram["judged"].to_numpy()
        colour = to_rgba(LineStyle.of(number).colour, 0.5)
        plot.bar(left, judged, width, color=colour, label="pages", **look)
        if histogram["unjudged"].any():
            plot.bar(
                left[:1],
                histogram["unjudged"].to_numpy()[:1],
                width,
                judged[:1],
                color="white",
                hatch="////",
                label="redirects, errors, duplicates, no HTML",
                **look,
            )
            plot.legend()
        plot.set(xlabel="relevance", ylabel="fetches", xlim=(0, 1))
        _label_if_empty(plot, len(pages))
    return figure


def _label_if_empty(plot: Axes, fetches: int) -> None:
    if not fetches:
        plot.set_ylim(0, 1)
        plot.text(0.5, 0.5, "no fetches yet", transform=plot.transAxes, ha="center", color="0.4")
