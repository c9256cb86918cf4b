"""The papers' figures: their tables against counts by hand; axes that say what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from focuscrawl.lab.results import FETCHES, Results
from focuscrawl.report.figures import png
from studies.figures import FIGURES
from studies.findings import findings, format_markdown
from studies.loss_figures import lost_table
from studies.page_figures import distance_table

WHOSE = {"web": "w", "topic": "/A/B_c"}


def crawl(strategy: str, relevances: list[float], draw: int = 0) -> pd.DataFrame:
    hosts = [f"{number}.example" for number in range(len(relevances))]
    return pd.DataFrame(
        {
            **WHOSE,
            "draw": draw,
            "strategy": strategy,
            "seq": range(1, len(relevances) + 1),
            "url": [f"http://{host}/" for host in hosts],
            "host": hosts,
            "relevance": relevances,
        }
    )


def accuracy() -> pd.DataFrame:
    more = {"class names": 0.76, "class prefixes": 0.77, "co-citation": 0.75}
    rows = [
        (folds, features, d_max, average)
        for folds in ("links", "pages")
        for features, d_max, average in (
            *(("offsets", d_max, 0.7 + d_max / 100) for d_max in range(9)),
            *(("text", d_max, 0.7) for d_max in range(9)),
            *((f"offsets + {extra}", 5, average) for extra, average in more.items()),
        )
    ]
    table = pd.DataFrame(rows, columns=["folds", "features", "d_max", "average"])
    return table.assign(**WHOSE, positive=0.6, negative=0.8)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Results of a study of one topic, with all that can be done beside it."""
    rng = np.random.default_rng(0)
    labels = ["best-first", "hard-focus", "breadth-first", "apprentice"]
    labels += ["apprentice, offline", "recall", "apprentice 2", "learnable", "learnable 2"]
    labels += ["paper's own", "paper's own, offline", "paper's own, recall"]
    draws = [(label, draw) for label in labels for draw in (0, 1)]
    crawls = [crawl(label, rng.uniform(0, 1, 40).tolist(), draw) for label, draw in draws]
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
        "pages/rates": offsets.assign(rate=0.9, share=1 / 17),
        "pages/tags": offsets.assign(tag="br", share=0.5, empty=0.5),
        "pages/authorities": pd.DataFrame(
            {**WHOSE, "url": [*"uv"], "host": [*"ab"], "links": 1, "distance": [0, 3]}
        ),
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
    return Results(tmp_path, "t", labels[0], strategies, {}, frame, knowledge_from=knows)


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


def test_servers_count_once_at_their_nearest_page() -> None:
    hosts, distances = ["a", "a", "b", "c", "c"], [2, 1, 1, 3, 3]
    table = pd.DataFrame({**WHOSE, "host": hosts, "distance": distances})
    found = distance_table(table).set_index("distance")
    assert found["servers"].tolist() == [0, 2, 0, 1]
    assert found["pages"].tolist() == [0, 2, 1, 2]


def test_lost_pages_are_counted_not_averaged() -> None:
    lost = lost_table(crawl("s", [1.0, 0.0, 0.5, 1.0]))
    assert lost["lost"].tolist() == [0.0, 1.0, 1.5, 1.5]


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
    text = format_markdown(found, topics=True)
    assert all(each.claim in text for each in found)
    assert "| w | /A/B_c |" in text
