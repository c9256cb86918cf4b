"""Forages by the loop: order, resuming, limits, goals; what paths to a page are worth."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import softmax

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.errors import UserError
from focuscrawl.paths.forager import Forager
from focuscrawl.paths.path_model import load_path_critic, read_model, save_model
from focuscrawl.report.goals import goal_pages
from focuscrawl.report.status import open_store
from focuscrawl.store.schema import FETCHED
from focuscrawl.strategies.path_strategy import PathMemo, Paths
from focuscrawl.testing import check_critic, check_strategy
from focuscrawl.webs import open_web

from . import departments
from .departments import record_pages
from .forages import forage, open_forage, rows_of, train_model

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.crawl import Crawl

    from .departments import Departments


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Departments:
    return departments.make(tmp_path_factory.mktemp("departments"))


@pytest.fixture(scope="module")
def model(web: Departments) -> Path:
    return train_model(web)


@pytest.mark.parametrize("adapt", [False, True])
def test_a_forage_goes_to_the_goals_and_resumes_exactly(
    web: Departments, model: Path, tmp_path: Path, *, adapt: bool
) -> None:
    door = web.doors[3]
    whole = forage(web, model, tmp_path / "whole", door, budget=24, adapt=adapt)
    assert web.professors[door] <= set(whole[:12])
    for budget in (1, 3, 7, 16, 24):
        parts = forage(web, model, tmp_path / "parts", door, budget=budget, adapt=adapt)
    assert parts == whole
    scores = "SELECT url, score, state FROM frontier ORDER BY url"
    assert rows_of(tmp_path / "parts", scores) == rows_of(tmp_path / "whole", scores)


def test_every_site_has_a_frontier_of_its_own(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    # what is given up of one site is none of the other's business
    fetched = forage(web, model, tmp_path / "c", *web.doors[2:], budget=60, per_site=9)
    for door in web.doors[2:]:
        own = [url for url in fetched if url.startswith(door)]
        assert 7 <= len(own) <= 11, own  # the sites link to each other
        assert len(web.professors[door] & set(own)) >= 5
    ended = rows_of(tmp_path / "c", "SELECT detail FROM events WHERE kind = 'stop'")
    assert ended == [("frontier_empty",)]


def test_a_forage_looks_at_its_own_site_first(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    # the sites next door are those learned from: their lists look like lists more than its own
    door = web.doors[3]
    fetched = forage(web, model, tmp_path / "c", door, budget=60)
    own = [url.startswith(door) for url in fetched]
    first_away = own.index(False)
    assert not any(own[first_away:])
    assert web.professors[door] <= set(fetched[:first_away])


def test_a_page_is_worth_what_its_path_says(web: Departments, model: Path, tmp_path: Path) -> None:
    door = web.doors[3]
    crawl = open_forage(web, model, tmp_path / "c", door, budget=16)
    replay(crawl)
    worth = _worth(crawl)
    on_the_way = {crawl.urls[number] for number in worth if worth[number] > 0.5}
    assert {f"{door}folk.html", f"{door}fac.html"} | web.professors[door] <= on_the_way
    assert on_the_way < {crawl.urls[number] for number in worth}  # others are fails
    again = open_forage(web, model, tmp_path / "c", door, budget=16)
    assert _worth(again) == worth
    again.close("over")


def _worth(crawl: Crawl) -> dict[int, float]:
    """Return what each fetched page was worth to the strategy."""
    numbers = range(len(crawl.urls))
    fetched = [number for number in numbers if crawl.urls.state(number) == FETCHED]
    return {number: crawl.strategy.worth(number, 0.0) for number in fetched}


def test_it_holds_to_what_every_strategy_does(web: Departments, model: Path) -> None:
    critic = load_path_critic(str(model), "/goal")
    check_strategy(Paths, critic=critic, web=open_web(str(web.warc)), seeds=web.doors[2:])
    check_critic(critic)


def test_a_threshold_ends_a_forage(web: Departments, model: Path, tmp_path: Path) -> None:
    fetched = forage(web, model, tmp_path / "c", web.doors[3], budget=0, threshold=0.2)
    assert web.professors[web.doors[3]] <= set(fetched)
    assert len(fetched) < 40  # of 140
    low = rows_of(tmp_path / "c", "SELECT score FROM frontier WHERE state = 'queued'")
    assert low == []


def test_a_forage_stops_when_little_more_is_to_be_expected(
    model: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    large = departments.make(tmp_path_factory.mktemp("large"), others=70)
    door = large.doors[3]
    stopped = forage(large, model, tmp_path / "c", door, budget=0, stop=0.05)
    assert large.professors[door] <= set(stopped)
    assert len(stopped) < 150  # of 320
    assert rows_of(tmp_path / "c", "SELECT url FROM frontier WHERE state = 'queued'") == []
    # what comes before the stop is what a forage without it fetches, and a resumed one stops there
    assert forage(large, model, tmp_path / "on", door, budget=len(stopped)) == stopped
    for budget in (77, 0):
        parts = forage(large, model, tmp_path / "parts", door, budget=budget, stop=0.05)
    assert parts == stopped


def test_a_model_of_one_site_cannot_tell_when_to_stop(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    known, _ = read_model(model)
    assert known.calibration is not None
    assert known.calibration.goals == 8
    save_model(replace(known, calibration=None), tmp_path / "model", {"paths": 1})
    with pytest.raises(UserError, match="two sites or more"):
        forage(web, tmp_path / "model", tmp_path / "c", web.doors[3], budget=1, stop=0.05)
    assert not (tmp_path / "c").exists()


def test_goals_have_the_path_that_led_to_them(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    forage(web, model, tmp_path / "c", web.doors[3], budget=16)
    with closing(open_store(tmp_path / "c")) as store:
        found = goal_pages(store)
    # when all are found it looks at the neighbours
    own = [page for page in found if page.path[-1].startswith(web.doors[3])]
    assert {page.path[-1] for page in own} == web.professors[web.doors[3]]
    assert {tuple(page.path[:3]) for page in own} == {
        (web.doors[3], f"{web.doors[3]}folk.html", f"{web.doors[3]}fac.html")
    }
    assert [page.probability for page in found] == sorted(
        (page.probability for page in found), reverse=True
    )


def test_a_redirect_takes_the_path_with_it(tmp_path: Path, web: Departments, model: Path) -> None:
    # the same department, but its list has moved
    door = web.doors[3]
    bodies = departments.bodies(web)
    listed = bodies.pop(f"{door}fac.html")
    moved = {f"{door}fac.html": f"{door}moved/list.html"}
    record_pages(tmp_path / "moved.warc.gz", {**bodies, f"{door}moved/list.html": listed}, moved)
    folder = tmp_path / "c"
    plan = CrawlConfig(
        topic="/goal",
        seeds=door,
        critic=str(model),
        strategy="paths",
        budget=16,
        web=str(tmp_path / "moved.warc.gz"),
        crawl_dir=str(folder),
    )
    replay(open_crawl(plan))
    with closing(open_store(folder)) as store:
        found = goal_pages(store)
    assert {page.path[-1] for page in found} == web.professors[door]
    assert {tuple(page.path[:3]) for page in found} == {
        (door, f"{door}folk.html", f"{door}moved/list.html")
    }


def test_the_strategy_needs_a_model_of_paths(
    tmp_path: Path, web: Departments, model: Path
) -> None:
    plan = CrawlConfig(
        topic="/Sports", strategy="paths", web="demo", crawl_dir=str(tmp_path / "c")
    )
    with pytest.raises(UserError, match="focuscrawl paths train"):
        open_crawl(plan)
    with pytest.raises(UserError, match="evidence must be one of"):
        forage(web, model, tmp_path / "c", web.doors[3], budget=1, evidence="all")
    assert not (tmp_path / "c").exists()


def test_memos_come_back() -> None:
    labels = np.array([[0.25, 0.75]] * 3, np.float32)
    directories = np.arange(6, dtype=np.uint32).reshape(3, 2)
    memo = PathMemo(4, -1, "http://ä.example/", 0.5, 0.125, 0.25, labels, directories)
    again = PathMemo.from_bytes(memo.to_bytes())
    assert (again.referrer, again.parent, again.url) == (4, -1, "http://ä.example/")
    assert (again.goal, again.fail, again.reward) == (0.5, 0.125, 0.25)
    np.testing.assert_array_equal(again.labels, labels)
    np.testing.assert_array_equal(again.directories, directories)
    bare = PathMemo(0, 1, "", 0.0, 1.0, 0.0, labels[:0], directories[:0])
    bare = PathMemo.from_bytes(bare.to_bytes())
    assert bare.labels.shape == bare.directories.shape == (0, 2)


@pytest.mark.parametrize(("evidence", "expected"), [("sum", 1.0), ("max", 0.8), ("mean", 0.5)])
def test_paths_to_one_url_add_up(model: Path, evidence: str, expected: float) -> None:
    known, _ = read_model(model)
    k = len(known.states)
    forager = Forager(replace(known, rewards=np.eye(k)[0]), evidence=evidence)
    for page, goal in ((0, 0.8), (1, 0.2)):
        forager.fetched(page)
        forager.arrive(page, page - 1, "http://a.example/")
        labels = np.zeros((2, k))
        labels[:, 0], labels[:, 1] = goal, 1.0 - goal
        labels[1] /= 2.0  # the second link of a page to a URL does not count
        found = forager.expand(page, np.array([5, 5]), labels[None])
    assert found.urls.tolist() == [5]
    assert found.scores[0] == pytest.approx(expected)


def test_as_printed_every_path_to_a_page_counts_by_itself(model: Path) -> None:
    known, _ = read_model(model)
    k = len(known.states)
    forager = Forager(replace(known, rewards=np.eye(k)[0]), printed=True)
    rng = np.random.default_rng(1)
    page = rng.normal(size=k)
    forager.arrive(0, -1, "http://a.example/")
    begun = forager.belief(0, page)
    forager.fetched(0)
    edges = known.crf.edge_[k:, :k].max(axis=1)
    np.testing.assert_allclose(begun, softmax(page + edges)[None])  # goal and fail, too
    one, two = rng.dirichlet(np.ones(k), (2, 1, 2))
    forager.expand(0, np.array([1, 2]), one)
    forager.arrive(1, 0, "http://a.example/1")
    assert forager.belief(1, page).shape == (1, k)
    forager.fetched(1)
    found = forager.expand(1, np.array([2, 3]), two)
    assert found.scores[0] == pytest.approx(one[0, 1, 0] + two[0, 0, 0])
    forager.arrive(2, 0, "http://a.example/2")
    ways = forager.belief(2, page)  # by the front door, and by way of page 1
    expected = [softmax(page + edges + np.log(said)) for said in (one[0, 1], two[0, 0])]
    np.testing.assert_allclose(sorted(ways.tolist()), sorted(map(list, expected)))
    forager.fetched(2)
    found = forager.expand(2, np.array([4]), rng.dirichlet(np.ones(k), (2, 1)))
    assert found.urls.tolist() == [4]
    assert found.scores[0] == found.link_scores[0]
    assert 0.0 < found.scores[0] < 2.0


def test_a_forage_by_the_letter_resumes_exactly(
    web: Departments, model: Path, tmp_path: Path
) -> None:
    whole = forage(web, model, tmp_path / "w", web.doors[3], budget=16, printed_scores=True)
    for budget in (5, 9, 16):
        parts = forage(
            web, model, tmp_path / "p", web.doors[3], budget=budget, printed_scores=True
        )
    assert parts == whole
    assert web.professors[web.doors[3]] <= set(whole)
    with pytest.raises(UserError, match="leave out evidence=max"):
        forage(
            *(web, model, tmp_path / "m", web.doors[3]),
            budget=1,
            evidence="max",
            printed_scores=True,
        )
