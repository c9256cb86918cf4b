"""The add-on in a project that was written without it (`tests/stranger`)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from . import warm
from .running import ROOT, Kept, as_options, words

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from .conftest import LocalWeb

STRANGER = ROOT / "tests" / "stranger"


@dataclass(frozen=True)
class Job:
    """A run of the stranger's spider."""

    returncode: int
    stderr: str
    items: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    kept: Kept

    def given(self, *kinds: str) -> set[tuple[Any, ...]]:
        """Return what the items of some kinds say, each item as a sorted tuple."""
        return {
            tuple(sorted((k, str(v)) for k, v in item.items()))
            for item in self.items
            if item["kind"] in kinds
        }


def environment(settings: str) -> dict[str, str]:
    """Return the environment of the stranger's commands, with one of their settings modules."""
    path = os.pathsep.join(map(str, (STRANGER, ROOT, ROOT / "tests")))
    return {**os.environ, "PYTHONPATH": path, "SCRAPY_SETTINGS_MODULE": settings}


def scrapy(settings: str, *words: str) -> CompletedProcess[str]:
    """Run a command of Scrapy's in the stranger's project, with one of its settings modules."""
    return warm.run(list(words), cwd=STRANGER, env=environment(settings))


def run(
    local_web: LocalWeb, folder: Path, module: str = "clubs.settings", **settings: object
) -> Job:
    """Run the spider as the stranger does, with one of two settings modules and some more."""
    before = len(local_web.requests())
    folder.mkdir(exist_ok=True)
    feed = folder / "items.jsonl"
    given = {"site": local_web.origins["a"], "other": local_web.origins["b"], **settings}
    done = scrapy(module, "crawl", "members", *as_options(given), "-O", str(feed))
    lines = feed.read_text(encoding="utf-8").splitlines() if feed.exists() else []
    items = [json.loads(line) for line in lines]
    kept = Kept(folder / "crawl")
    return Job(done.returncode, done.stderr, items, local_web.requests()[before:], kept)


def focused(local_web: LocalWeb, folder: Path, **settings: object) -> Job:
    """Run it with the add-on."""
    settings = {"FOCUSCRAWL_CRAWL_DIR": folder / "crawl", **settings}
    return run(local_web, folder, "clubs.focused", **settings)


