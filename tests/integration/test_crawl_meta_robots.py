"""What pages ask of robots and browsers in their heads, in links and in X-Robots-Tag."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .running import BICYCLES, QUICK, Kept, crawl

if TYPE_CHECKING:
    from .conftest import LocalWeb

CRITIC = BICYCLES | {"strategy": "breadth-first"}
PLAIN = {"/", "/stub", "/slide", "/dead-end", "/closed", "/tagged", "/unlisted", "/addressed"}
ASKED_NOT_TO = {"/advert", "/comment", "/below-dead-end", "/below-closed", "/below-addressed"}
FOLLOWED = {"/below-tagged", "/below-unlisted", "/next-slide"}


def explore(local_web: LocalWeb, folder: Path, **given: object) -> Kept:
    given = {**QUICK, "FOCUSCRAWL_WARC": 1, **CRITIC, **given}
    seeds = f"{local_web.origins['asks']}/"
    run = crawl(folder, "-O", f"{folder}.csv", **given, seeds=seeds, budget=100)
    assert run.kept.stop_reasons == ["frontier_empty"]
    return run.kept


@pytest.fixture(scope="module")
def live(local_web: LocalWeb, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return explore(local_web, tmp_path_factory.mktemp("asks") / "crawl")


@pytest.fixture(scope="module")
def heedless(local_web: LocalWeb, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    off = {"FOCUSCRAWL_OBEY_META_ROBOTS": 0, "METAREFRESH_ENABLED": 0}
    return explore(local_web, tmp_path_factory.mktemp("asks") / "crawl", **off)


def paths(kept: Kept, web: LocalWeb) -> list[str]:
    return [url.removeprefix(web.origins["asks"]) for url in kept.urls]


def test_a_live_crawl_follows_what_it_may(live: Kept, local_web: LocalWeb) -> None:
    assert set(paths(live, local_web)) == PLAIN | FOLLOWED | {"/behind"}
    (front,) = live.query("SELECT links, dropped FROM pages WHERE seq = 1")
    assert front == (9, 2)
    dead_ends = live.query("SELECT links, dropped FROM pages WHERE url LIKE '%/dead-end'")
    assert dead_ends == [(1, 1)]


def test_a_page_that_refreshes_at_once_is_a_redirect(live: Kept, local_web: LocalWeb) -> None:
    origin, order = local_web.origins["asks"], paths(live, local_web)
    assert order[order.index("/stub") + 1] == "/behind"
    row = "SELECT status, relevance, error, links, dropped FROM pages WHERE url LIKE '%/stub'"
    assert live.query(row) == [(200, 0.0, f"meta refresh: {origin}/behind", 1, 0)]
    referrer = "SELECT referrer, depth, relevance FROM pages WHERE url LIKE '%/behind'"
    assert live.query(referrer) == [(f"{origin}/stub", 1, 0.9)]
    slide = "SELECT relevance, error FROM pages WHERE url LIKE '%/slide'"
    assert live.query(slide) == [(0.9, None)]


def test_a_page_that_asks_not_to_be_indexed_is_judged_and_marked_and_no_item(
    live: Kept, local_web: LocalWeb
) -> None:
    (page,) = live.query("SELECT seq, relevance FROM pages WHERE url LIKE '%/unlisted'")
    assert page[1] == 0.9
    events = live.query("SELECT seq, detail FROM events WHERE kind = 'noindex'")
    assert events == [(page[0], "Not to be listed")]
    with live.folder.with_name("crawl.csv").open(encoding="utf-8", newline="") as file:
        items = [row["url"] for row in csv.DictReader(file)]
    unlisted = f"{local_web.origins['asks']}/unlisted"
    assert items == [url for url in live.urls if url != unlisted]


def test_settings_let_a_crawl_do_as_it_likes(heedless: Kept, local_web: LocalWeb) -> None:
    # without redirects the stub is a page, and its canonical URL is one of its links
    expected = PLAIN | FOLLOWED | ASKED_NOT_TO | {"/by-hand", "/behind"}
    assert set(paths(heedless, local_web)) == expected
    assert heedless.query("SELECT count(*) FROM events WHERE kind = 'noindex'") == [(0,)]


@pytest.mark.parametrize("obey", [False, True])
def test_replays_obey_only_where_they_are_told_to(
    live: Kept,
    heedless: Kept,
    local_web: LocalWeb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    obey: bool,
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    on = {"FOCUSCRAWL_OBEY_META_ROBOTS": 1, "FOCUSCRAWL_META_REFRESH": 5} if obey else {}
    web = (live if obey else heedless).folder / "pages.warc.gz"
    replay = explore(local_web, tmp_path / "crawl", **on, web=web)
    assert set(replay.urls) == set((live if obey else heedless).urls)
