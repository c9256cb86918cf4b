"""The papers' figures: their tables against counts by hand; axes that say what they are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D

from focuscrawl.lab.figures import (
    FIGURES,
    authorities,
    frontier,
    overlap,
    page_studies,
    rates,
    relevance,
)
from focuscrawl.lab.figures.panels import short
from focuscrawl.lab.findings import findings, markdown_of
from focuscrawl.lab.results import FETCHES, Results
from focuscrawl.report.figure_style import evenly_spread, png

if TYPE_CHECKING:
    from pathlib import Path

WHOSE = {"web": "w", "topic": "/A/B_c"}


def crawl(strategy: str, relevances: list[float], draw: int = 0, urls: str = "") -> pd.DataFrame:
    names = list(urls) or [str(i) for i in range(len(relevances))]
    return pd.DataFrame(
        {
            **WHOSE,
            "draw": draw,
            "strategy": strategy,
            "seq": range(1, len(relevances) + 1),
            "url": [f"http://{name}.example/" for name in names],
            "host": [f"{name}.example" for name in names],
            "relevance": relevances,
        }
    )


def test_good_and_bad_fetches_are_counted_by_topic() -> None:
    fetches = pd.concat([crawl("x", [0.9, 0.5, 0.1]), crawl("x", [0.6, 0.7, 0.1], draw=1)])
    (row,) = relevance.good_bad_table(fetches).to_dict("records")
    assert (row["good"], row["bad"]) == (1.5, 1.5)  # mean of 1 and 2 good ones; 0.5 is bad


def test_relevance_is_counted_in_tenths() -> None:
    table = relevance.relevance_table(crawl("x", [0.0, 0.05, 0.31, 1.0]))
    assert table["share"].tolist() == [0.5, 0, 0, 0.25, 0, 0, 0, 0, 0, 0.25]
    assert table["relevance"].iloc[3] == pytest.approx(0.3)


def test_loss_is_averaged_over_draws_up_to_the_shortest() -> None:
    fetches = pd.concat([crawl("x", [1.0, 0.0, 0.5]), crawl("x", [0.0, 0.0], draw=1)])
    table = rates.loss_table(fetches.sample(frac=1, random_state=0))  # in any order
    assert table["fetches"].tolist() == [1, 2]
    np.testing.assert_allclose(table["loss"], [(0 + 1) / 2, (0.5 + 1) / 2])
    np.testing.assert_allclose(rates.switch_table(fetches)["lost"], [0.5, 1.5])


def test_a_moving_rate_begins_with_the_first_full_window() -> None:
    table = rates.moving_table(crawl("x", [0.0] * 10 + [1.0] * 10))
    assert table["fetches"].tolist() == list(range(10, 21))
    np.testing.assert_allclose(table["harvest"], np.arange(11) / 10)


def test_what_two_strategies_have_in_common() -> None:
    fetches = pd.concat([crawl("x", [1, 1, 1], urls="abc"), crawl("y", [1, 1, 1, 1], urls="cdef")])
    (row,) = overlap.strategies_table(fetches).to_dict("records")
    assert (row["first"], row["second"]) == ("x", "y")
    assert (row["only_first"], row["both"], row["only_second"]) == (2, 1, 3)
    assert row["shared"] == pytest.approx(1 / 6)


def test_what_draws_have_in_common_after_n_fetches() -> None:
    fetches = pd.concat(
        [crawl("x", [1, 1, 1], urls="abc"), crawl("x", [1, 1, 1], draw=1, urls="bcd")]
    )
    table = overlap.seeds_table(fetches).set_index(["of", "fetches"])["overlap"]
    np.testing.assert_allclose(table["URLs"], [0, 1 / 2, 2 / 3])
    np.testing.assert_allclose(table["hosts"], [0, 1 / 2, 2 / 3])
    one_host = overlap.seeds_table(fetches.assign(host="h"))
    assert set(one_host["of"]) == {"URLs"}


def test_priorities_are_shares_of_the_frontier() -> None:
    counts = pd.DataFrame({**WHOSE, "score": np.arange(10) / 10, "before": 0, "after": 0})
    counts.loc[9, "before"] = 4
    counts.loc[[0, 9], "after"] = [3, 1]
    table = frontier.priorities_table(counts).set_index(["when", "score"])["share"].round(3)
    before, after = dict.fromkeys(when for when, _ in table.index)
    assert table[before].iloc[9] == 1.0
    assert table[after].iloc[[0, 9]].tolist() == [0.75, 0.25]
    assert table[after].index[0] == pytest.approx(0.05)


def test_authorities_are_counted_by_distance() -> None:
    found = pd.DataFrame({**WHOSE, "distance": [0, 2, 2]})
    table = authorities.distance_table(found)
    assert table["distance"].tolist() == [0, 1, 2]
    assert table["pages"].tolist() == [1, 0, 2]


def accuracy() -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for folds in ("links", "pages"):
        for d_max in range(9):
            for features, average in (("offsets", 0.7 + d_max / 100), ("text", 0.7)):
                rows.append(
                    {"folds": folds, "features": features, "d_max": d_max, "average": average}
                )
        for extra, average in (
            ("class names", 0.76),
            ("class prefixes", 0.77),
            ("co-citation", 0.75),
        ):
            rows.append(
                {"folds": folds, "features": f"offsets + {extra}", "d_max": 5, "average": average}
            )
    return pd.DataFrame(rows).assign(**WHOSE, positive=0.6, negative=0.8)


def test_what_further_features_add() -> None:
    table = page_studies.features_table(accuracy())
    row = table[table["folds"] == "pages"].iloc[0]
    assert row["offsets"] == pytest.approx(0.75)
    found = row[["+ class names", "+ class prefixes", "+ co-citation"]].astype(float)
    np.testing.assert_allclose(found, [0.01, 0.02, 0], atol=1e-12)


def test_accuracies_by_window() -> None:
    table = page_studies.window_table(accuracy(), "pages")
    average = table[table["links"] == "average"].set_index("d_max")["accuracy"]
    assert average[5] == pytest.approx(0.75)
    assert set(page_studies.offsets_table(accuracy())["what"]) == {
        "words, links held out",
        "words, pages held out",
        "words with offsets, links held out",
        "words with offsets, pages held out",
    }


def test_elements_around_links() -> None:
    tags = pd.DataFrame(
        {
            **WHOSE,
            "offset": [-1, -1, 0, 1],
            "tag": ["a", "br", "a", "td"],
            "share": [0.5, 0.5, 1.0, 1.0],
            "empty": 0.0,
        }
    )
    table = page_studies.tags_table(tags).set_index(["tag", "offset"])["share"]
    assert "a" not in table.index.get_level_values("tag")
    assert (table["br", -1], table["br", 1], table["td", 1]) == (0.5, 0.0, 1.0)
    assert table["br"].index.tolist() == [-1, 0, 1]  # at 0 there is none


def test_names_of_topics() -> None:
    assert short("/Computers/Artificial_Intelligence") == "Artificial Intelligence"
    assert short("/Computers/Operating_Systems/Other") == "Operating Systems/Other"


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    chosen = evenly_spread(10_000, 200)
    assert (chosen[0], chosen[-1]) == (0, 9999)
    assert len(chosen) <= 200
    assert evenly_spread(3, 200).tolist() == [0, 1, 2]


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Results of a study of one topic, with all that can be done beside it."""
    rng = np.random.default_rng(0)
    labels = ["best-first", "hard-focus", "breadth-first", "apprentice"]
    labels += ["apprentice, offline", "recall", "apprentice 2", "learnable", "learnable 2"]
    labels += ["paper's own", "paper's own, offline", "paper's own, recall"]
    crawls = [
        crawl(label, rng.uniform(0, 1, 40).tolist(), draw, "")
        for label in labels
        for draw in (0, 1)
    ]
    pd.concat(crawls).to_parquet(tmp_path / FETCHES)
    runs = [
        {**WHOSE, "draw": draw, "strategy": label, "budget": 30, "fetches": 40, "loss": loss}
        for loss, label in enumerate(labels)
        for draw in (0, 1)
    ]
    offsets = pd.DataFrame(
        {**WHOSE, "offset": range(-8, 9), "gain": 0.1, "terms": 9, "total": 0.9}
    )
    switched = crawl("", [0.1] * 15 + [0.9] * 15).assign(after_switch=[False] * 15 + [True] * 15)
    tables = {
        "pages/accuracy": accuracy(),
        "pages/gain": offsets,
        "pages/rates": offsets.assign(rate=1 / 17),
        "pages/tags": offsets.assign(tag="br", share=0.5, empty=0.5),
        "pages/authorities": pd.DataFrame({**WHOSE, "url": "u", "links": 1, "distance": [0, 3]}),
        "authorities/agreement": pd.DataFrame(
            {**WHOSE, "of": "pages", "pair": 0, "top": range(1, 9), "overlap": 0.5}
        ),
        "takeover/fetches": switched,
        "takeover/priorities": pd.DataFrame(
            {**WHOSE, "score": np.arange(10) / 10, "before": 1, "after": range(10, 0, -1)}
        ),
    }
    for name in ("fetches", "priorities"):
        tables[f"takeover/paper_{name}"] = tables[f"takeover/{name}"]
    for where, table in tables.items():
        kind, _, name = where.partition("/")
        folder = tmp_path / kind / "w" / "A_B_c"
        folder.mkdir(parents=True, exist_ok=True)
        table.to_parquet(folder / f"{name}.parquet")
        (folder / "terms.json").write_text("{}")
    strategies = dict(zip(labels, labels, strict=True))
    frame = pd.DataFrame(runs).assign(oracle=0.1, folder="")
    knows = {"apprentice 2": "apprentice", "learnable 2": "learnable"}
    return Results(tmp_path, "t", labels[0], strategies, {}, frame, knows=knows)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_and_says_what_it_shows(name: str, results: Results) -> None:
    assert FIGURES[name].title.endswith("]")  # where it is from
    figure = FIGURES[name].of(results)
    assert figure is not None
    assert png(figure).startswith(b"\x89PNG")
    said = [figure.get_supxlabel(), figure.get_supylabel()]
    if not all(said):
        said = [figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()]
    assert all(said)
    if len(figure.axes[0].get_lines()) > 1:
        assert figure.legends
    if name.removesuffix("-paper") + "-paper" in FIGURES:  # of two apprentices
        said = [legend.get_title().get_text() for legend in figure.legends]
        assert said[0].startswith("the paper's" if name.endswith("-paper") else "our")
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width


