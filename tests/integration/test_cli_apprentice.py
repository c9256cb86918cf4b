"""``focuscrawl apprentice train``, and crawls that begin with what an earlier one learned."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.apprentice.apprentice import read_apprentice
from focuscrawl.apprentice.learners import unpack_options
from focuscrawl.errors import UserError

from .running import DEMO, ROOT, Kept, crawl, refused
from .typed import focuscrawl, mistaken

if TYPE_CHECKING:
    from click.testing import Result


def train(*arguments: object) -> Result:
    return focuscrawl("apprentice", "train", *arguments)


def kept_in(model: Path) -> dict[str, Any]:
    return unpack_options((model / "apprentice.npz").read_bytes())


def mean_relevance(kept: Kept) -> float:
    return float(kept.query("SELECT avg(relevance) FROM pages")[0][0])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl of best-first, and one of the apprentice."""
    folder = tmp_path_factory.mktemp("apprentice")
    for strategy in ("best-first", "apprentice"):
        crawl(folder / strategy, **DEMO, budget=80, strategy=strategy)
    return folder


def test_a_crawl_begins_with_the_apprentice_of_the_demo(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its features are those that are extracted today, or it would be of no use."""
    given = {**DEMO, "apprentice": "models/demo-apprentice", "budget": 80}
    kept = crawl(tmp_path / "crawl", **given).kept
    assert mean_relevance(kept) > mean_relevance(Kept(first / "apprentice")) + 0.02
    before = read_apprentice(ROOT / "models" / "demo-apprentice")
    assert dict(kept.query("SELECT key, value FROM meta"))["apprentice"]
    # by its name in any folder, as the critic
    monkeypatch.chdir(tmp_path)
    assert read_apprentice(Path("models/demo-apprentice")) == before
    with pytest.raises(UserError, match="contains no apprentice"):
        read_apprentice(Path("models/none"))


def test_the_second_crawl_begins_with_what_the_first_learned(first: Path, tmp_path: Path) -> None:
    result = train(first / "best-first", "--web", "demo", "--out", tmp_path / "model")
    assert "trained on 75 judged URLs" in result.output
    given = {**DEMO, "apprentice": tmp_path / "model"}
    begun = crawl(tmp_path / "crawl", fresh=True, **given, budget=60).kept
    fresh = Kept(first / "apprentice").query("SELECT avg(relevance) FROM pages WHERE seq <= 60")
    assert begun.urls != Kept(first / "apprentice").urls[:60]
    assert mean_relevance(begun) > mean_relevance(Kept(first / "best-first"))
    assert mean_relevance(begun) > float(fresh[0][0]) - 0.05

    for budget in (25, 60):  # interrupted and resumed, it goes on the same
        crawl(tmp_path / "cut", **given, budget=budget)
    assert Kept(tmp_path / "cut").order == begun.order

    (tmp_path / "model").rename(tmp_path / "old")  # another apprentice in its place
    train(first / "apprentice", "--out", tmp_path / "model")
    assert "its apprentice is" in refused(tmp_path / "cut", **given, budget=70)


def test_pages_are_read_again_for_other_options(first: Path, tmp_path: Path) -> None:
    asked = ("--groups", "context, classes,section", "--d-max", 2, "--evidence", "first")
    for name in ("best-first", "apprentice"):
        out = tmp_path / name
        train(first / name, "--web", "demo", "--out", out, *asked, "--learner", "nb")
        kept = kept_in(out)
        assert kept["groups"] == ["context", "classes", "section"]
        assert (kept["d_max"], kept["evidence"], kept["learner"]) == (2, "first", "nb")


@pytest.mark.long
@pytest.mark.parametrize("by", ["cv", "cv-accuracy"])
def test_d_max_is_chosen_by_cross_validation(by: str, first: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    result = train(first / "best-first", "--web", "demo", "--d-max", by, "--out", out)
    heading, *rows = [line.split() for line in result.stdout.splitlines()[:10]]
    assert heading[0] == "d_max"
    assert [row[0] for row in rows] == [str(d_max) for d_max in range(9)]
    (choice,) = re.findall(r"^Chosen d_max = (\d): ", result.stdout, re.MULTILINE)
    assert kept_in(out)["d_max"] == int(choice)
    if by == "cv-accuracy":
        accuracy = [float(row[-1]) for row in rows]
        assert accuracy[int(choice)] == max(accuracy)


def test_mistakes_end_in_one_line(first: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    crawl(tmp_path / "few", **DEMO, budget=12, strategy="best-first")
    other, own = first / "best-first", first / "apprentice"
    of_web = ("--out", out, "--web", "demo")
    for arguments, said in (
        ((tmp_path, "--out", out), "no crawl"),
        ((other, "--out", out), "--web"),
        ((own, "--out", tmp_path), "exists already"),
        ((own, "--out", out, "--d-max", "cv"), "--web"),
        ((own, "--out", out, "--d-max", "3"), "--web"),
        ((own, "--out", out, "--groups", "context"), "--web"),
        ((own, *of_web, "--d-max", "-1"), "an integer of at least 0"),
        ((own, *of_web, "--d-max", "all"), "must be cv, cv-accuracy or an integer"),
        ((own, *of_web, "--groups", "contxt"), "did you mean context?"),
        (
            (own, *of_web, "--groups", "url", "--d-max", "cv"),
            "no effect without the feature group",
        ),
        ((own, *of_web, "--learner", "svm"), "logistic"),
        ((own, *of_web, "--evidence", "some"), "all, first"),
        ((own, *of_web, "--options", "nb"), "must be a JSON object"),
        ((own, *of_web, "--options", '{"learnr": "nb"}'), "unknown option 'learnr'"),
        ((own, "--out", out, "--options", '{"counts": true}'), "--web"),
        ((tmp_path / "few", *of_web, "--d-max", "cv"), "cross-validation needs 10"),
    ):
        assert said in mistaken("apprentice", "train", *arguments)
        assert not out.exists()
