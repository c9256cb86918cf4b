"""Crawls in a folder that go on in rounds."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from longer import long

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import learn_from
from focuscrawl.report.measures import load_pages
from focuscrawl.report.status import open_store

from .rounds import KilledError, Mortal, crawl, fetches, plan

if TYPE_CHECKING:
    from pathlib import Path


def in_a_folder(path: Path, strategy: str, budget: int) -> list[tuple[str, float]]:
    given = vars(plan(strategy, budget, 1, 1).crawl) | {"crawl_dir": str(path)}
    replay(open_crawl(CrawlConfig(**given)))
    pages = load_pages(str(path))
    return list(zip(pages["url"], pages["relevance"].round(6), strict=True))


@pytest.mark.parametrize(("strategy", "buckets"), [("best-first", 3), *long(("breadth-first", 1))])
def test_it_goes_on_as_the_crawl_would_have(strategy: str, buckets: int, tmp_path: Path) -> None:
    begun = in_a_folder(tmp_path / "begun", strategy, 20)
    before = (tmp_path / "begun" / "crawl.db").read_bytes()
    last = crawl(plan(strategy, 35, 1, buckets), tmp_path / "rounds", folder=tmp_path / "begun")
    assert (last["round"], last["fetched"]) == (16, 35)
    assert (tmp_path / "begun" / "crawl.db").read_bytes() == before
    found = fetches(tmp_path / "rounds", tmp_path / "folder")
    assert sorted(found[:20]) == sorted(begun)
    assert found[20:] == in_a_folder(tmp_path / "one", strategy, 35)[20:]


@pytest.mark.long
def test_an_apprentice_knows_what_it_has_learned(tmp_path: Path) -> None:
    begun = in_a_folder(tmp_path / "begun", "apprentice", 60)
    given = plan("apprentice", 90, 15, 3)
    last = crawl(given, tmp_path / "rounds", folder=tmp_path / "begun")
    assert last["model"] == last["round"] == 3
    found = fetches(tmp_path / "rounds", tmp_path / "folder")
    assert sorted(found[:60]) == sorted(begun)
    assert len({url for url, _ in found}) == 90
    one = in_a_folder(tmp_path / "one", "apprentice", 90)
    assert sum(r for _, r in found[60:]) > sum(r for _, r in one[60:]) - 5
    with closing(open_store(str(tmp_path / "folder"))) as store:
        assert learn_from(store).n_judged > 60


@pytest.mark.parametrize("writes", [20, *long(4, 30)])
def test_killed_on_the_way_it_is_taken_over_all_the_same(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_folder(tmp_path / "begun", "apprentice", 30)
    given = plan("apprentice", 40, 10, 2)
    crawl(given, tmp_path / "whole", folder=tmp_path / "begun")
    Mortal.left = writes
    with monkeypatch.context() as mortal:
        mortal.setattr("focuscrawl.rounds.driver.Tables", Mortal)
        mortal.setattr("focuscrawl.rounds.context.Tables", Mortal)
        with pytest.raises(KilledError):
            crawl(given, tmp_path / "killed", folder=tmp_path / "begun")
    assert crawl(given, tmp_path / "killed")["fetched"] == 40  # where it goes on from is known
    found = fetches(tmp_path / "killed", tmp_path / "a")
    assert found == fetches(tmp_path / "whole", tmp_path / "b")


def test_what_cannot_be_gone_on_from_is_refused_and_nothing_written(tmp_path: Path) -> None:
    in_a_folder(tmp_path / "begun", "best-first", 3)
    given, root = plan("best-first", 5, 1, 2), tmp_path / "rounds"
    with pytest.raises(UserError, match="there is no crawl in"):
        crawl(given, root, folder=tmp_path / "none")
    with pytest.raises(UserError, match="its strategy is best-first, not breadth-first"):
        crawl(plan("breadth-first", 5, 1, 2), root, folder=tmp_path / "begun")
    assert not root.exists()
    crawl(given, root)
    with pytest.raises(UserError, match="that began with its seeds, not --from "):
        crawl(given, root, folder=tmp_path / "begun")