@pytest.fixture(scope="module")
def plain(local_web: LocalWeb, tmp_path_factory: pytest.TempPathFactory) -> Job:
    return run(local_web, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def whole(local_web: LocalWeb, tmp_path_factory: pytest.TempPathFactory) -> Job:
    settings = {"FOCUSCRAWL_FOLLOW": 1, "FOCUSCRAWL_CALLBACK": ""}
    return focused(local_web, tmp_path_factory.mktemp("focused"), **settings)


def test_all_that_the_spider_got_without_it_it_gets_with_it(plain: Job, whole: Job) -> None:
    """Callbacks, errbacks, cb_kwargs, meta, redirects, POST, repeats; middlewares, pipelines."""
    assert (plain.returncode, whole.returncode) == (0, 0), whole.stderr
    without = sorted(item["kind"] for item in plain.items)
    assert without == ["club", "gone", "gone", "login", "parse"] + ["section"] * 4
    kinds = ("club", "gone", "login", "parse", "section")
    assert whole.given(*kinds) == plain.given(*kinds)
    assert len(whole.items) == len(plain.items)
    for counted in ("'clubs/items': 9", "'item_scraped_count': 9"):
        assert counted in whole.stderr
    assert "Spider error" not in whole.stderr


def test_its_requests_are_sent_as_it_made_them(
    plain: Job, whole: Job, local_web: LocalWeb
) -> None:
    theirs = {(r["method"], r["site"], r["path"], r["club"]) for r in plain.requests}
    assert theirs <= {(r["method"], r["site"], r["path"], r["club"]) for r in whole.requests}
    assert {r["club"] for r in whole.requests} == {"member", "guest"}


def test_pages_nobody_asked_for_are_found_judged_and_recorded(
    plain: Job, whole: Job, local_web: LocalWeb
) -> None:
    own = {item["url"] for item in plain.items}
    found = set(whole.kept.urls) - own
    assert {f"{local_web.origins['c']}/section-{n}" for n in range(5)} <= found
    slow = f"{local_web.origins['slow']}/"  # refused by a middleware of the stranger's
    state = whole.kept.query(f"SELECT state FROM frontier WHERE url = '{slow}'")
    assert state == [("excluded",)]
    assert whole.kept.stop_reasons == ["frontier_empty"]


def test_what_it_asks_for_keeps_its_place_in_the_frontier(whole: Job, local_web: LocalWeb) -> None:
    """No page links to the front page: its words are scored, by a critic that reads none."""
    a = local_web.origins["a"]
    scores = dict(whole.kept.query("SELECT url, score FROM pages"))
    assert scores[f"{a}/"] == 0.5
    assert scores[f"{a}/dull"] == 0.9
    assert f"{a}/login" not in scores  # a POST is not the crawl's affair


def test_pages_nobody_asked_for_go_to_parse(local_web: LocalWeb, tmp_path: Path) -> None:
    job = focused(local_web, tmp_path / "job", FOCUSCRAWL_FOLLOW=1)
    assert job.returncode == 0, job.stderr
    parsed = {item["url"] for item in job.items if item["kind"] == "parse"}
    c = local_web.origins["c"]
    assert {f"{c}/", *(f"{c}/section-{n}" for n in range(5))} <= parsed
    statuses = dict(job.kept.query("SELECT url, status FROM pages"))
    assert {statuses[url] for url in parsed} == {200}  # no redirect, no error: as ever


def test_the_budget_is_exact_though_somebody_waits_for_more(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    job = focused(local_web, tmp_path / "job", FOCUSCRAWL_BUDGET=7, CLUBS_WAITS=1)
    assert job.returncode == 0, job.stderr
    assert [seq for seq, _ in job.kept.order] == list(range(1, 7))
    asides = job.kept.query("SELECT detail FROM events WHERE kind = 'aside'")
    assert asides == [(f"{local_web.origins['a']}/login",)]  # a form, which is a fetch, too
    assert len([each for each in job.requests if each["path"] != "/robots.txt"]) == 7
    assert job.kept.stop_reasons == ["budget"]
    again = focused(local_web, tmp_path / "job", FOCUSCRAWL_BUDGET=9)
    assert len(again.requests) - sum(r["path"] == "/robots.txt" for r in again.requests) == 2


def test_resumed_it_goes_on_with_its_callbacks(
    whole: Job, local_web: LocalWeb, tmp_path: Path
) -> None:
    folder = tmp_path / "job"
    first = focused(local_web, folder, FOCUSCRAWL_BUDGET=3)
    second = focused(local_web, folder, FOCUSCRAWL_BUDGET=0)
    assert second.returncode == 0, second.stderr
    assert [seq for seq, _ in second.kept.order] == [*range(1, len(second.kept.order) + 1)]
    assert len(set(second.kept.urls)) == len(second.kept.urls)
    pages = ("club", "gone", "parse", "section")  # it logs in again, as it has to
    assert first.given(*pages) | second.given(*pages) == whole.given(*pages)
    assert first.given(*pages) & second.given(*pages) <= second.given("club")


def test_the_instances_of_its_pages_go_to_a_feed(local_web: LocalWeb, tmp_path: Path) -> None:
    feed = tmp_path / "instances.jsonl"
    options = json.dumps({"batch": 1})
    given = {"FOCUSCRAWL_STRATEGY": "apprentice", "FOCUSCRAWL_STRATEGY_OPTIONS": options}
    given |= {"FOCUSCRAWL_FOLLOW": "1", "FOCUSCRAWL_CALLBACK": ""}
    job = focused(local_web, tmp_path / "job", FOCUSCRAWL_INSTANCES=feed, **given)
    assert job.returncode == 0, job.stderr
    instances = [json.loads(line) for line in feed.read_text(encoding="utf-8").splitlines()]
    assert {each["target"] for each in instances} <= set(job.kept.urls)
    models = job.kept.query("SELECT version FROM models")
    assert set() < {(each["model"],) for each in instances} <= set(models)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FOCUSCRAWL_TOPIC": ""}, "FOCUSCRAWL_TOPIC"),
        ({"FOCUSCRAWL_CALLBACK": "parse_all"}, "FOCUSCRAWL_CALLBACK=parse_all"),
        ({"FOCUSCRAWL_TOPICS": "bicycle"}, "unknown setting FOCUSCRAWL_TOPICS"),
        ({"FOCUSCRAWL_INSTANCES": "x.jsonl"}, "the strategy best-first is not trained"),
        ({"FOCUSCRAWL_BACKOFF": "soon"}, "FOCUSCRAWL_BACKOFF must be a number"),
        ({"SCHEDULER": "scrapy.core.scheduler.Scheduler"}, "remove the setting SCHEDULER"),
    ],
)
def test_a_slip_is_one_line_and_nothing_is_written(
    settings: dict[str, str], said: str, local_web: LocalWeb, tmp_path: Path
) -> None:
    job = focused(local_web, tmp_path / "job", LOG_ENABLED=0, **settings)
    assert job.returncode == 2
    (line,) = job.stderr.splitlines()
    assert line.startswith("scrapy crawl members: ")
    assert said in line
    assert not job.kept.folder.exists()


