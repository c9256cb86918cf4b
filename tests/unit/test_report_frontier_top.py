"""The top of a frontier, as the store has it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from focuscrawl.report.status import open_store
from focuscrawl.report.url_tables import frontier_top

from .shelves import Shelf, at, open_crawl, run

if TYPE_CHECKING:
    from pathlib import Path


def test_start_urls_come_before_links_and_these_by_score(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.page("/", "jazz", "/one")
    shelf.page("/one", "jazz")
    shelf.page("/two", "jazz")
    shelf.page("/low", "nothing", "/two")
    shelf.page("/left", "jazz")
    crawl = open_crawl(tmp_path, shelf, "/", "/low", "/left", strategy="best-first", budget=2)
    run(crawl)
    crawl.close("finished")
    with closing(open_store(tmp_path)) as store:
        found = frontier_top(store)
        assert found[0] == (at("/left"), None)
        scores = [each.score for each in found[1:] if each.score is not None]
        assert scores == sorted(scores, reverse=True)
        assert frontier_top(store, 1) == found[:1]
