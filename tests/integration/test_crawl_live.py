"""A live crawl of servers on several loopback addresses, recorded and replayed."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from .impatience import impatient
from .running import BICYCLES, QUICK, Run, crawl

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import LocalWeb

DELAY = 0.2
SETTINGS = QUICK | {
    "DOWNLOAD_DELAY": DELAY,
    "DOWNLOAD_DELAY_JITTER": 0,
    "RETRY_TIMES": 1,
    "DOWNLOAD_MAXSIZE": 100_000,
    "FOCUSCRAWL_WARC": 1,
}


@pytest.fixture(scope="module")
def live(local_web: LocalWeb, tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = SETTINGS | impatient(1, f"{local_web.origins['slow']}/", only=True)
    folder = tmp_path_factory.mktemp("live") / "crawl"
    seeds = f"{local_web.origins['a']}/"
    return crawl(folder, **settings, **BICYCLES, seeds=seeds, budget=1000)


@pytest.fixture(scope="module")
def pages(live: Run, local_web: LocalWeb) -> dict[str, dict[str, Any]]:
    """Rows of the view `pages` by site and path: ``a/start``."""
    return {_short(local_web, row["url"]): row for row in live.kept.rows("SELECT * FROM pages")}


def _short(local_web: LocalWeb, url: str) -> str:
    for name, origin in local_web.origins.items():
        url = url.replace(origin, name)
    return url


def test_a_crawl_of_everything_ends_with_an_empty_frontier(
    live: Run, pages: dict[str, dict[str, Any]]
) -> None:
    assert live.kept.stop_reasons == ["frontier_empty"]
    assert [seq for seq, _ in live.kept.order] == list(range(1, len(pages) + 1))
    assert live.kept.query("SELECT count(*) FROM frontier WHERE state = 'queued'") == [(0,)]
    assert "Traceback" not in live.stderr


def test_every_hop_of_a_redirect_is_a_fetch_of_no_relevance(
    pages: dict[str, dict[str, Any]], local_web: LocalWeb
) -> None:
    hops = [pages[f"a/{name}"] for name in ("start", "middle", "end")]
    assert [hop["status"] for hop in hops] == [301, 302, 200]
    assert [hop["relevance"] for hop in hops] == [0.0, 0.0, 0.9]
    assert [_short(local_web, hop["referrer"]) for hop in hops] == ["a/", "a/start", "a/middle"]
    assert [hop["depth"] for hop in hops] == [1, 1, 1]


@pytest.mark.parametrize(
    ("page", "status", "error"),
    [
        ("a/missing", 404, None),
        ("a/broken", 500, None),
        ("a/download", 200, "no HTML"),
        ("a/huge", 0, "larger than download max size"),
        ("slow/", 0, "took longer than"),
        ("dead/", 0, "refused"),
    ],
)
def test_what_is_no_page_is_a_fetch_of_no_relevance(
    pages: dict[str, dict[str, Any]], page: str, status: int, error: str | None
) -> None:
    row = pages[page]
    assert (row["status"], row["relevance"]) == (status, 0.0)
    assert row["error"] is None if error is None else error in row["error"]


def test_large_bodies_are_broken_off(
    pages: dict[str, dict[str, Any]], local_web: LocalWeb
) -> None:
    sent = {entry["path"]: entry["sent"] for entry in local_web.requests()}
    for name in ("/download", "/huge"):
        assert sent[name] < 25_000_000  # of 50; what the sockets hold was sent before
        assert pages[f"a{name}"]["bytes"] < 1_000_000


def test_a_retry_that_succeeds_is_one_fetch(
    pages: dict[str, dict[str, Any]], local_web: LocalWeb
) -> None:
    asked = [entry["path"] for entry in local_web.requests() if entry["site"] == "a"]
    assert asked.count("/flaky") == 2
    assert pages["a/flaky"]["status"] == 200
    assert asked.count("/broken") == 2
    assert asked.count("/huge") == 1


def test_robots_txt_is_asked_first_and_obeyed(live: Run, local_web: LocalWeb) -> None:
    requests = sorted(local_web.requests(), key=lambda entry: float(entry["began"]))
    for site in ("a", "b", "c", "slow"):
        paths = [entry["path"] for entry in requests if entry["site"] == site]
        assert paths[0] == "/robots.txt"
        assert paths.count("/robots.txt") == 1
        assert "/private/diary" not in paths
    forbidden = f"{local_web.origins['a']}/private/diary"
    state = f"SELECT state FROM frontier WHERE url = '{forbidden}'"
    assert live.kept.query(state) == [("excluded",)]
    assert forbidden not in live.kept.urls
    why = live.kept.query("SELECT detail FROM events WHERE kind = 'excluded'")
    assert why == [(f"{forbidden}: Forbidden by robots.txt",)]


def test_the_user_agent_says_who_crawls(live: Run, local_web: LocalWeb) -> None:
    agents = {entry["agent"] for entry in local_web.requests()}
    assert len(agents) == 1
    assert agents.pop().startswith("focuscrawl/")


def test_a_host_is_asked_one_thing_at_a_time_after_the_delay(
    live: Run, local_web: LocalWeb
) -> None:
    for site in ("a", "b", "c"):
        own = [
            entry
            for entry in local_web.requests()
            if entry["site"] == site and entry["path"] != "/robots.txt"
        ]
        own.sort(key=lambda entry: float(entry["began"]))
        assert all(after["began"] >= before["ended"] for before, after in pairwise(own))
        # the median, because a request may be held up on its way and its successor not
        gaps = [after["began"] - before["began"] for before, after in pairwise(own)]
        assert median(gaps) > 0.9 * DELAY


def test_hosts_are_crawled_side_by_side(live: Run, local_web: LocalWeb) -> None:
    spans: dict[str, list[tuple[float, float]]] = {"b": [], "c": []}
    for entry in local_web.requests():
        if entry["site"] in spans:
            spans[entry["site"]].append((entry["began"], entry["ended"]))
    overlaps = [(b, c) for b in spans["b"] for c in spans["c"] if b[0] < c[1] and c[0] < b[1]]
    assert overlaps


def test_the_recording_replays_as_the_same_crawl(
    live: Run, local_web: LocalWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    asked = len(local_web.requests())
    seeds = f"{local_web.origins['a']}/"
    web = live.kept.folder / "pages.warc.gz"
    replay = crawl(tmp_path / "replay", **BICYCLES, web=web, seeds=seeds, budget=1000)
    assert len(local_web.requests()) == asked
    answered = "SELECT url, status, relevance, topic, bytes FROM pages WHERE status ORDER BY url"
    assert replay.kept.query(answered) == live.kept.query(answered)
    assert replay.kept.stop_reasons == ["frontier_empty"]
