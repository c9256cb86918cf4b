"""The item pipelines of the project, and a user's own between them."""

from __future__ import annotations

import json
from inspect import getsource
from typing import TYPE_CHECKING

import pytest
from scrapy.core import engine

from focuscrawl.settings import DOWNLOADER_MIDDLEWARES, ITEM_PIPELINES

from . import warm
from .running import ROOT, Kept, Run, crawl, environment, words

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 60
SIDE_BY_SIDE = ("-s", "CONCURRENT_REQUESTS=8")


def between(place: int, name: str) -> tuple[str, str]:
    """Return the option that puts a pipeline of the tests between those of the project."""
    pipelines = {**ITEM_PIPELINES, f"server.pipelines.{name}": place}
    return "-s", f"ITEM_PIPELINES={json.dumps(pipelines)}"


def scores(kept: Kept) -> dict[str, float]:
    """Return the relevance of the best page that linked to each page when it was fetched."""
    found = kept.query(
        "SELECT v.url, max(u.relevance) FROM pages v JOIN links l ON l.target = v.url "
        "JOIN pages u ON u.url = l.source AND u.seq < v.seq GROUP BY v.url"
    )
    return dict(found)


@pytest.fixture(scope="module")
def alone(demo: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A crawl without anything between."""
    folder = tmp_path_factory.mktemp("alone") / "crawl"
    return crawl(folder, fresh=True, **demo, budget=BUDGET)


def test_a_second_opinion_counts_for_links_and_store(
    demo: dict[str, str], tmp_path: Path, alone: Run
) -> None:
    feed = tmp_path / "pages.jsonl"
    run = crawl(
        tmp_path / "crawl",
        *between(300, "SecondOpinion"),
        "-O",
        str(feed),
        **demo,
        budget=BUDGET,
    )
    assert run.returncode == 0, run.stderr
    pages = dict(run.kept.query("SELECT url, relevance FROM pages WHERE title IS NOT NULL"))
    first = dict(alone.kept.query("SELECT url, relevance FROM pages WHERE title IS NOT NULL"))
    seeds = set(pages) & set(first)
    assert seeds
    assert all(pages[url] == pytest.approx(1.0 - first[url]) for url in seeds)
    # the links were scored by it, and so the crawl went elsewhere
    best = scores(run.kept)
    for url, score in run.kept.query("SELECT url, score FROM pages WHERE score IS NOT NULL"):
        assert score == pytest.approx(best[url])
    assert run.kept.urls != alone.kept.urls
    items = [json.loads(line) for line in feed.read_text().splitlines()]
    assert {item["url"]: item["relevance"] for item in items if item["title"]} == pages


def test_what_a_pipeline_drops_is_recorded_and_no_item(
    demo: dict[str, str], tmp_path: Path
) -> None:
    feed = tmp_path / "pages.jsonl"
    run = crawl(
        tmp_path / "crawl", *between(300, "Dropper"), "-O", str(feed), **demo, budget=BUDGET
    )
    assert run.returncode == 0, run.stderr
    assert [seq for seq, _ in run.kept.order] == list(range(1, BUDGET + 1))
    numbers = dict(run.kept.query("SELECT url, id FROM url"))
    dropped = {url for url in run.kept.urls if numbers[url] % 3 == 1}
    assert dropped
    items = {json.loads(line)["url"] for line in feed.read_text().splitlines()}
    assert items == set(run.kept.urls) - dropped
    sources = {source for (source,) in run.kept.query("SELECT DISTINCT source FROM links")}
    assert sources
    assert not sources & dropped  # their links are not followed


def test_a_pipeline_that_fails_loses_no_page(demo: dict[str, str], tmp_path: Path) -> None:
    run = crawl(tmp_path / "crawl", *between(700, "Failing"), **demo, budget=BUDGET)
    assert run.returncode == 0, run.stderr
    assert "every fifth" in run.stderr
    assert [seq for seq, _ in run.kept.order] == list(range(1, BUDGET + 1))
    assert len(set(run.kept.urls)) == BUDGET


@pytest.mark.parametrize(("place", "said"), [(300, "no answer"), (700, "returned no fetch")])
def test_a_pipeline_that_returns_nothing_loses_no_page(
    demo: dict[str, str], tmp_path: Path, place: int, said: str
) -> None:
    run = crawl(
        tmp_path / "crawl", *SIDE_BY_SIDE, *between(place, "Forgetful"), **demo, budget=BUDGET
    )
    assert run.returncode == 0, run.stderr
    assert said in run.stderr
    assert [seq for seq, _ in run.kept.order] == list(range(1, BUDGET + 1))
    assert len(set(run.kept.urls)) == BUDGET


def test_what_is_not_returned_after_the_links_is_recorded_as_it_was_judged(
    demo: dict[str, str], tmp_path: Path, alone: Run
) -> None:
    run = crawl(tmp_path / "crawl", *between(700, "Forgetful"), **demo, budget=BUDGET)
    assert run.kept.order == alone.kept.order


def test_an_error_in_a_feed_ends_the_crawl(demo: dict[str, str], tmp_path: Path) -> None:
    feed = ("-s", "FOCUSCRAWL_INSTANCES=server.pipelines:choke")
    run = crawl(tmp_path / "crawl", *SIDE_BY_SIDE, *feed, **demo, budget=BUDGET)
    assert run.returncode == 1
    assert run.kept.stop_reasons == ["error"]


def test_an_opinion_that_is_no_relevance_ends_the_crawl(
    demo: dict[str, str], tmp_path: Path
) -> None:
    run = crawl(tmp_path / "crawl", *between(300, "Unsettled"), **demo, budget=BUDGET)
    assert run.returncode == 1
    assert "is 7.0, not in 0 to 1" in run.stderr
    assert run.kept.stop_reasons == ["error"]


def test_after_the_links_the_relevance_is_settled(
    demo: dict[str, str], tmp_path: Path, alone: Run
) -> None:
    run = crawl(tmp_path / "crawl", *between(700, "Unsettled"), **demo, budget=BUDGET)
    query = "SELECT url, relevance FROM pages ORDER BY seq"
    assert run.kept.query(query) == alone.kept.query(query)


def test_a_page_that_cannot_be_parsed_is_an_error_of_that_page(
    demo: dict[str, str], tmp_path: Path
) -> None:
    run = crawl(tmp_path / "crawl", *between(50, "Corrupting"), **demo, budget=BUDGET)
    assert run.returncode == 0, run.stderr
    pages = run.kept.query("SELECT seq, error FROM pages ORDER BY seq")
    assert [seq for seq, _ in pages] == list(range(1, BUDGET + 1))
    assert any(error is not None and error.startswith("TypeError") for _, error in pages)


@pytest.mark.parametrize(
    ("name", "fetched"), [("RefusesAnswers", True), ("RefusesRequests", False)]
)
def test_what_is_ignored_costs_a_fetch_if_it_was_made(
    demo: dict[str, str], tmp_path: Path, name: str, fetched: bool
) -> None:
    middlewares = {**DOWNLOADER_MIDDLEWARES, f"server.downloadermiddlewares.{name}": 600}
    option = f"DOWNLOADER_MIDDLEWARES={json.dumps(middlewares)}"
    run = crawl(tmp_path / "crawl", "-s", option, **demo, budget=BUDGET)
    assert run.returncode == 0, run.stderr
    assert [seq for seq, _ in run.kept.order] == list(range(1, BUDGET + 1))
    ignored = run.kept.query("SELECT count(*) FROM pages WHERE error = 'too late'")[0][0]
    excluded = run.kept.query("SELECT count(*) FROM events WHERE kind = 'excluded'")[0][0]
    assert (ignored > 0, excluded > 0) == (fetched, not fetched)


def test_the_pipelines_of_a_crawl_are_there_whatever_is_named(
    demo: dict[str, str], tmp_path: Path, alone: Run
) -> None:
    only = ("-s", 'ITEM_PIPELINES={"server.pipelines.Slow": 300}')
    run = crawl(tmp_path / "crawl", *only, **demo, budget=BUDGET)
    assert run.returncode == 0, run.stderr
    assert run.kept.order == alone.kept.order


@pytest.mark.parametrize("place", [None, 50, 900])
def test_the_pipelines_of_a_crawl_have_an_order(
    demo: dict[str, str], tmp_path: Path, place: int | None
) -> None:
    named = {**ITEM_PIPELINES, "focuscrawl.pipelines.LinkPipeline": place}
    option = f"ITEM_PIPELINES={json.dumps(named)}"
    run = crawl(tmp_path / "crawl", "-s", option, **demo, budget=BUDGET)
    assert run.returncode == 2
    (line,) = run.stderr.strip().splitlines()
    assert "a crawl needs CriticPipeline, LinkPipeline, RecordPipeline, in this order" in line
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize("place", [300, 700])
def test_pages_side_by_side_are_recorded_as_they_were_expanded(
    demo: dict[str, str], tmp_path: Path, place: int
) -> None:
    """Slow pipelines let answers overtake each other; the crawl resumes all the same."""
    for budget in (BUDGET, BUDGET + 20):
        run = crawl(
            tmp_path / "crawl", *SIDE_BY_SIDE, *between(place, "Slow"), **demo, budget=budget
        )
        assert run.returncode == 0, run.stderr
    order = run.kept.query(
        "SELECT p.seq, min(l.id) FROM page p JOIN link l ON l.source = p.url "
        "GROUP BY p.seq ORDER BY p.seq"
    )
    assert [seq for seq, _ in run.kept.order] == list(range(1, BUDGET + 21))
    assert [first for _, first in order] == sorted(first for _, first in order)


def test_one_at_a_time_a_slow_pipeline_changes_nothing(
    demo: dict[str, str], tmp_path: Path, alone: Run
) -> None:
    run = crawl(tmp_path / "crawl", *between(300, "Slow"), **demo, budget=BUDGET)
    assert run.kept.order == alone.kept.order


def test_instances_go_to_a_feed(demo: dict[str, str], tmp_path: Path) -> None:
    feed = tmp_path / "instances.jsonl"
    run = crawl(tmp_path / "crawl", "-s", f"FOCUSCRAWL_INSTANCES={feed}", **demo, budget=BUDGET)
    assert run.returncode == 0, run.stderr
    instances = [json.loads(line) for line in feed.read_text().splitlines()]
    relevance = dict(run.kept.query("SELECT url, relevance FROM pages"))
    links = run.kept.query("SELECT source, target, anchor FROM links")
    expected = [(u, v, text) for u, v, text in links if v in relevance]
    assert sorted((i["source"], i["target"], i["anchor"]) for i in instances) == sorted(expected)
    for each in instances:
        assert each["relevance_source"] == relevance[each["source"]]
        assert each["relevance_target"] == relevance[each["target"]]
        words = {feature.rpartition("@")[0] for feature in each["features"] if "@0" in feature}
        assert set(each["anchor"].lower().split()) & words or not each["anchor"].strip()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("server.pipelines:nobody", "has no attribute 'nobody'"),
        ("nowhere.at.all:see", "No module named 'nowhere'"),
        ("/no/such/folder/x.jsonl", "there is no such folder"),
    ],
)
def test_no_such_feed(demo: dict[str, str], tmp_path: Path, named: str, said: str) -> None:
    run = crawl(tmp_path / "crawl", "-s", f"FOCUSCRAWL_INSTANCES={named}", **demo, budget=5)
    assert run.returncode == 2
    assert said in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "crawl").exists()


def test_a_fetch_that_a_spider_does_not_yield_is_recorded_as_lost(
    demo: dict[str, str], tmp_path: Path
) -> None:
    spiders = ("-s", "SPIDER_MODULES=focuscrawl.spiders,server.spiders")
    line = words(tmp_path / "crawl", *spiders, **demo, budget=12)
    line[line.index("focused")] = "forgetful"
    done = warm.run(line, cwd=ROOT, env=environment())
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no answer and no error came for") == 2
    pages = Kept(tmp_path / "crawl").query("SELECT seq, error FROM pages ORDER BY seq")
    assert [seq for seq, _ in pages] == list(range(1, 13))
    assert [error for _, error in pages[:2]] == ["lost", "lost"]
    assert "lost" not in [error for _, error in pages[2:]]


@pytest.mark.skipif("_start_error" not in getsource(engine), reason="this Scrapy does not know")
def test_a_start_that_fails_is_no_good_end(demo: dict[str, str], tmp_path: Path) -> None:
    spiders = ("-s", "SPIDER_MODULES=server.spiders")
    few = demo | {"hosts": "exploit-20.demo.example", "max_depth": "0"}
    line = words(tmp_path / "crawl", *spiders, **few, budget=12)
    line[line.index("focused")] = "unready"
    done = warm.run(line, cwd=ROOT, env=environment())
    assert "the list of start pages is not there" in done.stderr
    assert "the spider's start failed: see the log" in done.stderr
    assert done.returncode == 1