@pytest.mark.parametrize("module", ["clubs.focused", "clubs.bare"])
def test_a_folder_belongs_to_one_spider(module: str, local_web: LocalWeb, tmp_path: Path) -> None:
    first = focused(local_web, tmp_path / "job", FOCUSCRAWL_BUDGET=2)
    assert first.returncode == 0
    command = ["crawl", "lists", "-a", f"site={local_web.origins['forum']}"]
    settings = ["-s", f"FOCUSCRAWL_CRAWL_DIR={first.kept.folder}", "-s", "LOG_ENABLED=0"]
    second = scrapy(module, *command, *settings)
    assert second.returncode == 2
    (line,) = second.stderr.splitlines()
    assert "its spider is members, not lists" in line
    assert len(first.kept.order) == 1


def test_the_spider_focused_does_all_itself(tmp_path: Path, demo: dict[str, str]) -> None:
    """In a project with the add-on, too."""
    given = {**demo, "critic": ROOT / "models" / "demo", "budget": 12}
    settings = {"SPIDER_MODULES": "focuscrawl.spiders", "ITEM_PIPELINES": "{}"}
    done = scrapy("clubs.focused", *words(tmp_path / "crawl", **given, **settings))
    assert done.returncode == 0, done.stderr
    pages = Kept(tmp_path / "crawl").query("SELECT relevance, error FROM pages")
    assert len(pages) == 12
    assert "lost" not in [error for _, error in pages]
    assert max(relevance for relevance, _ in pages) > 0.5


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["shell", "SITE/", "-c", "response.css('title::text').get()"], "Front"),
        (["fetch", "SITE/", "--nolog"], "All about the bicycle: Front"),
        (["fetch", "SITE/", "--nolog", "--spider=members"], "All about the bicycle: Front"),
        (
            ["parse", "SITE/", "--nolog", "--spider=members", "-c", "parse_section"],
            "'kind': 'section'",
        ),
        (["check", "members"], "Ran 0 contracts"),
        (["list"], "members"),
    ],
    ids=lambda value: "-".join(value[:1]) if isinstance(value, list) else "",
)
def test_other_commands_crawl_nothing(
    command: list[str], said: str, local_web: LocalWeb, tmp_path: Path
) -> None:
    command = [part.replace("SITE", local_web.origins["a"]) for part in command]
    before = len(local_web.requests())
    done = scrapy("clubs.focused", *command, "-s", f"FOCUSCRAWL_CRAWL_DIR={tmp_path}/crawl")
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    pages = [each for each in local_web.requests()[before:] if each["path"] != "/robots.txt"]
    assert len(pages) == (command[1:2] == [f"{local_web.origins['a']}/"])
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize("module", ["clubs.settings", "clubs.focused"])
def test_with_our_commands_a_log_shows_no_passwords(module: str, tmp_path: Path) -> None:
    site = ["-a", "site=http://127.0.0.6:9"]  # nobody listens there
    options = ["-s", "RETRY_ENABLED=0", "-s", f"FOCUSCRAWL_CRAWL_DIR={tmp_path / 'crawl'}"]
    feed = ["-O", "ftp://me:hush@127.0.0.6:9/items.jsonl"]
    done = scrapy(module, "crawl", "lists", *site, *options, *feed)
    assert "127.0.0.6:9/items.jsonl" in done.stderr
    assert ("hush" in done.stderr) is (module == "clubs.settings")  # as with Scrapy's own
