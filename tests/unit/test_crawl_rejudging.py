"""What waits when a crawl is judged anew."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.rejudging import Rejudging
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.store import CrawlStore
from focuscrawl.strategies import StrategyContext, make_strategy

from .shelves import Shelf, WordCritic, at, open_crawl, run

if TYPE_CHECKING:
    from focuscrawl.crawl.rejudging import RejudgedCrawl
    from focuscrawl.critic.protocol import Judgement
    from focuscrawl.page import PageView


class Choosy(WordCritic):
    """Fails on a page that speaks of the fifth."""

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        if any("fifth" in page.tokens for page in pages):
            raise IndexError("no idea")
        return super().judge(pages)


def rejudged(folder: Path, strategy: str, critic: WordCritic) -> tuple[RejudgedCrawl, int]:
    """Crawl ten pages of a chain, judge them anew; return that and a URL nobody links to."""
    web = Shelf()
    for i in range(20):
        web.page(f"/jazz{i}", "jazz the fifth" if i == 5 else "jazz", f"/jazz{i + 1}")
    crawl = open_crawl(folder, web, "/jazz0", strategy=strategy)
    asked = crawl.add_requested(at("/asked"), 0, 0.01)
    run(crawl, 10)
    crawl.close("interrupted")
    again = make_strategy(strategy, StrategyContext(critic, 0, web, ("/",)), {})
    with closing(CrawlStore.open(CrawlFolder(folder).store_path)) as store:
        found = Rejudging(
            store, [web], critic=critic, strategy=again, languages=LanguageFilter()
        ).run()
    return found, asked


@pytest.mark.parametrize("strategy", ["apprentice", "best-first"])
def test_what_no_page_links_to_goes_on_waiting(tmp_path: Path, strategy: str) -> None:
    found, asked = rejudged(tmp_path, strategy, WordCritic())
    assert len(found.pages) == 10
    assert asked not in {url for url, _, _ in found.urls}


@pytest.mark.parametrize("strategy", ["apprentice", "best-first"])
def test_a_page_that_the_critic_fails_on_keeps_its_judgement(
    tmp_path: Path, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    found, _ = rejudged(tmp_path, strategy, Choosy())
    assert (len(found.pages), found.unread, found.moved) == (9, 1, (0, 0))
    assert f"{at('/jazz5')} keeps its judgement" in caplog.text
