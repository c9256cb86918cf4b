"""``focuscrawl apprentice train``, and crawls that begin with what an earlier one learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from focuscrawl.cli.main import main

from .running import Kept, crawl

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = {"web": "demo", "topic": "/Sports/Cycling", "seeds": "models/demo/seeds.csv"}


def train(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["apprentice", "train", *map(str, arguments)])


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
    begun = crawl(tmp_path / "crawl", **GIVEN, budget=60, apprentice=tmp_path / "model")
    assert begun.returncode == 0, begun.stderr
    fresh = Kept(first / "apprentice").query("SELECT avg(relevance) FROM pages WHERE seq <= 60")
    assert begun.kept.urls != Kept(first / "apprentice").urls[:60]
    assert mean_relevance(begun.kept) > mean_relevance(Kept(first / "best-first"))
    assert mean_relevance(begun.kept) > float(fresh[0][0]) - 0.05
    whole = begun.kept.order

    for budget in (25, 60):  # interrupted and resumed, it goes on the same
        again = crawl(tmp_path / "cut", **GIVEN, budget=budget, apprentice=tmp_path / "model")
        assert again.returncode == 0, again.stderr
    assert Kept(tmp_path / "cut").order == whole


def test_a_crawl_of_the_apprentice_needs_no_web(first: Path, tmp_path: Path) -> None:
    result = train(first / "apprentice", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "model" / "manifest.json").is_file()


def test_mistakes_end_in_one_line(first: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    for arguments, said in (
        ((tmp_path, "--out", out), "no crawl"),
        ((first / "best-first", "--out", out), "--web"),
        ((first / "apprentice", "--out", tmp_path), "there already"),
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
