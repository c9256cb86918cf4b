"""What waits when a crawl is judged anew."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.rejudging import Rejudging
from focuscrawl.page.metadata import Languages
from focuscrawl.store import CrawlStore
from focuscrawl.strategies import StrategyContext, make_strategy

from .shelves import Shelf, WordCritic, at, open_crawl, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from focuscrawl.critic.protocol import Judgement
    from focuscrawl.page import PageView


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


class Choosy(WordCritic):
    """Fails on a page that speaks of the fifth."""

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        if any("fifth" in page.tokens for page in pages):
            raise IndexError("no idea")
        return super().judge(pages)


@pytest.mark.parametrize("strategy", ["apprentice", "best-first"])
def test_a_page_that_the_critic_fails_on_keeps_its_judgement(
    tmp_path: Path, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    web = Shelf()
    for i in range(20):
        web.page(f"/jazz{i}", "jazz the fifth" if i == 5 else "jazz", f"/jazz{i + 1}")
    crawl = open_crawl(tmp_path, web, "/jazz0", strategy=strategy)
    run(crawl, 10)
    crawl.close("interrupted")
    critic = Choosy()
    with closing(CrawlStore.open(CrawlFolder(tmp_path).store_path)) as store:
        again = Rejudging(
            store,
            [web],
            critic=critic,
            strategy=make_strategy(strategy, StrategyContext(critic, 0, web, ("/",)), {}),
            languages=Languages(),
        ).run()
    assert (len(again.pages), again.unread, again.moved) == (9, 1, (0, 0))
    assert f"{at('/jazz5')} keeps what it had" in caplog.text
