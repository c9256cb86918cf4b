"""Studies: reading them, what a web holds within reach, and the tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from focuscrawl.errors import UserError
from focuscrawl.lab.study import read_study
from focuscrawl.lab.table import losses, markdown, reductions
from focuscrawl.lab.whole import WholeWeb

STUDY = """
draws = 2
budget = 50
[[webs]]
name = "small"
recording = "${PLACE}/small.warc"
labels = "labels.csv"
seeds = "{seeds}"
without = ["/C"]
[[strategies]]
strategy = "best-first"
[[strategies]]
label = "fast"
strategy = "apprentice"
options = {{batch = 5}}
"""


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    (tmp_path / "seeds.csv").write_text("topic,url\n/A,http://a/\n/B,http://b/\n/C,http://c/\n")
    path = tmp_path / "study.toml"
    text = STUDY.replace("{seeds}", str(tmp_path / "seeds.csv"))
    path.write_text(text.replace("{{", "{").replace("}}", "}"))
    return path


def test_a_study_is_read(study_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/somewhere")
    study = read_study(study_file)
    (web,) = study.webs
    assert web.recording == "/somewhere/small.warc"
    assert web.topics == ("/A", "/B")
    assert [contender.label for contender in study.contenders] == ["best-first", "fast"]
    assert study.contenders[1].options == {"batch": 5}
    assert (study.baseline, study.draws, study.budget) == ("best-first", 2, 50.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("draws = 2", "draws = "), "no TOML file"),
        (("[[strategies]]", "[[other]]"), "does not say 'strategies'"),
        (('name = "small"', ""), "does not say 'name'"),
        (("draws = 2", 'baseline = "slow"'), "no strategy labelled 'slow'"),
        (("seeds.csv", "none.csv"), "cannot be read"),
        (('label = "fast"', 'label = "best-first"'), "two strategies called 'best-first'"),
        (("${PLACE}", "${NOWHERE_SET}"), "NOWHERE_SET"),
    ],
)
def test_mistakes_in_a_study(
    study_file: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], said: str
) -> None:
    monkeypatch.setenv("PLACE", "/somewhere")
    study_file.write_text(study_file.read_text().replace(*change))
    with pytest.raises(UserError, match=said):
        read_study(study_file)


def test_no_study() -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_study(Path("no-such-study.toml"))


@pytest.fixture
def web() -> WholeWeb:
    """0 -> 1, 2; 1 -> 3; 2 -> 4; 4 is 3 under another URL; 5 cannot be reached."""
    return WholeWeb(
        urls=[f"http://a.example/{i}" for i in range(6)],
        classes=["/A", "/A/B", "/C"],
        probabilities=np.array(
            [[0, 0, 1], [0, 0.2, 0.8], [0.6, 0.4, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], np.float32
        ),
        content=np.array([0, 1, 2, 3, 3, 5]),
        bounds=np.array([0, 2, 3, 4, 4, 4, 4]),
        targets=np.array([1, 2, 3, 4]),
    )


def test_what_is_within_reach(web: WholeWeb) -> None:
    relevance = web.relevance("/A")
    np.testing.assert_allclose(relevance, [0, 0.2, 1, 1, 1, 1], atol=1e-6)
    np.testing.assert_allclose(web.relevance("/A/B"), [0, 0.2, 0.4, 1, 1, 0], atol=1e-6)
    reached = web.reachable([0])
    assert len(reached) == 4  # each content once
    assert 5 not in reached
    assert web.numbers(["http://a.example/2", "http://b.example/"]) == [2]


def test_the_oracle_takes_the_best_known_page(web: WholeWeb) -> None:
    # 0, then 2 (1.0), then 4 (1.0), then 1 (0.2); 3 is the content of 4 and is not fetched
    assert web.oracle_loss([0], web.relevance("/A"), 2) == pytest.approx(0.5)
    assert web.oracle_loss([0], web.relevance("/A"), 3) == pytest.approx(1 - 2 / 3)
    assert web.oracle_loss([0], web.relevance("/A"), 99) == pytest.approx(1 - 2.2 / 4)


def results() -> pd.DataFrame:
    rows = [
        ("w", "/A", 0, "base", 0.4),
        ("w", "/A", 1, "base", 0.6),
        ("w", "/A", 0, "new", 0.1),
        ("w", "/A", 1, "new", 0.4),
        ("w", "/B", 0, "base", 0.0),
        ("w", "/B", 0, "new", 0.02),
    ]
    names = ["web", "topic", "draw", "strategy", "loss"]
    return pd.DataFrame(rows, columns=names).assign(budget=100, fetches=100)


def test_losses_are_averaged_before_they_are_divided() -> None:
    mean = losses(results())
    assert mean["base"].tolist() == pytest.approx([0.5, 0.0])
    assert mean["new"].tolist() == pytest.approx([0.25, 0.02])
    # where nothing was lost there is nothing to reduce
    np.testing.assert_allclose(reductions(mean, "base")["new"], [0.5, np.nan])


def test_the_table_shows_medians_and_the_worst() -> None:
    text = markdown(results(), "base")
    assert "| /A | 100 | 0.500 | 0.250 (+50%) |" in text
    assert "**+50%**" in text
    assert "+0.020" in text