def test_a_strategy_has_one_colour_in_all_figures(results: Results) -> None:
    colours: dict[str, set[str]] = {name: set() for name in results.strategies}
    for name in FIGURES:
        figure = FIGURES[name].of(results)
        assert figure is not None
        for plot in figure.axes:
            for drawn, label in zip(*plot.get_legend_handles_labels(), strict=True):
                strategy = str(label).removesuffix(" only")
                if strategy in colours:
                    if isinstance(drawn, BarContainer):
                        colour = drawn.patches[0].get_facecolor()
                    else:
                        assert isinstance(drawn, Line2D)
                        colour = drawn.get_color()
                    colours[strategy].add(to_hex(colour))
    assert {name for name, seen in colours.items() if len(seen) != 1} == set()
    assert len(set.union(*colours.values())) > 5


def test_results_without_what_a_figure_needs_have_no_such_figure(results: Results) -> None:
    for path in results.folder.glob("*/*/*/*.parquet"):
        path.unlink()
    left = dataclasses.replace(results, strategies={"best-first": "best-first"})
    drawn = [name for name, figure in FIGURES.items() if figure.of(left) is not None]
    assert drawn == ["a02-04-good-bad", "a02-05-relevance", "f99-seeds"]


def test_fetches_past_the_budget_do_not_count(results: Results) -> None:
    figure = FIGURES["a02-10-loss"].of(results)
    assert figure is not None
    assert figure.axes[0].get_xlim() == (0, 30)


def test_findings_say_what_holds(results: Results) -> None:
    found = findings(results)
    holds = {each.claim: bool(each.table["holds"].iloc[0]) for each in found}
    assert holds["words up to d = 5 tell more than the anchor's"]
    assert holds["offsets add to the words (d_max = 5)"]
    assert holds["after the switch less is lost than before"]
    assert holds["some of the best pages are over 2 links away"]
    assert holds["further features add little: 3 points at most"]
    assert not holds["relevance is bimodal: > 80 % of it in the end tenths"]
    assert not holds["the trained apprentice loses less"]  # as made up above
    text = markdown_of(found, topics=True)
    assert all(each.claim in text for each in found)
    assert "| w | /A/B_c |" in text
