"""Hosts that are busy, dead, or say in robots.txt what nobody can make sense of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import default_settings

from .badweb import BadWeb, Measured, explore, good_pages

BUSY = ("busy-seconds", "busy-date", "busy-unsaid", "busy-nonsense")
FAILING = ("busy-for-a-day", "busy-for-ever")
ROBOTS = ("robots-huge", "robots-endless", "robots-wrong", "robots-page", "robots-loop")
NAMES: dict[str, list[list[str]]] = {"nowhere.example": [[]]}


@pytest.fixture(scope="module")
def hosts(bad_web: BadWeb, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A crawl of busy hosts, of hosts with a strange robots.txt, and of a good site."""
    folder = tmp_path_factory.mktemp("hosts") / "crawl"
    seeds = bad_web.seeds(*BUSY, *FAILING, *ROBOTS, "robots-forbids", "robots-waiting", "good")
    more = ",".join(f"http://{name}/{number}" for name in NAMES for number in range(9))
    return explore(
        folder,
        f"{seeds},{more}",
        RETRY_TIMES=2,
        FOCUSCRAWL_HOST_FAILURES=5,
        TWISTED_DNS_RESOLVER="server.names.Names",
        TEST_NAMES=json.dumps(NAMES),
    )


def _asked(web: BadWeb, case: str) -> list[dict[str, Any]]:
    asked = [each for each in web.requests() if each["case"] == case and each["path"] == "/"]
    return sorted(asked, key=lambda each: float(each["began"]))


def test_a_busy_host_is_asked_again_but_not_before_it_said(
    hosts: Measured, bad_web: BadWeb
) -> None:
    """Waits double where a host does not say."""
    pages = hosts.pages(bad_web)
    for case in BUSY:
        row = pages[f"{case}/"]
        assert (row["status"], row["relevance"]) == (200, 0.9), case
    for case, seconds in (("busy-seconds", 2.0), ("busy-date", 1.9)):
        first, second = _asked(bad_web, case)
        assert second["began"] - first["ended"] >= seconds
    first, second, third = _asked(bad_web, "busy-unsaid")
    assert second["began"] - first["ended"] >= 0.1
    assert third["began"] - second["ended"] >= 0.2


def test_a_host_that_wants_a_day_gets_it(hosts: Measured, bad_web: BadWeb) -> None:
    assert len(bad_web.paths("busy-for-a-day")) == 3  # robots.txt, the front page, one more
    host = bad_web.origins["busy-for-a-day"].removeprefix("http://")
    queued = f"SELECT count(*) FROM frontier WHERE host = '{host}' AND state = 'queued'"
    assert hosts.kept.query(queued) == [(30,)]


def test_a_host_that_goes_on_failing_is_left_alone(hosts: Measured, bad_web: BadWeb) -> None:
    assert len(bad_web.paths("busy-for-ever")) == 2 + 5
    rows = [row for row in hosts.pages(bad_web).values() if "nowhere.example" in row["url"]]
    assert [row["error"].partition(":")[0] for row in rows] == ["host not found"]


def test_a_host_that_is_left_alone_has_one_line(hosts: Measured, bad_web: BadWeb) -> None:
    """And none for every URL that could not be had."""
    logged = [line for line in hosts.stderr.splitlines() if " INFO " in line]
    dead = [line for line in logged if "nowhere.example" in line and "Crawling" not in line]
    assert len(dead) == 1
    assert "Skipping host nowhere.example: host not found" in dead[0]
    if hasattr(default_settings, "RETRY_GIVE_UP_LOG_LEVEL"):  # not in the oldest Scrapy
        assert "Gave up retrying" not in hosts.stderr


def test_the_end_says_which_hosts_are_left_and_why(hosts: Measured, bad_web: BadWeb) -> None:
    assert hosts.returncode == 0
    assert hosts.kept.stop_reasons == ["hosts_unavailable"]
    assert "all queued URLs are on skipped hosts" in hosts.summary("stopped")
    left = dict(
        detail.split(": ", 1)
        for (detail,) in hosts.kept.query("SELECT detail FROM events WHERE kind = 'left'")
    )
    day, ever = (bad_web.origins[case].removeprefix("http://") for case in FAILING)
    assert left == {
        day: "HTTP 429, asks for 86,400 s",
        ever: "HTTP 503",
        "nowhere.example": "host not found",
    }
    assert hosts.summary("skipped").startswith("3 hosts: ")


def test_the_crawl_goes_on_meanwhile(hosts: Measured, bad_web: BadWeb) -> None:
    assert good_pages(hosts, bad_web) == 9
    assert "Traceback" not in hosts.stderr


def test_robots_txt_is_obeyed_as_far_as_it_can_be_read(hosts: Measured, bad_web: BadWeb) -> None:
    """A host that forbids all is asked for nothing."""
    for case in ROBOTS:
        paths = bad_web.paths(case)
        assert {"/", "/a", "/b"} <= set(paths), case
        assert ("/private/diary" in paths) == (case in ("robots-page", "robots-loop")), case
    assert bad_web.paths("robots-forbids") == ["/robots.txt"]
    assert "robots-forbids/" not in hosts.pages(bad_web)


def test_no_more_of_robots_txt_is_taken_than_is_read(hosts: Measured, bad_web: BadWeb) -> None:
    sent = {e["case"]: e["sent"] for e in bad_web.requests() if e["path"] == "/robots.txt"}
    for case in ("robots-huge", "robots-endless"):
        assert sent[case] < 25_000_000  # what the sockets hold was sent before
    assert hosts.peak < 250_000_000


def test_a_resumed_crawl_tries_again(hosts: Measured, bad_web: BadWeb) -> None:
    asked = len(bad_web.paths("busy-for-a-day"))
    good = bad_web.seeds("good")
    again = explore(hosts.kept.folder, good, weighed=False, FOCUSCRAWL_HOST_FAILURES=1)
    assert again.kept.stop_reasons == ["hosts_unavailable"] * 2
    assert len(bad_web.paths("busy-for-a-day")) == asked + 2  # robots.txt, one page
    assert again.summary("skipped").startswith("3 hosts: ")


@pytest.mark.parametrize("resolver", ["CachingThreadedResolver", "CachingHostnameResolver"])
def test_a_name_that_is_none_is_not_found(bad_web: BadWeb, tmp_path: Path, resolver: str) -> None:
    """Resolvers that are asked for such a name say so, or fail, or never answer."""
    names = ("a..b", ".a", "a.b..", f"{'a' * 64}.example")
    wrong = [f"{scheme}://{name}/" for name in names for scheme in ("http", "https")]
    seeds = f"{','.join(wrong)},{bad_web.seeds('good')}"
    given = {"TWISTED_DNS_RESOLVER": f"scrapy.resolver.{resolver}"}
    run = explore(tmp_path / "crawl", seeds, weighed=False, **given)
    assert run.returncode == 0
    assert "Traceback" not in run.stderr
    pages = run.pages(bad_web)
    assert {pages[url]["error"].partition(":")[0] for url in wrong} == {"host not found"}
    assert good_pages(run, bad_web) == 9
