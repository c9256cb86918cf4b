"""Spiders that were written without the crawl in mind: what they ask for, no more, and once."""

from __future__ import annotations

import json
import select
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.engine.spider_requests import RequestFile

from .running import Kept, as_options
from .test_addon import scrapy
from .typed import focuscrawl

if TYPE_CHECKING:
    from .conftest import LocalWeb

_ONE_AT_A_TIME = {"CONCURRENT_REQUESTS": 1}


@dataclass(frozen=True)
class Read:
    """What a spider read of the forum, and what the forum's server was asked for."""

    items: list[dict[str, Any]]
    asked: list[str]
    kept: Kept
    stderr: str

    @property
    def urls(self) -> list[str]:
        """The URLs of the items, sorted."""
        return sorted(item["url"] for item in self.items)


def read(
    local_web: LocalWeb,
    folder: Path,
    spider: str,
    module: str = "clubs.focused",
    *,
    failing: bool = False,
    arguments: Mapping[str, str] | None = None,
    **settings: Any,
) -> Read:
    """Have one of the stranger's spiders read the forum; its callbacks may be `failing`."""
    before = len(local_web.requests())
    folder.mkdir(exist_ok=True)
    feed, crawl = folder / "items.jsonl", folder / "crawl"
    if module == "clubs.focused":
        settings = {"FOCUSCRAWL_CRAWL_DIR": crawl, "FOCUSCRAWL_BUDGET": 0, **settings}
    given = {"site": local_web.origins["forum"], **(arguments or {}), **settings}
    done = scrapy(module, "crawl", spider, "-O", str(feed), *as_options(given))
    assert done.returncode == 0, done.stderr
    assert ("Spider error" in done.stderr) is failing
    lines = feed.read_text(encoding="utf-8").splitlines()
    asked = [request["path"] for request in local_web.requests()[before:]]
    pages = [path for path in asked if path != "/robots.txt"]
    return Read([json.loads(line) for line in lines], pages, Kept(crawl), done.stderr)


def critic_of_words(folder: Path) -> dict[str, Any]:
    """Train a critic that counts words, and return the settings with it."""
    focuscrawl("critic", "train", "--words", "bicycle", "--kind", "words", "--out", folder)
    return {"FOCUSCRAWL_CRITIC": folder, "FOCUSCRAWL_TOPIC": "/good"}


@pytest.mark.parametrize(
    ("spider", "concurrency"),
    [("patient", 8), ("topics", 1)],
)
def test_no_page_is_loaded_twice_and_no_item_is_missing(
    spider: str, concurrency: int, local_web: LocalWeb, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
    }
    settings["FOCUSCRAWL_OBEY_META_ROBOTS"] = 0  # as without the add-on
    plain = read(local_web, tmp_path / "plain", spider, "clubs.settings")
    focused = read(local_web, tmp_path / "focused", spider, **settings)
    assert [path for path, times in Counter(focused.asked).items() if times > 1] == []
    assert sorted(focused.asked) == sorted(plain.asked)
    assert focused.urls == plain.urls
    assert len(plain.urls) > 10


@pytest.mark.parametrize("spider", ["lists", "topics"])
def test_nobody_asks_for_what_the_spider_leaves_alone_nor_beyond_the_budget(
    spider: str, local_web: LocalWeb, tmp_path: Path
) -> None:
    job = read(local_web, tmp_path / "job", spider, FOCUSCRAWL_BUDGET=15)
    assert len(job.asked) == len(job.kept.order) == 15
    kinds = {path.strip("/").partition("-")[0].partition("/")[0] for path in job.asked}
    assert kinds <= {"", "list", "topic"}
    assert not any("advert" in path for path in job.asked)  # rel=nofollow
    if spider == "topics":
        assert "'focuscrawl/nofollow'" in job.stderr


def test_all_links_are_followed_where_that_is_wanted(local_web: LocalWeb, tmp_path: Path) -> None:
    job = read(local_web, tmp_path / "job", "topics", FOCUSCRAWL_FOLLOW=1)
    assert "/logout" in job.asked
    assert len(set(job.asked)) == len(job.asked)
    assert {f"/list/{n}" for n in range(1, 11)} <= set(job.asked)
    assert not any("advert" in path for path in job.asked)


def test_links_nobody_asked_for_can_be_allowed_and_denied(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"FOCUSCRAWL_FOLLOW": 1, "FOCUSCRAWL_DENY": "/members/,/logout"}
    job = read(local_web, tmp_path / "job", "topics", **settings)
    assert "/list/10" in job.asked
    assert not [path for path in job.asked if "members" in path or "logout" in path]
    settings["FOCUSCRAWL_ALLOW"] = "/list/1$,/list/2$,/list/3$"
    job = read(local_web, tmp_path / "few", "topics", **settings)
    assert {path for path in job.asked if "list" in path} == {f"/list/{n}" for n in (1, 2, 3)}


