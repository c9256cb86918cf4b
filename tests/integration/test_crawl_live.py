"""A live crawl of servers on several loopback addresses, recorded and replayed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from fuzz.raw_server import Answer, RawServer

from focuscrawl.webs import RecordedWeb

from .impatience import impatient
from .running import BICYCLES, QUICK, Run, crawl
from .typed import focuscrawl

if TYPE_CHECKING:
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


def test_the_recording_says_which_bodies_are_incomplete_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
    text = b"<p>bicycle <a href=/lost>x</a> <a href=/image>y</a> <a href=/chunks>z</a>"
    answers = {
        "/robots.txt": head % (b"text/plain", 800_000, b"# much\n" * 114_286),
        "/": head % (b"text/html", len(text), text),
        "/lost": head % (b"text/html", 5_000, b"<p>" + b"A race of bicycles. " * 20),
        "/chunks": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n<p>bi\r\n9\r\ncyc",
        "/image": head % (b"image/png", 100_000, b"\0" * 100_000),
    }
    with RawServer(lambda _, path, __: Answer(answers[path]), 1) as server:
        seeds, lost = f"{server.origins[0]}/", {"DOWNLOAD_FAIL_ON_DATALOSS": 0}
        settings = SETTINGS | lost | {"DOWNLOAD_MAXSIZE": 1_000_000, "ROBOTSTXT_OBEY": 1}
        run = crawl(tmp_path / "crawl", **settings, **BICYCLES, seeds=seeds, budget=9)
    recorded = RecordedWeb(run.kept.folder / "pages.warc.gz")
    found = {url.partition(seeds)[2]: recorded.fetch(url) for url in recorded.urls()}
    assert {name: answer and answer.truncated for name, answer in found.items()} == {
        "": "",
        "robots.txt": "length",
        "lost": "disconnect",
        "chunks": "disconnect",
        "image": "unspecified",
    }
    again = {"web": recorded.path, "FOCUSCRAWL_WARC": 1}
    replay = crawl(tmp_path / "again", **QUICK, **BICYCLES, **again, seeds=seeds, budget=9)
    copy = RecordedWeb(replay.kept.folder / "pages.warc.gz")
    for url in (f"{seeds}lost", f"{seeds}chunks"):
        answer = copy.fetch(url)
        assert answer is not None
        assert answer.truncated == "disconnect"
    out = tmp_path / "c.warc.gz"
    focuscrawl("collect", run.kept.folder, "--out", out, "--min-relevance", 0)
    exported = RecordedWeb(out).fetch(f"{seeds}lost")
    assert exported is not None
    assert exported.truncated == "disconnect"
