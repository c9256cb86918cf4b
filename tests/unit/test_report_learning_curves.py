"""Learning curves, and chains of crawls in a study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from focuscrawl.errors import UserError
from focuscrawl.lab.planning import draw_other_seeds
from focuscrawl.lab.results import FETCHES, Results
from focuscrawl.lab.study import StudyWeb
from focuscrawl.lab.study_file import read_study
from focuscrawl.lab.study_tables import knowledge_chains, learning_table, summary_rows
from focuscrawl.report.figures import (
    curve_points,
    describe_learning,
    learning_curves,
    learning_figure,
    png,
)
from focuscrawl.webs.synthetic import SyntheticWeb


def pages(urls: str, relevant: str) -> pd.DataFrame:
    return pd.DataFrame(
        {"url": list(urls), "relevance": [0.9 if url in relevant else 0.1 for url in urls]}
    )


def test_curves_share_one_pool() -> None:
    crawls = {"one": pages("axby", "ab"), "two": pages("abcx", "abc")}
    one, two = learning_curves(crawls)
    np.testing.assert_allclose(one.share, [1 / 3, 1 / 3, 2 / 3, 2 / 3])
    np.testing.assert_allclose(two.share, [1 / 3, 2 / 3, 1, 1])
    np.testing.assert_allclose([one.area, two.area], [0.5, 0.75])
    said = describe_learning([one, two])
    assert said[0] == "one: area 0.500, 67% of the relevant pages"
    assert said[1].endswith("+0.250, positive learning")
    assert describe_learning([two, one])[1].endswith("-0.250, negative learning")
    at, share = curve_points(two)
    assert (at[0], share[0], at[-1], share[-1]) == (0, 0, 100, 100)
    assert png(learning_figure([one, two])).startswith(b"\x89PNG")


def test_a_crawl_that_ended_early_gains_nothing_more() -> None:
    (short, _) = learning_curves({"short": pages("a", "a"), "long": pages("abcd", "ab")})
    np.testing.assert_allclose(short.share, [0.5] * 4)
    nothing = learning_curves({"empty": pages("", ""), "long": pages("xy", "")})
    assert [curve.area for curve in nothing] == [0.0, 0.0]
    assert learning_curves({}) == []


def test_chains_of_a_study(tmp_path: Path) -> None:
    whose: dict[str, Any] = {"web": "w", "topic": "/T", "draw": 0}
    crawls = {"a": ("axby", "ab"), "b": ("abcx", "abc"), "b, alone": ("xyza", "a")}
    fetches = [
        pages(*crawl).assign(**whose, strategy=label, seq=range(1, 5), host="h")
        for label, crawl in crawls.items()
    ]
    pd.concat(fetches).to_parquet(tmp_path / FETCHES)
    runs = pd.DataFrame([{**whose, "strategy": label, "budget": 4} for label in crawls])
    strategies = dict.fromkeys(crawls, "learnable")
    results = Results(
        tmp_path,
        "t",
        "a",
        strategies,
        {},
        runs,
        knowledge_from={"b": "a"},
        without_knowledge={"b": "b, alone"},
    )
    assert knowledge_chains(results) == [["a", "b"]]
    table = learning_table(results).set_index("strategy")
    assert table.loc["b", "learning"] == pytest.approx(0.75 - 0.5)
    assert table.loc["b", "alone"] == pytest.approx(0.75 - 1 / 12)
    assert table["learning"].isna().tolist() == [True, False]
    # of a, b and c the second crawl is the first to fetch c; alone it finds a again
    assert table["new"].tolist() == [0.5, 0.25]
    assert table.loc["b", "new_alone"] == 0.0
    assert summary_rows(table.reset_index())[1] == [
        *("b", "0.750", "+0.250", "1/1", "+0.667", "1/1", "0.250", "0.000"),
    ]


STUDY = """
[[webs]]
name = "demo"
recording = "demo"
labels = "models/demo/examples.csv"
seeds = "models/demo/seeds.csv"
[[strategies]]
label = "one"
strategy = "learnable"
[[strategies]]
label = "two"
strategy = "learnable"
knows = "one"
seeds = 1
"""


def test_contenders_that_know_others(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    one, two = read_study(path).contenders
    assert (one.knows, one.seeds, two.knows, two.seeds) == (None, 0, "one", 1)
    assert two.depends_on == ["one"]
    for old, new, named in (
        ('strategy = "learnable"\nknows', 'strategy = "random"\nknows', "knows requires"),
        ('knows = "one"', 'knows = "three"', "depends on"),
        ('knows = "one"', 'knows = "two"', "its own crawl"),
        ("seeds = 1", "seeds = -1", "seeds must be"),
    ):
        path.write_text(STUDY.replace(old, new))
        with pytest.raises(UserError, match=named):
            read_study(path)


def test_sets_of_start_urls_have_none_in_common() -> None:
    root = Path(__file__).resolve().parents[2]
    labels, seeds = root / "models/demo/examples.csv", root / "models/demo/seeds.csv"
    study_web = StudyWeb("demo", "demo", str(labels), str(seeds), None, 5, ("/Sports/Cycling",))
    web = SyntheticWeb()
    taken: list[str] = []
    for number in range(1, 5):
        more = draw_other_seeds(study_web, web, "/Sports/Cycling", (0, number), taken)
        assert more == draw_other_seeds(study_web, web, "/Sports/Cycling", (0, number), taken)
        assert len(more) == 5
        assert not set(more) & set(taken)
        taken += more
    everything = [*web.urls()]
    with pytest.raises(UserError, match="too few examples"):
        draw_other_seeds(study_web, web, "/Sports/Cycling", (0, 9), everything)
