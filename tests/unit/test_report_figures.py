"""Figures: what is drawn, not how it looks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from focuscrawl.report.figures import loss_figure, png, relevance_figure
from focuscrawl.report.outcomes import Milestone


def frame(n: int, relevance: float = 0.25) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "relevance": np.full(n, relevance),
            "outcome": ["page"] * (n - n // 10) + ["redirect"] * (n // 10),
        },
        index=pd.RangeIndex(1, n + 1, name="seq"),
    )


def test_curves_have_axes_legend_and_both_averages() -> None:
    figure = loss_figure({"best-first": frame(300), "apprentice": frame(200, 0.75)})
    (plot,) = figure.axes
    assert (plot.get_xlabel(), plot.get_ylabel()) == ("fetches", "loss rate = 1 - harvest rate")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "best-first",
        "apprentice",
        "thin: last 20 or 30 fetches",
    ]
    named = {str(line.get_label()): line for line in plot.get_lines()}
    np.testing.assert_allclose(np.asarray(named["best-first"].get_ydata()), 0.75)
    assert np.asarray(named["apprentice"].get_xdata())[-1] == 200
    thin = [line for line in plot.get_lines() if str(line.get_label()).startswith("_")]
    assert len(thin) == 2


def test_milestones_are_on_the_curve_of_their_crawl() -> None:
    crawls = {"one": frame(50), "two": frame(50, 0.75)}
    told = [Milestone(10, "restart"), Milestone(20, "alarm"), Milestone(30, "alarm")]
    figure = loss_figure(crawls, {"two": told})
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[-2:] == ["restart", "alarm"]  # and no change of topic, since there was none
    lines = figure.axes[0].get_lines()
    curve = next(line for line in lines if line.get_label() == "two")
    marks = [
        line for line in lines if line.get_marker() == "v" and len(np.asarray(line.get_xdata()))
    ]
    assert [np.asarray(line.get_xdata()).tolist() for line in marks] == [[20, 30]]
    np.testing.assert_allclose(np.asarray(marks[0].get_ydata()), 0.25)
    assert to_hex(marks[0].get_color()) == to_hex(curve.get_color())


def test_a_crawl_has_one_colour_in_all_figures() -> None:
    curves = loss_figure({name: frame(20) for name in "abc"}).axes[0].get_lines()
    colours = {str(line.get_label()): to_hex(line.get_color()) for line in curves}
    for number, name in enumerate("abc"):
        bars = relevance_figure(frame(20), number).axes[0].patches
        assert to_hex(bars[0].get_facecolor()) == colours[name]


@pytest.mark.parametrize("letters", [5, 30, 200])
def test_legends_are_whole(letters: int) -> None:
    names = [f"{number} {'crawl ' * letters}"[:letters] for number in range(5)]
    figure = loss_figure({name: frame(30) for name in names})
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert len(figure.legends[0].get_texts()) == 6


def test_crawls_differ_without_colour() -> None:
    names = [f"crawl {i}" for i in range(4)]
    lines = [
        line
        for line in loss_figure({name: frame(20) for name in names}).axes[0].get_lines()
        if line.get_label() in names
    ]
    # matplotlib has no public getter for a dash pattern given as numbers
    assert len({repr(line._dash_pattern) for line in lines}) == 4  # type: ignore[attr-defined]
    assert len({to_hex(line.get_color()) for line in lines}) == 4


def test_long_crawls_are_thinned_and_keep_their_ends() -> None:
    (plot,) = loss_figure({"long": frame(50_000)}).axes
    for line in plot.get_lines():
        x = np.asarray(line.get_xdata())
        assert len(x) <= 2000
        if len(x):
            assert (x[0], x[-1]) == (1, 50_000)


@pytest.mark.parametrize("fetches", [0, 1, 5])
def test_small_crawls_can_be_drawn(fetches: int) -> None:
    pages = frame(fetches)
    for figure in (
        loss_figure({"x": pages}),
        relevance_figure(pages),
    ):
        assert png(figure).startswith(b"\x89PNG")
        said = [text.get_text() for text in figure.axes[0].texts]
        assert said == ([] if fetches else ["no fetches yet"])


def test_names_are_drawn_as_they_are() -> None:
    labels = ["_private", "cost in $ or $x^2", "\u6a5f\u68b0\u5b66\u7fd2"]
    figure = loss_figure({label: frame(30) for label in labels})
    assert len(figure.legends[0].get_texts()) == 4
    assert png(figure).startswith(b"\x89PNG")


def test_the_same_crawl_gives_the_same_bytes() -> None:
    assert png(loss_figure({"a": frame(40)})) == png(loss_figure({"a": frame(40)}))


def test_histogram_tells_pages_from_the_rest() -> None:
    (plot,) = relevance_figure(frame(100, 0.0)).axes
    heights = [bar.get_height() for bar in plot.patches if isinstance(bar, Rectangle)]
    assert sorted(height for height in heights if height) == [10, 90]
