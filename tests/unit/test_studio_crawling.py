"""Crawls from the studio: what a form may say, and what is shown of a crawl that goes on."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.completeness.recall_estimate import ESTIMATES_FILE, EstimateLog, RecallEstimate
from focuscrawl.crawl.rejudging import REDEFINED
from focuscrawl.crawl.waiting import OVERTAKEN
from focuscrawl.errors import UserError
from focuscrawl.store import CrawlStore
from focuscrawl.strategies.base import strategy_names
from focuscrawl.studio.crawl_form import (
    OutlookRunner,
    encode_choice,
    group_strategies,
    parse_crawl_form,
    resume_crawl,
    start_crawl,
)
from focuscrawl.studio.crawl_watch import BUDGET, BestHosts, CrawlWatch, Curve, EventLog
from focuscrawl.studio.served_folder import NamedCrawl, StudioFolder
from focuscrawl.studio.topic_folder import TopicFiles
from focuscrawl.topics import TopicDefinition, write_definition
from focuscrawl.webs.synthetic import SyntheticWeb

from .small_crawl import being_written
from .studio_folders import make_context, write_job
from .test_studio_jobs import ended

if TYPE_CHECKING:
    from focuscrawl.studio.crawl_form import StartPagesResult

DEMO = {"name": "first", "of": encode_choice("models/demo", "/Sports/Cycling"), "budget": "20"}


@pytest.fixture
def folder(tmp_path: Path) -> StudioFolder:
    """An empty folder."""
    return StudioFolder(tmp_path)


def test_a_form_becomes_the_command_that_people_would_type(folder: StudioFolder) -> None:
    made = parse_crawl_form(
        folder, {**DEMO, "web": "demo", "delay": "0.5", "seeds": "http://a.example"}
    )
    assert made.name == "crawls/first"
    assert made.seeds == ["http://a.example/"]
    assert made.web == "demo"
    assert " ".join(made.arguments) == (
        "crawl -a critic=models/demo -a topic=/Sports/Cycling -a seeds=./crawls/first/seeds.txt "
        "-a web=demo -a strategy=apprentice -a budget=20 -a crawl_dir=./crawls/first "
        "-s DOWNLOAD_DELAY=0.5"
    )


def test_a_topic_brings_its_critic_its_start_pages_and_its_recording(
    folder: StudioFolder,
) -> None:
    seed = "http://a.example/"
    (folder.root / "bikes").mkdir()
    (folder.root / "mine.warc").touch()
    shutil.copytree("models/demo", folder.root / "bikes" / "critic-1")
    path = folder.root / "bikes" / "topic.toml"
    write_definition(TopicDefinition(words=("bikes",), web="./mine.warc", seeds=(seed,)), path)
    topic = TopicFiles(folder, path)
    choice = topic.choice()
    assert choice is not None
    of = encode_choice(choice[0], "/Sports/Cycling", topic.name)
    made = parse_crawl_form(folder, {"of": of})
    assert (made.name, made.web) == ("crawls/bikes", "./mine.warc")
    assert "critic=./bikes/critic-1" in made.arguments
    assert made.seeds_argument == ["seeds=./bikes/topic.toml"]
    (folder.root / "crawls" / "bikes").mkdir(parents=True)
    made = parse_crawl_form(folder, {"of": of, "web": "live", "seeds": "http://a.org/"})
    assert (made.name, made.web) == ("crawls/bikes-2", None)


def test_each_strategy_is_offered_once_with_a_sentence() -> None:
    groups = group_strategies()
    assert "best-first" in groups["Recommended"]
    assert "oracle" in groups["For comparison"]
    assert sorted(name for found in groups.values() for name in found) == strategy_names()
    assert all(sentence for found in groups.values() for sentence in found.values())


@pytest.mark.parametrize(
    ("said", "web"),
    [
        ({}, "demo"),  # the start pages are the examples of the demo critic
        ({"seeds": "https://velo-59.demo.example/"}, "demo"),
        ({"seeds": "https://a.org/"}, None),
    ],
)
def test_the_demo_web_is_known_by_its_start_pages(
    folder: StudioFolder, said: dict[str, Any], web: str | None
) -> None:
    assert parse_crawl_form(folder, {**DEMO, **said}).web == web


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"of": ""}, "train a critic"),
        ({"critic": "evil:judge", "topic": "/x"}, "no critic"),
        ({"critic": "../elsewhere", "topic": "/x"}, "no critic"),
        ({"name": "../x"}, "not a valid name"),
        ({"name": "-s"}, "not a valid name"),
        ({"budget": "many"}, "not a number of fetches"),
        ({"budget": "-1"}, "not a number of fetches"),
        ({"seeds": "file:///etc/passwd"}, "not an http"),
        ({"seeds": "http://a.example/"}, "name the recording"),
        ({"web": "/etc/passwd"}, "no recording"),
        ({"web": "-x"}, "no recording"),
        ({"strategy": "evil"}, "no strategy"),
        ({"delay": "1 -s X=1"}, "not a number"),
        ({"definition": "missing.toml"}, "no topic"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    folder: StudioFolder, said: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why) as refused:
        parse_crawl_form(folder, {**DEMO, **said})
    assert "\n" not in str(refused.value)
    assert not [*folder.root.iterdir()]


def test_of_two_forms_with_one_name_that_are_sent_at_once_one_begins(folder: StudioFolder) -> None:
    context = make_context(folder)
    said = {"name": "twice", "of": DEMO["of"], "web": "demo"}
    both = [parse_crawl_form(folder, {**said, "budget": budget}) for budget in ("5", "6")]
    with ThreadPoolExecutor(2) as pool:
        sent = [pool.submit(start_crawl, context, crawl) for crawl in both]
        errors = [each.exception() for each in sent]
    (refused,) = filter(None, errors)
    assert isinstance(refused, UserError)
    assert "crawls/twice has already been started" in str(refused)
    (job,) = context.jobs.all()
    assert job.arguments == both[errors.index(None)].arguments
    context.jobs.stop(job.id)
    ended(context.jobs, job.id)  # nothing is to run on in a folder that is removed


def test_start_pages_are_judged_once_whatever_else_of_the_form_is_changed(
    folder: StudioFolder,
) -> None:
    web = SyntheticWeb()
    seeds = [label.url for label in web.labels() if label.topic == "/Arts/Music/Jazz"][:2]
    outlooks = OutlookRunner(folder.root)
    said = {**DEMO, "web": "demo", "seeds": seeds}

    def ask(**more: str) -> StartPagesResult:
        found = outlooks.get(parse_crawl_form(folder, {**said, **more}), start=True)
        assert found is not None
        return found

    def known(**more: str) -> StartPagesResult:
        while not (found := ask(**more)).is_known():
            time.sleep(0.5)
        return found

    assert outlooks.get(parse_crawl_form(folder, said), start=False) is None
    assert not ask().is_known()
    assert not ask(seeds="http://elsewhere.example/").is_known()  # one after the other
    found = known()
    assert found.outlook is not None, found.error
    assert [page.url for page in found.outlook.pages] == seeds
    assert any("no start page is relevant" in each for each in found.outlook.warnings)
    assert ask(name="second", budget="70000") is found
    assert dict(found.outlook.facts(70_000))["disk"].endswith("for 70,000 fetches")
    wrong = known(critic="models/demo", topic="/Nothing")
    assert "unknown topic /Nothing" in str(wrong.error)


@pytest.mark.parametrize(
    "arguments",
    [
        ["crawl", "-a", "critic=evil:judge", "-a", "topic=/x"],
        ["crawl", "-s", "SPIDER_MIDDLEWARES=x"],
        ["crawl", "-s", "DOWNLOAD_DELAY=1 "],
        ["crawl", "-a", "seeds=../secret"],
        ["crawl", "-a", "crawl_dir=/elsewhere"],
        ["crawl", "-a", "knowledge=x"],
        ["crawl", "-a", "budget=5", "-a"],
        ["topic", "mark"],
    ],
)
def test_a_job_of_a_strangers_folder_is_not_gone_on_with(
    folder: StudioFolder, arguments: list[str]
) -> None:
    (folder.root / "crawls" / "x").mkdir(parents=True)
    (folder.root / "crawls" / "x" / "crawl.db").touch()
    write_job(folder.root, subject="crawls/x", arguments=arguments)
    context = make_context(folder)
    with pytest.raises(UserError):
        resume_crawl(context, "crawls/x")
    assert len(context.jobs.all()) == 1


def test_a_curve_keeps_few_points_and_the_last_fetch() -> None:
    curve = Curve()
    assert curve.recent_harvest_rate is None
    for number in range(10_000):
        curve.add(1.0 if number < 5_000 else 0.0)
    shown = curve.to_dict()
    assert curve.recent_harvest_rate == pytest.approx(0.0)
    assert len(shown["fetches"]) <= 501
    assert shown["fetches"][-1] == 10_000
    assert shown["loss"][-1] == 0.5
    assert shown["harvest"][-1] == 0.0
    at = shown["fetches"].index(max(n for n in shown["fetches"] if n <= 5_050))
    assert shown["harvest"][at] == pytest.approx(1 - (shown["fetches"][at] - 5_000) / 100)


def test_hosts_that_bring_most_are_kept_and_counted_in_bounded_room() -> None:
    hosts = BestHosts()
    for number in range(30_000):
        hosts.add(number, 0.1)
        if number % 100 == 0:
            hosts.add(-1 - number % 3, 1.0)
    best = hosts.best()
    assert {host for host, _, _ in best[:3]} == {-1, -2, -3}
    assert [n for _, n, _ in best] == [100, 100, 100, *[1] * 7]
    assert len(hosts) <= 10_000


def test_a_fall_of_the_harvest_rate_is_an_alarm_unless_most_is_fetched(tmp_path: Path) -> None:
    path = tmp_path / "crawl"
    with being_written(path) as crawl:
        for i in range(120):
            crawl.fetch(f"http://hive.example/{i}", 1.0 if i < 60 else 0.0)
        crawl.event(REDEFINED, "critic-1: 9 pages judged again: 1 now relevant, 0 now off topic")
        crawl.event(REDEFINED, "critic-2: 9 pages judged again: 1 now relevant, 3 now off topic")
    watch = CrawlWatch(NamedCrawl("crawl", path))
    try:
        state = watch.read_state()
        assert state["alarm"]["sentence"].startswith("The harvest rate has fallen: ")
        assert not state["exhausted"]
        assert state["changed"] == (
            "After the latest judgements, 1 page became relevant, and 3 pages became off-topic. "
            "All judgements changed the number of relevant pages by -1."
        )
        estimate = RecallEstimate(120, 60, 5, 1.0, 0.5, 0.0, 100, 0.1)
        EstimateLog(path / ESTIMATES_FILE, 120).add(estimate)
        state = watch.read_state()
    finally:
        watch.close()
    assert state["exhausted"]
    assert state["alarm"] is None


def test_happenings_are_told_once(tmp_path: Path) -> None:
    store = CrawlStore.create(tmp_path / "crawl.db", {"topic": "/x"})

    def write(number: int, seq: int, kind: str, detail: str) -> None:
        with store.connection() as connection:
            row = (number, "2026", seq, kind, detail)
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", row)

    events = EventLog()
    write(1, 0, "start", "topic=/x, budget=50")
    write(2, 7, OVERTAKEN, "late.example")
    assert not events.read(store)
    assert events.budget == 50
    assert events.pop_overtaken(7) == "late.example"
    write(3, 8, OVERTAKEN, "other.example")
    write(4, 9, BUDGET, "70")
    assert not events.read(store)
    assert [events.pop_overtaken(seq) for seq in (8, 7)] == ["other.example", None]
    assert events.budget == 70
    write(5, 9, REDEFINED, "")
    assert events.read(store)
    assert not events.read(store)
    store.close()
