"""Top hubs fetched again within one crawl: their new links enter, their pages stay one row."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from longer import long

from focuscrawl.crawl import CrawlConfig, Download
from focuscrawl.errors import UserError
from focuscrawl.report.why import explain_score
from focuscrawl.store import CrawlStore
from focuscrawl.store.history import History
from focuscrawl.webs.synthetic import SyntheticWeb

from .shelves import exclude
from .test_crawl_distilling import BUDGET, EVENTS, EVERY, TOPIC, crawl_on, kept

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl, Fetch

AGE = 12  # fetches
REVISITS = (
    "SELECT seq, url, status, relevance, bytes, links, error FROM revisits ORDER BY seq, url"
)
TOLD = "SELECT seq, detail FROM events WHERE kind = 'revisited' ORDER BY id"


@pytest.fixture(scope="module")
def pages() -> list[str]:
    """URLs of the web that is crawled."""
    return [*SyntheticWeb(0.1).urls()]


def new_links(url: str, pages: list[str]) -> bytes:
    """What a page has gained: three links, by its URL."""
    at = int.from_bytes(blake2b(url.encode(), digest_size=4).digest())
    chosen = [pages[(at + 31 * i) % len(pages)] for i in range(3)]
    items = "".join(f"<li>jazz and more <a href={each}>new</a>" for each in chosen)
    return f"<ul>{items}</ul>".encode()


def growing(folder: Path, budget: int, strategy: str, pages: list[str]) -> None:
    """Crawl a web whose pages have gained links when they are fetched again."""
    crawl = crawl_on(
        folder, budget, strategy, grown=lambda url: new_links(url, pages), revisit_hubs=AGE
    )
    assert crawl.budget_spent == budget
    crawl.close("budget")


@pytest.fixture(scope="module")
def grown(pages: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a whole crawl by a strategy, which is made once."""

    @cache
    def folder_of(strategy: str) -> Path:
        folder = tmp_path_factory.mktemp("grown")
        growing(folder, BUDGET, strategy, pages)
        return folder

    return folder_of


@pytest.mark.parametrize(
    "strategy", ["best-first", "apprentice", *long("pagerank", "intelligent", "fish-search")]
)
def test_resumes_exactly(
    tmp_path: Path, pages: list[str], grown: Callable[[str], Path], strategy: str
) -> None:
    whole = kept(grown(strategy), EVENTS, REVISITS, TOLD)
    assert sum(links for *_, links, _ in whole[-2]) > 0
    assert len(whole[0]) + len(whole[-2]) == BUDGET
    for budget in (EVERY + 6, EVERY + 8, 2 * EVERY + 9, 4 * EVERY, BUDGET):
        growing(tmp_path, budget, strategy, pages)
    assert kept(tmp_path, EVENTS, REVISITS, TOLD) == whole


def test_a_hub_that_gains_links(pages: list[str], grown: Callable[[str], Path]) -> None:
    fetched, links, _, revisits, told = kept(grown("best-first"), REVISITS, TOLD)
    assert revisits
    assert len(told) == len(revisits)
    first = {url: seq for seq, url, *_ in fetched}
    assert len(first) == len(fetched)  # one row a page
    before = dict[str, int]()
    for seq, url, status, _, _, n, error in revisits:
        assert (status, error) == (200, None)
        assert seq - before.get(url, first[url]) >= AGE
        assert (n == 0) == (url in before)  # the second time nothing is new any more
        before[url] = seq
    for url in before:
        of_page = [target for source, target, *_ in links if source == url]
        gained = new_links(url, pages).decode()
        assert sum(target in gained for target in of_page) >= 3
    for at in range(0, 10 * EVERY, EVERY):
        assert sum(at <= seq < at + EVERY for seq, *_ in revisits) <= EVERY // 5 + 1


def test_nothing_changes_where_nothing_is_new(tmp_path: Path) -> None:
    crawl_on(tmp_path / "on", BUDGET, revisit_hubs=AGE).close("budget")
    *_, revisits = kept(tmp_path / "on", REVISITS)
    assert revisits
    assert {(links, relevance) for _, _, _, relevance, _, links, _ in revisits} == {(0, None)}
    crawl_on(tmp_path / "off", BUDGET - len(revisits)).close("budget")
    assert kept(tmp_path / "on")[0] == kept(tmp_path / "off")[0]


