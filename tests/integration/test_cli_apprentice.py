"""``focuscrawl apprentice train``, and crawls that begin with what an earlier one learned."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from focuscrawl.apprentice.learners import options_in
from focuscrawl.cli.main import main

from .running import Kept, crawl

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = {"web": "demo", "topic": "/Sports/Cycling", "seeds": "models/demo/seeds.csv"}


def train(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["apprentice", "train", *map(str, arguments)])


def kept_in(model: Path) -> dict[str, Any]:
    return options_in((model / "apprentice.npz").read_bytes())


def mean_relevance(kept: Kept) -> float:
    return float(kept.query("SELECT avg(relevance) FROM pages")[0][0])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl of best-first, and one of the apprentice."""
    folder = tmp_path_factory.mktemp("apprentice")
    for strategy in ("best-first", "apprentice"):
        run = crawl(folder / strategy, **GIVEN, budget=120, strategy=strategy)
        assert run.returncode == 0, run.stderr
    return folder


def test_the_second_crawl_begins_with_what_the_first_learned(first: Path, tmp_path: Path) -> None:
    result = train(first / "best-first", "--web", "demo", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert "learned from" in result.output
    given = {**GIVEN, "apprentice": tmp_path / "model"}
    begun = crawl(tmp_path / "crawl", fresh=True, **given, budget=60)
    assert begun.returncode == 0, begun.stderr
    fresh = Kept(first / "apprentice").query("SELECT avg(relevance) FROM pages WHERE seq <= 60")
    assert begun.kept.urls != Kept(first / "apprentice").urls[:60]
    assert mean_relevance(begun.kept) > mean_relevance(Kept(first / "best-first"))
    assert mean_relevance(begun.kept) > float(fresh[0][0]) - 0.05
    whole = begun.kept.order

    for budget in (25, 60):  # interrupted and resumed, it goes on the same
        again = crawl(tmp_path / "cut", **given, budget=budget)
        assert again.returncode == 0, again.stderr
    assert Kept(tmp_path / "cut").order == whole

    (tmp_path / "model").rename(tmp_path / "old")  # another apprentice in its place
    assert train(first / "apprentice", "--out", tmp_path / "model").exit_code == 0
    other = crawl(tmp_path / "cut", **GIVEN, budget=70, apprentice=tmp_path / "model")
    assert other.returncode == 2
    assert "its apprentice is" in other.stderr


def test_a_crawl_of_the_apprentice_needs_no_web(first: Path, tmp_path: Path) -> None:
    result = train(first / "apprentice", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "model" / "manifest.json").is_file()


def test_a_crawl_is_learned_from_with_the_options_it_had(first: Path, tmp_path: Path) -> None:
    given = {"groups": ["context", "classes", "section"], "d_max": 2, "learner": "nb"}
    options = ("-s", f"FOCUSCRAWL_STRATEGY_OPTIONS={json.dumps(given)}")
    run = crawl(tmp_path / "crawl", *options, **GIVEN, budget=60)
    assert run.returncode == 0, run.stderr
    result = train(tmp_path / "crawl", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert given.items() <= kept_in(tmp_path / "model").items()

    # so has one that began with this apprentice, though nobody told it
    begun = crawl(tmp_path / "second", **GIVEN, budget=40, apprentice=tmp_path / "model")
    assert begun.returncode == 0, begun.stderr
    result = train(tmp_path / "second", "--out", tmp_path / "again")
    assert result.exit_code == 0, result.output
    assert given.items() <= kept_in(tmp_path / "again").items()


def test_pages_are_read_again_for_other_options(first: Path, tmp_path: Path) -> None:
    asked = ("--groups", "context, classes,section", "--d-max", 2, "--evidence", "first")
    for name in ("best-first", "apprentice"):
        out = tmp_path / name
        result = train(first / name, "--web", "demo", "--out", out, *asked, "--learner", "nb")
        assert result.exit_code == 0, result.output
        kept = kept_in(out)
        assert kept["groups"] == ["context", "classes", "section"]
        assert (kept["d_max"], kept["evidence"], kept["learner"]) == (2, "first", "nb")


@pytest.mark.long
def test_d_max_is_chosen_by_cross_validation(first: Path, tmp_path: Path) -> None:
    printed = []
    for name in ("one", "two"):
        out = tmp_path / name
        result = train(first / "best-first", "--web", "demo", "--d-max", "cv", "--out", out)
        assert result.exit_code == 0, result.output
        printed.append(result.stdout.replace(str(out), ""))
        heading, *rows = [line.split() for line in result.stdout.splitlines()[:10]]
        assert heading[0] == "d_max"
        assert [row[0] for row in rows] == [str(d_max) for d_max in range(9)]
        (choice,) = re.findall(r"^d_max = (\d): ", result.stdout, re.MULTILINE)
        assert kept_in(out)["d_max"] == int(choice)
    assert printed[0] == printed[1]
    begun = crawl(tmp_path / "crawl", **GIVEN, budget=20, apprentice=tmp_path / "one")
    assert begun.returncode == 0, begun.stderr


def test_mistakes_end_in_one_line(first: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    few = crawl(tmp_path / "few", **GIVEN, budget=12, strategy="best-first")
    assert few.returncode == 0, few.stderr
    other, own = first / "best-first", first / "apprentice"
    of_web = ("--out", out, "--web", "demo")
    for arguments, said in (
        ((tmp_path, "--out", out), "no crawl"),
        ((other, "--out", out), "--web"),
        ((own, "--out", tmp_path), "there already"),
        ((own, "--out", out, "--d-max", "cv"), "--web"),
        ((own, "--out", out, "--d-max", "3"), "--web"),
        ((own, "--out", out, "--groups", "context"), "--web"),
        ((own, *of_web, "--d-max", "-1"), "0 or more"),
        ((own, *of_web, "--d-max", "all"), "cv or a whole number"),
        ((own, *of_web, "--groups", "contxt"), "did you mean context?"),
        ((own, *of_web, "--groups", "url", "--d-max", "cv"), "nothing to choose"),
        ((own, *of_web, "--learner", "svm"), "logistic"),
        ((own, *of_web, "--evidence", "some"), "all, first"),
        ((own, *of_web, "--options", "nb"), "must be JSON"),
        ((own, *of_web, "--options", '{"learnr": "nb"}'), "there is no 'learnr'"),
        ((own, "--out", out, "--options", '{"counts": true}'), "--web"),
        ((tmp_path / "few", *of_web, "--d-max", "cv"), "cross-validation takes 10"),
    ):
        result = train(*arguments)
        assert result.exit_code == 2
        assert said in result.output
        assert result.output.count("\n") == 1
        assert not out.exists()


def test_a_damaged_apprentice_is_refused(first: Path, tmp_path: Path) -> None:
    train(first / "apprentice", "--out", tmp_path / "model")
    arrays = tmp_path / "model" / "apprentice.npz"
    arrays.write_bytes(arrays.read_bytes()[:-1])
    for strategy, said in (("apprentice", "damaged"), ("best-first", "strategy")):
        given = {"strategy": strategy, "apprentice": tmp_path / "model", "budget": 5}
        run = crawl(tmp_path / "crawl", **GIVEN, **given)
        assert run.returncode == 2
        assert said in run.stderr
        assert run.stderr.count("\n") == 1
        assert not (tmp_path / "crawl").exists()
