"""Crawls in rounds as folders, samples of large ones; crawls in a folder that rounds take over."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from longer import long

from focuscrawl.apprentice.link_table import PageFeatures
from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.target_pages import read_targets
from focuscrawl.errors import UserError
from focuscrawl.offline.apprentice_training import train_apprentice
from focuscrawl.report.measures import load_pages
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.rounds.folders import write_crawl_folder
from focuscrawl.store.history import History
from focuscrawl.webs.synthetic import SyntheticWeb

from .rounds import KilledError, Mortal, crawl, fetches, plan

BUDGET = 90


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rounds") / "tables"
    crawl(plan("apprentice", BUDGET, 30, 3), path)
    return path


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    write_crawl_folder(str(root), root.with_name("crawl"))
    return root.with_name("crawl")


def run(*arguments: object) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_copy_of_the_crawl_counts_target_pages(tmp_path: Path) -> None:
    pages = (label.url for label in SyntheticWeb().labels() if label.topic == "/Sports/Cycling")
    given = plan("best-first", 60, 30, 2, targets=",".join(dict.fromkeys(pages)))
    crawl(given, tmp_path / "tables")
    write_crawl_folder(str(tmp_path / "tables"), tmp_path / "crawl")
    with closing(open_store(str(tmp_path / "crawl"))) as store:
        found = Summary.of(store).targets
    assert found is not None
    assert 0 < found.fetched < found.targets
    write_crawl_folder(str(tmp_path / "tables"), tmp_path / "sample", 20)
    assert not read_targets(tmp_path / "sample")


def links(path: Path) -> dict[str, dict[str, float | None]]:
    """Return of each page where its links lead, and their scores."""
    with closing(open_store(str(path))) as store:
        urls = [row.url for row in History(store).urls()]
        return {
            page.url_text: {urls[link.target]: link.score for link in page.links}
            for page in History(store).fetches()
        }


def test_why_a_page_of_it_was_fetched(folder: Path) -> None:
    url = load_pages(str(folder))["url"].iloc[-1]
    said = run("why", folder, url)
    assert f"fetch {BUDGET}, relevance" in said
    assert "reasons in log-odds, by the last model of the apprentice" in said
    assert said.splitlines()[-1].endswith(url)  # of the path that led there


def test_its_hubs_and_authorities(folder: Path) -> None:
    said = run("distill", folder)
    assert f"fetched  {BUDGET}\n" in said
    assert "demo.example" in said.partition("\nhubs ")[2].partition("\nauthorities ")[0]


def test_knowledge_is_learned_from_it(folder: Path, tmp_path: Path) -> None:
    said = run(
        *("knowledge", "learn", folder, "--topic", "/Sports/Cycling"),
        *("--out", tmp_path / "cycling.knowledge"),
    )
    assert f"cycling.knowledge: {BUDGET} fetches, " in said


def test_a_sample_has_some_pages_and_all_of_their_links(
    root: Path, folder: Path, tmp_path: Path
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    assert write_crawl_folder(str(root), small, 20) == 20
    assert write_crawl_folder(str(root), large, 60) == 60
    order = [*load_pages(str(folder))["url"]]
    drawn = [*load_pages(str(small))["url"]]
    more = [*load_pages(str(large))["url"]]
    assert drawn == sorted(drawn, key=order.index)
    assert {*drawn} < {*more} < {*order}
    assert order.index(drawn[-1]) - order.index(drawn[0]) > BUDGET / 2  # not all of one time
    every = links(folder)
    assert links(small) == {url: every[url] for url in drawn}
    whole = load_pages(str(folder)).set_index("url")
    found = load_pages(str(small)).set_index("url")
    assert np.array_equal(found["relevance"], whole.loc[drawn, "relevance"])
    assert "demo.example" in run("distill", small)
    assert f"fetch {len(drawn)}, relevance" in run("why", small, drawn[-1])
    # no more URLs are held than it names
    with closing(open_store(str(small))) as store:
        urls = {row.url for row in History(store).urls()}
    named = {url for page, to in links(small).items() for url in (page, *to)}
    assert named <= urls
    assert len(urls - named) <= 20  # whom they were first found on


def facts_of_links(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return of each page the position, target and features of its links."""
    found = {}
    with closing(open_store(str(path))) as store:
        history = History(store)
        urls = [row.url for row in history.urls()]
        for page in history.fetches():
            if page.memo is not None:
                facts = PageFeatures.from_bytes(page.memo, len(urls))
                ends = np.cumsum(facts.links.lengths)[:-1]
                features = [row.tolist() for row in np.split(facts.links.indices, ends)]
                targets = [urls[target] for target in facts.targets]
                found[page.url_text] = sorted(zip(facts.position, targets, features, strict=True))
    return found


@pytest.mark.long
def test_an_apprentice_can_be_trained_on_it(folder: Path, tmp_path: Path) -> None:
    with closing(open_store(str(folder))) as store:
        assert train_apprentice(store).n_judged > 30
    in_a_folder(tmp_path / "one", "apprentice", BUDGET)
    found, expected = facts_of_links(folder), facts_of_links(tmp_path / "one")
    both = found.keys() & expected.keys()
    assert len(both) > 15
    assert {url: found[url] for url in both} == {url: expected[url] for url in both}


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
        assert train_apprentice(store).n_judged > 60


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
    with pytest.raises(UserError, match="contains no crawl"):
        crawl(given, root, folder=tmp_path / "none")
    with pytest.raises(UserError, match="its strategy is best-first, not breadth-first"):
        crawl(plan("breadth-first", 5, 1, 2), root, folder=tmp_path / "begun")
    assert not root.exists()
    crawl(given, root)
    with pytest.raises(UserError, match="that started with its seeds, not --from "):
        crawl(given, root, folder=tmp_path / "begun")
