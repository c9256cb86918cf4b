"""What `focuscrawl why` says of the URLs of small crawls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from focuscrawl.errors import UserError
from focuscrawl.report.why import Explanation

from .small_crawl import Building, bees, being_written


@pytest.fixture
def building(tmp_path: Path) -> Iterator[Building]:
    with being_written(tmp_path / "crawl") as crawl:
        yield crawl


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://hive.example/honey", "fetch 2, relevance 0.700: Honey"),
        ("http://hive.example/copy", "a duplicate of http://hive.example/honey"),
        ("http://road.example/moved", "relevance 0.000: redirect"),
        ("http://road.example/slow", "TimeoutError: 30 s are over"),
        ("http://hive.example/best", "rank 1 of 3"),
        ("http://hive.example/wax", "rank 2 of 3, the same score as 1 other URL"),
        ("http://hive.example/h", "excluded: the crawl will not fetch the URL"),
        ("http://hive.example/secret", "excluded: Forbidden by robots.txt"),
        ("http://hive.example/login", "follows no link to the URL"),
    ],
)
def test_why_says_the_state(building: Building, url: str, words: str) -> None:
    assert words in Explanation.of(bees(building), url).state


def test_why_shows_links_and_the_path_from_the_seed(building: Building) -> None:
    found = Explanation.of(bees(building), "http://hive.example/wax")
    assert [(link["source"], link["score"]) for link in found.links] == [
        ("http://hive.example/honey", 0.4),
        ("http://hive.example/", None),
    ]
    assert [(step["seq"], step["url"]) for step in found.path] == [
        (1, "http://hive.example/"),
        (2, "http://hive.example/honey"),
        (None, "http://hive.example/wax"),
    ]
    assert found.links_before is None
    text = found.text()
    assert "2 links to the URL:" in text
    assert "0.6" in text.splitlines()[2]


def test_why_puts_links_known_at_the_fetch_first(building: Building) -> None:
    found = Explanation.of(bees(building), "http://hive.example/honey")
    assert [link["score"] for link in found.links] == [0.9, 0.99]
    assert (found.links_found, found.links_before) == (2, 1)
    assert "score   0.5 when it left the frontier\n" in found.text()
    assert "\x1b" not in found.text()


def test_why_says_that_better_hosts_were_busy(building: Building) -> None:
    building.fetch("http://hive.example/", 0.9)
    for name in ("a.example/", "b.example/", "late.example/", "road.example/own"):
        building.url(f"http://{name}", 1, "http://hive.example/", 0.7)
    building.url("http://a.example/less", 1, "http://hive.example/", 0.3)
    building.fetch("http://road.example/", 0.1)
    building.url("http://found-later.example/", 1, "http://road.example/", 0.7)
    store = building.written()
    busy = Explanation.of(store, "http://road.example/").text()
    assert "3 URLs of busy hosts had better scores (a.example, b.example, late.example)" in busy
    assert "better scores" not in Explanation.of(store, "http://hive.example/").text()
    assert "better scores" not in Explanation.of(store, "http://a.example/").text()


def test_why_of_a_replay_knows_no_busy_hosts(tmp_path: Path) -> None:
    replay = Building(tmp_path / "replay", web="0" * 64, web_name="demo")
    replay.fetch("http://hive.example/", 0.9)
    replay.url("http://a.example/", 1, "http://hive.example/", 0.7)
    replay.fetch("http://road.example/", 0.1)
    store = replay.written()
    assert "busy" not in Explanation.of(store, "http://road.example/").text()
    with pytest.raises(UserError, match=r"are dropped: demo lacks the page"):
        Explanation.of(store, "http://elsewhere.example/")
    store.close()


def test_why_of_a_host_that_was_left_alone(building: Building) -> None:
    building.event("left", "hive.example: HTTP 429")
    best = Explanation.of(bees(building), "http://hive.example/best").state
    assert best.endswith("; host skipped: HTTP 429")


def test_why_shortens_long_paths_and_many_links(building: Building) -> None:
    urls = [f"http://deep.example/{n}" for n in range(40)]
    for n, url in enumerate(urls):
        building.url(url, n, urls[n - 1] if n else None)
        building.fetch(url, 0.5)
    for n in range(25):
        building.link(urls[n], urls[-1], n / 100)
    found = Explanation.of(building.written(), urls[-1])
    assert len(found.path) == 40
    assert [link["score"] for link in found.links] == [n / 100 for n in range(24, 14, -1)]
    text = found.text()
    assert "25 links to the URL" in text
    assert "28 more" in text
    assert len(text.splitlines()) < 35


@pytest.mark.parametrize("url", ["https://hive.example/honey", "hive.example/honey#top"])
def test_why_takes_http_and_https_as_one(building: Building, url: str) -> None:
    assert Explanation.of(bees(building), url).url == "http://hive.example/honey"


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://hive.example/honey/", "did you mean http://hive.example/honey?"),
        ("https://www.hive.example/honey", "did you mean http://hive.example/honey?"),
        ("http://hive.example/honey?sort=1", "did you mean http://hive.example/honey?"),
        ("http://hive.example/wax.pdf", "are dropped: the file extension is not of HTML"),
        (f"http://hive.example/{'x' * 3000}", "are dropped: the URL is longer than 2,083"),
        ("http://hive.example/nothing", "or dropped the link because of nofollow"),
        ("http://hive.example/nothing", "the crawl knows 9 URLs of hive.example"),
        ("http://other.example/", "the crawl knows no URL of other.example"),
        ("mailto://bee@hive.example", "no http"),
    ],
)
def test_why_helps_to_find_the_url(building: Building, url: str, hint: str) -> None:
    with pytest.raises(UserError) as raised:
        Explanation.of(bees(building), url)
    assert hint in str(raised.value)
    assert "\n" not in str(raised.value)
