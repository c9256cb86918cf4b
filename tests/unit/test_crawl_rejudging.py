"""What waits when a crawl is judged anew."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.crawl.rejudging import Rejudging
from focuscrawl.page.language import Languages
from focuscrawl.store import CrawlStore
from focuscrawl.strategies import StrategyContext, make_strategy

from .shelves import Shelf, WordCritic, at, open_crawl, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("strategy", ["apprentice", "best-first"])
def test_what_no_page_links_to_goes_on_waiting(tmp_path: Path, strategy: str) -> None:
    web = Shelf()
    for i in range(20):
        web.page(f"/jazz{i}", "jazz", f"/jazz{i + 1}")
    crawl = open_crawl(tmp_path, web, "/jazz0", strategy=strategy)
    asked = crawl.add_asked(at("/asked"), 0, 0.01)
    run(crawl, 10)
    crawl.close("interrupted")
    critic = WordCritic()
    with closing(CrawlStore.open(CrawlFolder(tmp_path).store_path)) as store:
        again = Rejudging(
            store,
            [web],
            critic=critic,
            strategy=make_strategy(strategy, StrategyContext(critic, 0, web, ("/",)), {}),
            languages=Languages(),
        ).run()
    assert len(again.pages) == 10
    assert asked not in {url for url, _, _ in again.urls}