@pytest.mark.parametrize(
    ("statuses", "arguments", "settings"),
    [
        (
            [200, 302, 302, 302],
            {
                "asked": "/refreshing,/moved?1,/moved?2,/moved?3",
                "meta": '[{"dont_redirect": true}, {"handle_httpstatus_list": [302]},'
                ' {"handle_httpstatus_all": true},'
                ' {"dont_redirect": true, "handle_httpstatus_all": true}]',
            },
            {},
        ),
        ([200, 302], {"handled": "200,302", "asked": "/refreshing,/moved"}, {}),
        ([200], {"handled": "301"}, {}),
        ([302], {}, {"REDIRECT_ENABLED": 0, "HTTPERROR_ALLOW_ALL": 1}),
    ],
)
def test_redirects_that_a_spider_handles_are_its_own(
    statuses: list[int],
    arguments: dict[str, str],
    settings: dict[str, Any],
    local_web: LocalWeb,
    tmp_path: Path,
) -> None:
    plain, focused = (
        read(local_web, tmp_path / module, "handling", module, arguments=arguments, **settings)
        for module in ("clubs.settings", "clubs.focused")
    )
    assert sorted(item["status"] for item in plain.items) == statuses
    assert sorted(focused.items, key=str) == sorted(plain.items, key=str)
    assert sorted(focused.asked) == sorted(plain.asked)


def test_redirects_lead_on_where_all_links_are_followed(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    handled = {"handled": "302"}
    job = read(local_web, tmp_path, "handling", arguments=handled, FOCUSCRAWL_FOLLOW=1)
    assert [item["status"] for item in job.items] == [302]
    assert job.asked.count("/topic-1") == 1  # no other page links to it


@pytest.mark.parametrize("follow", [0, 1])
def test_limits_of_the_project_bind(follow: int, local_web: LocalWeb, tmp_path: Path) -> None:
    longest = len(local_web.origins["forum"]) + len("/topic-99")
    limits: dict[str, Any] = {"DEPTH_LIMIT": 4, "URLLENGTH_LIMIT": longest}
    job = read(local_web, tmp_path / "job", "lists", FOCUSCRAWL_FOLLOW=follow, **limits)
    depths = [depth for (depth,) in job.kept.query("SELECT depth FROM pages")]
    assert max(depths) == 4
    assert len(job.asked) == len(depths)
    assert max(map(len, job.asked)) <= len("/topic-99")
    assert ("/list/5" in job.asked, "/list/6" in job.asked) == (True, False)


def test_a_site_map_is_read_from_its_best_end(local_web: LocalWeb, tmp_path: Path) -> None:
    """Its URLs are scored by their words, not fetched one after another."""
    settings = {**critic_of_words(tmp_path / "critic"), **_ONE_AT_A_TIME}
    job = read(local_web, tmp_path / "job", "mapped", FOCUSCRAWL_BUDGET=31, **settings)
    kinds = Counter(path.strip("/").partition("-")[0] for path in job.asked)
    assert kinds == {"sitemap.xml": 1, "bicycle": 30}


def test_a_strangers_folder_sends_nothing_through_a_proxy(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    """Its requests for pages that wait, and one for a page that it says was fetched, name one."""
    impatient: dict[str, Any] = {"DOWNLOAD_TIMEOUT": 60, "RETRY_ENABLED": 0, **_ONE_AT_A_TIME}
    begun = read(local_web, tmp_path / "job", "lists", FOCUSCRAWL_BUDGET=3, **impatient)
    theirs = begun.kept.folder / RequestFile.NAME
    lines = [json.loads(line) for line in theirs.read_text(encoding="utf-8").splitlines()]
    fetched = [url for url, request in lines if request is None]
    waiting = {url: request for url, request in lines if request is not None}
    assert fetched
    assert len(waiting) > 1
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        meta = {"proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}"}
        evil = [[url, request | {"meta": meta}] for url, request in waiting.items()]
        evil.append([fetched[0], {"url": fetched[0], "meta": meta}])
        theirs.write_text("".join(f"{json.dumps(line)}\n" for line in evil), encoding="utf-8")
        job = read(local_web, tmp_path / "job", "lists", FOCUSCRAWL_BUDGET=10, **impatient)
        who_has_come, _, _ = select.select([proxy], [], [], 0)
    assert not who_has_come
    assert "a stored request may not set meta key proxy" in job.stderr
    assert len(job.asked) == 7


@pytest.mark.parametrize("reads_words", [False, True])
def test_of_pages_in_a_site_map_that_promise_as_much_the_newest_come_first(
    reads_words: bool, local_web: LocalWeb, tmp_path: Path
) -> None:
    settings: dict[str, Any] = dict(_ONE_AT_A_TIME)
    newest_first = [f"/bicycle-{each}" for each in (3, 5, 1, 7, 2, 6)]
    if reads_words:
        settings |= critic_of_words(tmp_path / "critic")
    job = read(local_web, tmp_path / "job", "dated", **settings)
    # what is off the topic is that, however new it is
    in_order = [*newest_first, "/tax-4"] if reads_words else ["/tax-4", *newest_first]
    assert job.asked == ["/dated.xml", *in_order]


def test_a_callback_that_fails_costs_what_it_would_have_asked_for(
    local_web: LocalWeb, tmp_path: Path
) -> None:
    """Its page is recorded, and what it had asked for until then is fetched."""
    job = read(local_web, tmp_path / "job", "stumbling", failing=True)
    assert [path for path in job.asked if path.startswith("/list")] == ["/list/1", "/list/2"]
    assert len(job.kept.order) == len(job.asked)
    assert job.kept.stop_reasons == ["frontier_empty"]
