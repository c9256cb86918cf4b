"""Figures: what is drawn, not how it looks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from focuscrawl.report.figure_style import png
from focuscrawl.report.figures import harvest_figure, loss_figure, relevance_figure


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
    assert (plot.get_xlabel(), plot.get_ylabel()) == ("fetches", "loss rate")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "best-first",
        "apprentice",
        "thin: the last 20 or 30 fetches only",
    ]
    named = {str(line.get_label()): line for line in plot.get_lines()}
    np.testing.assert_allclose(np.asarray(named["best-first"].get_ydata()), 0.75)
    assert np.asarray(named["apprentice"].get_xdata())[-1] == 200
    thin = [line for line in plot.get_lines() if str(line.get_label()).startswith("_")]
    assert len(thin) == 2


def test_harvest_is_drawn_as_harvest() -> None:
    figure = harvest_figure({"one": frame(50)})
    (plot,) = figure.axes
    assert plot.get_ylabel() == "harvest rate"
    curve = next(line for line in plot.get_lines() if line.get_label() == "one")
    np.testing.assert_allclose(np.asarray(curve.get_ydata()), 0.25)


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
    (plot,) = harvest_figure({"long": frame(50_000)}).axes
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
        harvest_figure({"x": pages}),
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
