"""The item pipelines of the project, and a user's own between them."""

from __future__ import annotations

import json
from inspect import getsource
from pathlib import Path
from typing import Any

import pytest
from scrapy.core import engine
from scrapy.http import HtmlResponse

from focuscrawl.settings import DOWNLOADER_MIDDLEWARES, ITEM_PIPELINES
from focuscrawl.webs.synthetic import SyntheticWeb

from . import warm
from .running import ROOT, Kept, Run, crawl, environment, refused, words

BUDGET = 40
SIDE_BY_SIDE = {"CONCURRENT_REQUESTS": 8}


def between(place: int, name: str) -> dict[str, object]:
    """Return the setting that puts a pipeline of the tests between those of the project."""
    return {"ITEM_PIPELINES": json.dumps({**ITEM_PIPELINES, f"server.pipelines.{name}": place})}


def is_whole(kept: Kept, budget: int = BUDGET) -> bool:
    """Tell whether every fetch of the budget is recorded, each once."""
    seqs = [seq for seq, _ in kept.order]
    return seqs == list(range(1, budget + 1)) and len(set(kept.urls)) == budget


@pytest.fixture(scope="module")
def alone(demo: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A crawl without anything between."""
    return crawl(tmp_path_factory.mktemp("alone") / "crawl", fresh=True, **demo, budget=BUDGET)


def test_a_second_opinion_counts_for_links_and_store(
    demo: dict[str, str], tmp_path: Path, alone: Run
) -> None:
    feed, given = tmp_path / "pages.jsonl", between(300, "SecondOpinion")
    kept = crawl(tmp_path / "crawl", "-O", str(feed), **given, **demo, budget=BUDGET).kept
    judged = "SELECT url, relevance FROM pages WHERE title IS NOT NULL"
    pages, first = dict(kept.query(judged)), dict(alone.kept.query(judged))
    seeds = set(pages) & set(first)
    assert seeds
    assert all(pages[url] == pytest.approx(1.0 - first[url]) for url in seeds)
    # the links were scored by it, the best page that linked to each, and so it went elsewhere
    best = dict(
        kept.query(
            "SELECT v.url, max(u.relevance) FROM pages v JOIN links l ON l.target = v.url "
            "JOIN pages u ON u.url = l.source AND u.seq < v.seq GROUP BY v.url"
        )
    )
    for url, score in kept.query("SELECT url, score FROM pages WHERE score IS NOT NULL"):
        assert score == pytest.approx(best[url])
    assert kept.urls != alone.kept.urls
    items = [json.loads(line) for line in feed.read_text().splitlines()]
    assert {item["url"]: item["relevance"] for item in items if item["title"]} == pages


def test_what_a_pipeline_drops_is_recorded_and_no_item(
    demo: dict[str, str], tmp_path: Path
) -> None:
    feed, given = tmp_path / "pages.jsonl", between(300, "Dropper")
    kept = crawl(tmp_path / "crawl", "-O", str(feed), **given, **demo, budget=BUDGET).kept
    assert is_whole(kept)
    numbers = dict(kept.query("SELECT url, id FROM url"))
    dropped = {url for url in kept.urls if numbers[url] % 3 == 1}
    assert dropped
    items = {json.loads(line)["url"] for line in feed.read_text().splitlines()}
    assert items == set(kept.urls) - dropped
    sources = {source for (source,) in kept.query("SELECT DISTINCT source FROM links")}
    assert sources
    assert not sources & dropped  # their links are not followed


def test_a_pipeline_queries_the_page_as_in_scrapy(demo: dict[str, str], tmp_path: Path) -> None:
    given = between(300, "Headlines")
    kept = crawl(tmp_path / "crawl", **given, **demo, budget=BUDGET).kept
    titles = dict(kept.query("SELECT url, title FROM pages WHERE title IS NOT NULL"))
    web = SyntheticWeb()
    assert len(titles) > 20
    for url, title in titles.items():
        answer = web.fetch(url)
        assert answer is not None
        page = HtmlResponse(url, body=answer.body, headers=dict(answer.headers))
        expected = f"{page.css('h1::text').get()} {page.xpath('//link/@href').getall()}"
        assert title == expected


@pytest.mark.parametrize(
    ("name", "place", "said"),
    [
        ("Failing", 700, "every fifth"),
        ("Forgetful", 300, "no response"),
        ("Forgetful", 700, "instead of the fetch of"),
        ("Corrupting", 50, "TypeError"),
    ],
)
def test_a_pipeline_that_fails_loses_no_page(
    demo: dict[str, str], tmp_path: Path, name: str, place: int, said: str
) -> None:
    given = {**SIDE_BY_SIDE, **between(place, name)}
    run = crawl(tmp_path / "crawl", **given, **demo, budget=BUDGET)
    assert is_whole(run.kept)
    errors = run.kept.query("SELECT error FROM pages WHERE error LIKE 'TypeError%'")
    assert bool(errors) == (name == "Corrupting")  # an error of that page
    assert said in run.stderr or errors


@pytest.mark.parametrize(
    "given",
    [
        between(700, "Forgetful"),  # what is not returned then is recorded as it was judged
        between(700, "Unsettled"),  # after the links the relevance is settled
        between(300, "Slow"),
        {"ITEM_PIPELINES": '{"server.pipelines.Slow": 300}'},  # those of a crawl are there anyway
    ],
)
def test_what_changes_nothing(
    demo: dict[str, str], tmp_path: Path, alone: Run, given: dict[str, object]
) -> None:
    kept = crawl(tmp_path / "crawl", **given, **demo, budget=BUDGET).kept
    pages = "SELECT url, relevance FROM pages ORDER BY seq"
    assert kept.query(pages) == alone.kept.query(pages)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {
                **SIDE_BY_SIDE,
                "strategy": "apprentice",
                "FOCUSCRAWL_INSTANCES": "server.pipelines:choke",
            },
            "cannot take",
        ),
        (between(300, "Unsettled"), "relevance 7.0 of "),
    ],
)
def test_an_opinion_or_a_feed_that_cannot_be_ends_the_crawl(
    demo: dict[str, str], tmp_path: Path, given: dict[str, object], said: str
) -> None:
    run = crawl(tmp_path / "crawl", code=1, **{**demo, **given}, budget=BUDGET)
    assert said in run.stderr
    assert run.kept.stop_reasons == ["error"]


@pytest.mark.parametrize(
    ("name", "fetched"), [("RefusesAnswers", True), ("RefusesRequests", False)]
)
def test_what_is_ignored_costs_a_fetch_if_it_was_made(
    demo: dict[str, str], tmp_path: Path, name: str, fetched: bool
) -> None:
    middlewares = {**DOWNLOADER_MIDDLEWARES, f"server.downloadermiddlewares.{name}": 600}
    given = {"DOWNLOADER_MIDDLEWARES": json.dumps(middlewares)}
    kept = crawl(tmp_path / "crawl", **given, **demo, budget=BUDGET).kept
    assert is_whole(kept)
    ignored = kept.query("SELECT count(*) FROM pages WHERE error = 'too late'")[0][0]
    excluded = kept.query("SELECT count(*) FROM events WHERE kind = 'excluded'")[0][0]
    assert (ignored > 0, excluded > 0) == (fetched, not fetched)


@pytest.mark.parametrize("place", [None, 50, 900])
def test_the_pipelines_of_a_crawl_have_an_order(
    demo: dict[str, str], tmp_path: Path, place: int | None
) -> None:
    named = {**ITEM_PIPELINES, "focuscrawl.pipelines.LinkPipeline": place}
    line = refused(tmp_path / "crawl", ITEM_PIPELINES=json.dumps(named), **demo)
    assert "enable CriticPipeline, LinkPipeline, RecordPipeline, in this order" in line
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize("place", [300, 700])
def test_pages_side_by_side_are_recorded_as_they_were_expanded(
    demo: dict[str, str], tmp_path: Path, place: int
) -> None:
    """Slow pipelines let answers overtake each other; the crawl resumes all the same."""
    given = {**SIDE_BY_SIDE, **between(place, "Slow")}
    for budget in (BUDGET, BUDGET + 20):
        kept = crawl(tmp_path / "crawl", **given, **demo, budget=budget).kept
    order = kept.query(
        "SELECT p.seq, min(l.id) FROM page p JOIN link l ON l.source = p.url "
        "GROUP BY p.seq ORDER BY p.seq"
    )
    assert is_whole(kept, BUDGET + 20)
    assert [first for _, first in order] == sorted(first for _, first in order)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "options", [{}, {"learner": "nb", "evidence": "first", "tunnel": False, "links_into": 0}]
)
def test_the_feed_has_the_instances_that_the_apprentice_is_trained_on(
    demo: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
) -> None:
    trained, emitted = tmp_path / "trained", tmp_path / "emitted"
    monkeypatch.setenv("TEST_TRAININGS", str(trained))
    monkeypatch.setenv("TEST_EMITTED", str(emitted))
    given = {**demo, "strategy": "apprentice", "budget": 150}
    given["FOCUSCRAWL_STRATEGY_OPTIONS"] = json.dumps(options)
    listening = {"FOCUSCRAWL_INSTANCES": "server.training_spy:keep"}
    kept = crawl(tmp_path / "crawl", **listening, **given).kept
    versions = [version for (version,) in kept.query("SELECT version FROM models")]
    assert len(versions) > 10
    latest: dict[str, dict[str, Any]] = {}  # in the order of the fetches
    columns = ("features", "values", "inputs", "label")
    n_rows = 0
    for version, rows in zip(versions, lines(trained), strict=False):  # the last took no effect
        instances = [each for each in lines(emitted) if each["model"] == version]
        if not options:  # naive Bayes counts an instance once, and has one for each link
            latest |= {each["target"]: each for each in instances}
            instances = [*latest.values()]
        n_rows += len(rows)
        assert [{name: each[name] for name in columns} for each in instances] == rows
    assert n_rows > 200
    if not options:  # nothing is different if nobody listens
        alone = crawl(tmp_path / "alone", **given).kept
        models = "SELECT trained_at_seq, instances, metrics FROM models"
        assert (alone.order, alone.query(models)) == (kept.order, kept.query(models))


def test_an_instance_has_the_links_known_before_the_fetch(
    demo: dict[str, str], tmp_path: Path
) -> None:
    feed = tmp_path / "instances.jsonl"
    given = {**demo, "strategy": "apprentice", "budget": 100, "FOCUSCRAWL_INSTANCES": feed}
    kept = crawl(tmp_path / "crawl", **given).kept
    relevance = dict(kept.query("SELECT url, relevance FROM pages"))
    links = kept.query(
        "SELECT t.url, s.url FROM link l JOIN url s ON s.id = l.source JOIN url t ON t.id = "
        "l.target JOIN page u ON u.url = l.source JOIN page v ON v.url = l.target "
        "WHERE u.seq < v.seq ORDER BY l.id"
    )
    sources: dict[str, list[str]] = {}
    for target, source in links:
        sources.setdefault(target, []).append(source)
    instances = lines(feed)
    assert len({each["target"] for each in instances}) > 50
    assert max(len(each["sources"]) for each in instances) > 5
    for each in instances:
        assert each["sources"] == sources[each["target"]][:16]
        assert each["relevance_target"] == relevance[each["target"]]
        assert each["relevance_sources"] == [relevance[url] for url in each["sources"]]


def test_only_a_strategy_with_instances_has_a_feed(demo: dict[str, str], tmp_path: Path) -> None:
    line = refused(tmp_path / "crawl", FOCUSCRAWL_INSTANCES="x.jsonl", **demo)
    assert "the strategy best-first is not trained on instances" in line
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("server.pipelines:nobody", "has no attribute 'nobody'"),
        ("nowhere.at.all:see", "No module named 'nowhere'"),
        ("/no/such/folder/x.jsonl", "the folder does not exist"),
    ],
)
def test_no_such_feed(demo: dict[str, str], tmp_path: Path, named: str, said: str) -> None:
    given = demo | {"strategy": "apprentice"}
    assert said in refused(tmp_path / "crawl", FOCUSCRAWL_INSTANCES=named, **given)
    assert not (tmp_path / "crawl").exists()


def test_a_fetch_that_a_spider_does_not_yield_is_recorded_as_lost(
    demo: dict[str, str], tmp_path: Path
) -> None:
    spiders = {"SPIDER_MODULES": "focuscrawl.spiders,server.spiders"}
    line = words(tmp_path / "crawl", **spiders, **demo, budget=12)
    line[line.index("focused")] = "forgetful"
    done = warm.run(line, cwd=ROOT, env=environment())
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no response and no error for") == 2
    pages = Kept(tmp_path / "crawl").query("SELECT seq, error FROM pages ORDER BY seq")
    assert [seq for seq, _ in pages] == list(range(1, 13))
    assert [error for _, error in pages[:2]] == ["lost", "lost"]
    assert "lost" not in [error for _, error in pages[2:]]


@pytest.mark.skipif("_start_error" not in getsource(engine), reason="this Scrapy does not know")
def test_a_start_that_fails_is_no_good_end(demo: dict[str, str], tmp_path: Path) -> None:
    few = demo | {"hosts": "exploit-20.demo.example", "max_depth": "0"}
    line = words(tmp_path / "crawl", SPIDER_MODULES="server.spiders", **few, budget=12)
    line[line.index("focused")] = "unready"
    done = warm.run(line, cwd=ROOT, env=environment())
    assert "the list of start pages is not there" in done.stderr
    assert "the spider failed to start: see the log" in done.stderr
    assert done.returncode == 1
