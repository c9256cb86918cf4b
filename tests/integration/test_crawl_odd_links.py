"""Links and redirects that are written in unusual ways, as a server receives the requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .running import BICYCLES, QUICK, Kept, crawl

if TYPE_CHECKING:
    from .conftest import LocalWeb


@pytest.fixture(scope="module")
def live(local_web: LocalWeb, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    given = {**QUICK, "FOCUSCRAWL_WARC": 1, **BICYCLES, "strategy": "breadth-first"}
    seeds = f"{local_web.origins['odd links']}/"
    run = crawl(tmp_path_factory.mktemp("odd") / "crawl", **given, seeds=seeds, budget=100)
    assert run.kept.stop_reasons == ["frontier_empty"]
    return run.kept


def requested(web: LocalWeb) -> set[str]:
    return {each["path"] for each in web.requests() if each["site"] == "odd links"}


def paths(kept: Kept, web: LocalWeb) -> set[str]:
    return {url.removeprefix(web.origins["odd links"]) for url in kept.urls}


def test_the_server_receives_queries_in_the_encoding_of_the_page(
    live: Kept, local_web: LocalWeb
) -> None:
    path = "/%D0%BF%D0%BE%D0%B8%D1%81%D0%BA?q=%E2%E5%EB%EE%F1%E8%EF%E5%E4"
    assert path in paths(live, local_web)
    assert path in requested(local_web)


def test_raw_bytes_of_a_redirect_stay_in_the_request(live: Kept, local_web: LocalWeb) -> None:
    path = "/caf%E9?q=%E2%E5%EB%EE"
    assert path in paths(live, local_web)
    assert path in requested(local_web)


def test_other_links_than_anchors_are_followed(live: Kept, local_web: LocalWeb) -> None:
    found = paths(live, local_web)
    assert {"/frame", "/svg", "/form?page=2", "/later", "/next", "/location.html"} <= found
    assert {"/after-10", "/at-once"} <= found
    others = {"/login", "/search", "/search?q=", "/style.css", "/api"}
    assert not {path for path in found if path in others or path.startswith("/base/")}


def test_a_refresh_in_a_header_field_is_a_redirect(live: Kept, local_web: LocalWeb) -> None:
    row = "SELECT relevance, error FROM pages WHERE url LIKE '%/{}'"
    target = f"{local_web.origins['odd links']}/at-once"
    assert live.query(row.format("hurrying")) == [(0.0, f"meta refresh: {target}")]
    assert live.query(row.format("waiting")) == [(0.9, None)]


def test_a_replay_fetches_the_same_pages(live: Kept, local_web: LocalWeb, tmp_path: Path) -> None:
    given = {**BICYCLES, "strategy": "breadth-first", "web": live.folder / "pages.warc.gz"}
    given["FOCUSCRAWL_META_REFRESH"] = 10  # replays have no such redirects by default
    seeds = f"{local_web.origins['odd links']}/"
    replay = crawl(tmp_path / "crawl", **given, seeds=seeds, budget=100).kept
    assert paths(replay, local_web) == paths(live, local_web)