def hub_given_out(crawl: Crawl) -> Fetch:
    """Return the next second fetch; what the distiller raised beside it is left out."""
    while True:
        fetch = crawl.next(0.0)
        if fetch is None:
            assert crawl.is_waiting, "no hub was given out"
            time.sleep(0.001)  # the distiller runs in another thread
        elif fetch.is_refetch:
            return fetch
        else:
            exclude(crawl, fetch, "not asked for")


def test_what_comes_of_a_second_fetch(tmp_path: Path) -> None:
    crawl = crawl_on(tmp_path / "crawl", EVERY + 5, revisit_hubs=5)
    crawl.config = crawl.config.with_values(budget=0, not_modified_cost=0.5)
    costs = []
    for ending in (304, 304, 404, 0):
        fetch, before = hub_given_out(crawl), crawl.budget_spent
        if ending:
            crawl.visit(crawl.start_visit(fetch.id, Download(status=ending)), 0.0)
        else:
            exclude(crawl, fetch, "Forbidden by robots.txt")
        costs.append(crawl.budget_spent - before)
        assert crawl.fetched == EVERY + 5
    assert costs == [1, 0, 1, 0]  # two that are not modified are one
    crawl.close("stopped")
    *_, revisits, told = kept(tmp_path / "crawl", REVISITS, TOLD)
    assert sorted(str(status) for _, _, status, *_ in revisits) == ["304", "304", "404", "None"]
    ends = sorted(detail.rpartition(": ")[2] for _, detail in told)
    assert ends == ["Forbidden by robots.txt", "not modified", "not modified", "status 404"]
    again = crawl_on(tmp_path / "crawl", EVERY + 5, revisit_hubs=5, not_modified_cost=0.5)
    assert again.budget_spent == EVERY + 5 + sum(costs)
    again.close("budget")


def test_a_failure_changes_nothing_of_the_page(tmp_path: Path) -> None:
    crawl = crawl_on(tmp_path / "crawl", EVERY + 5, revisit_hubs=5)
    crawl.config = crawl.config.with_values(budget=0)
    crawl.flush()
    before = kept(tmp_path / "crawl")[0]
    fetch = hub_given_out(crawl)
    crawl.requeue(fetch.id, 0.0)  # its host is busy
    fetch = hub_given_out(crawl)
    visit = crawl.record_failed(fetch.id, "timeout: 30 s", 0.0)
    assert (visit.url, visit.status, visit.links) == (fetch.url, 0, 0)
    crawl.close("stopped")
    pages, *_, revisits = kept(tmp_path / "crawl", REVISITS)
    assert pages == before
    assert [row[1:] for row in revisits] == [(fetch.url, 0, None, 0, 0, "timeout: 30 s")]


def test_stopped_before_a_second_fetch_it_is_made_later(tmp_path: Path) -> None:
    crawl = crawl_on(tmp_path / "crawl", EVERY + 5, revisit_hubs=5)
    crawl.config = crawl.config.with_values(budget=0)
    first = hub_given_out(crawl)
    crawl.close("stopped")  # what is under way is not waited for
    with closing(sqlite3.connect(tmp_path / "crawl" / "crawl.db")) as store:
        waiting = store.execute("SELECT count(*) FROM revisit WHERE seq IS NULL").fetchone()[0]
        state = "SELECT count(*) FROM frontier WHERE url = ?"
        assert store.execute(state, (first.url,)).fetchone() == (0,)
    assert waiting == EVERY // 5
    crawl_on(tmp_path / "crawl", EVERY + 15, revisit_hubs=5).close("budget")
    *_, revisits = kept(tmp_path / "crawl", REVISITS)
    assert len(revisits) == waiting
    assert first.url in {url for _, url, *_ in revisits}


def test_it_takes_the_distiller() -> None:
    with pytest.raises(UserError, match="needs FOCUSCRAWL_DISTILL"):
        CrawlConfig(topic=TOPIC, revisit_hubs=5)


def test_reasons_are_also_the_links_that_a_hub_has_gained(grown: Callable[[str], Path]) -> None:
    """A URL that only second fetches link to has reasons, and they are of those links."""
    with closing(CrawlStore.open(grown("apprentice") / "crawl.db", read_only=True)) as store:
        fetches = [*History(store).fetches()]
        first = {link.target for each in fetches if not each.is_revisit for link in each.links}
        gained = {
            link.target for each in fetches if each.is_revisit for link in each.links
        } - first
        assert gained
        for url in gained:
            found = explain_score(store, url)
            assert found is not None
            assert found.parts
