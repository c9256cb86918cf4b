"""While no link is good, a crawl looks where it has fetched the fewest pages."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from focuscrawl.crawl.exploration import Directory, UrlTree
from focuscrawl.report.why import Explanation
from focuscrawl.store import CrawlStore

from .shelves import Shelf, at, crawled, open_crawl, run, urls, word

if TYPE_CHECKING:
    from pathlib import Path


class Tree:
    """A tree with the URLs of some hosts; each URL that was found counts as fetched."""

    def __init__(self, *queued: str, scores: dict[int, float] | None = None) -> None:
        self.tree, self.urls, self.hosts = UrlTree(), list(queued), list[str]()
        self.waiting = set(range(len(queued)))
        self.scores = scores or {}
        for url_id, url in enumerate(queued):
            self.tree.add(url_id, url, self._host_id(url))

    def _host_id(self, url: str) -> int:
        name = urlsplit(url).netloc
        if name not in self.hosts:
            self.hosts.append(name)
        return self.hosts.index(name)

    def fetch(self, url: str) -> None:
        self.tree.count_fetch(url, self._host_id(url))

    def find(self) -> str | None:
        found = self.tree.find(self._best_score, self._first_of)
        if found is None:
            return None
        self.waiting.discard(found)
        self.fetch(self.urls[found])
        return self.urls[found]

    def _best_score(self, host: int) -> float | None:
        waiting = [self._host_id(self.urls[url_id]) for url_id in self.waiting]
        return self.scores.get(host, 0.1) if host in waiting else None

    def _first_of(self, directory: Directory) -> int | None:
        waiting = [url_id for url_id in directory.urls if url_id in self.waiting]
        del directory.urls[:]
        directory.urls.extend(waiting)
        return min(waiting, default=None)


def test_levels_are_compared_from_the_host_down() -> None:
    tree = Tree("http://a/x/1", "http://a/x/y/1", "http://a/z/1", "http://b/1", "http://b/2")
    for url in ["http://a/x/y/0", "http://b/3", "http://b/4", "http://b/5", "http://b/6"]:
        tree.fetch(url)
    # 1 fetch of a and 4 of b; of a, none of z; then none of the files of x itself
    assert [tree.find() for _ in range(3)] == ["http://a/z/1", "http://a/x/1", "http://a/x/y/1"]
    assert [tree.find() for _ in range(3)] == ["http://b/1", "http://b/2", None]


def test_a_url_that_is_queued_again_is_found_again() -> None:
    tree = Tree("http://a/1")
    assert [tree.find(), tree.find()] == ["http://a/1", None]
    tree.waiting.add(0)
    tree.tree.add(0, "http://a/1", 0)
    assert [tree.find(), tree.find()] == ["http://a/1", None]


def test_of_equal_hosts_the_one_with_the_best_score_comes_first() -> None:
    many = [f"http://h{i}/" for i in range(40)]
    tree = Tree(*many, scores={i: 0.3 if i == 17 else 0.1 for i in range(40)})
    assert tree.find() == "http://h17/"


def test_a_host_that_may_not_be_asked_now_is_passed_over() -> None:
    tree = Tree("http://a/1", "http://b/1", scores={0: float("-inf")})
    tree.fetch("http://b/0")
    assert [tree.find(), tree.find()] == ["http://b/1", None]
    tree.scores[0] = 0.1
    assert tree.find() == "http://a/1"


def test_endless_directories_are_one() -> None:
    months = [f"http://a/calendar/{year}/{month}/" for year in range(20) for month in range(12)]
    tree = Tree(*months, "http://a/articles/1")
    tree.fetch("http://a/articles/0")
    assert tree.find() in months
    tree.fetch("http://a/calendar/1999/1/")
    assert tree.find() == "http://a/articles/1"


def portal() -> Shelf:
    """A portal of a large host without relevant pages, and of 30 small ones; one has some."""
    web = Shelf()
    large = [f"/news/{i}" for i in range(400)]
    small = [f"h{i}/" for i in range(30)]
    web.page("/", "portal", *map(at, large), *map(at, small))
    for i, page in enumerate(large):
        web.page(page, f"news {word(i)}")
    for i, page in enumerate(small):
        jazz = [f"/jazz/{i}" for i in range(50)] if page == "h7/" else []
        web.page(page, f"the page of {word(i)}", *jazz)
    for i in range(50):
        web.page(f"h7/jazz/{i}", f"jazz {word(i)}", "/")
    return web


def test_the_relevant_host_of_a_portal_is_found_among_many(tmp_path: Path) -> None:
    explored = urls(crawled(tmp_path / "a", portal(), "/", fetches=120).visits)
    plain = urls(crawled(tmp_path / "b", portal(), "/", fetches=120, explore=False).visits)
    assert sum("jazz" in url for url in plain) == 0  # the news come first
    assert sum("jazz" in url for url in explored) >= 25
    first = next(i for i, url in enumerate(explored) if "jazz" in url)
    hosts = Counter(urlsplit(url).netloc for url in explored[1:first])
    assert 0.3 < 1 - hosts["a.example"] / hosts.total() < 0.7  # every second, on average


def test_nothing_is_explored_while_links_or_pages_are_good(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", *[f"/jazz/{i}" for i in range(100)], at("b/"))
    for i in range(100):
        web.page(f"/jazz/{i}", f"jazz {word(i)}")
    web.page("b/", "nothing")
    order = urls(crawled(tmp_path, web, "/").visits)
    assert order.index(at("b/")) == 101  # of equal scores, the first found comes first


def test_nothing_is_explored_while_low_scores_lead_to_relevant_pages(tmp_path: Path) -> None:
    web = Shelf()
    small = [f"h{i}/" for i in range(30)]
    web.page("/", "a list", *[f"/music/{i}" for i in range(100)], *map(at, small))
    for i in range(100):
        web.page(f"/music/{i}", f"jazz {word(i)}")
    for i, page in enumerate(small):
        web.page(page, f"the page of {word(i)}")
    order = urls(crawled(tmp_path, web, "/").visits)
    music = [i for i, url in enumerate(order) if "music" in url]
    # after some relevant pages, their mean relevance is above a half
    assert 1 < sum("music" not in url for url in order[: music[-1]]) < 20
    assert all("music" in url for url in order[40 : music[-1]])


def test_a_crawl_from_an_example_does_not_explore(tmp_path: Path) -> None:
    web = portal()
    web.page("example/", "jazz", at("/"))
    seeds = ["example/", "/"]
    crawl = open_crawl(tmp_path / "a", web, *seeds)
    visits = urls(run(crawl, 100))
    crawl.close("over")
    assert not [url for url in visits[2:] if urlsplit(url).netloc != "a.example"]
    two_portals = crawled(tmp_path / "b", web, "/", "h1/", *seeds[:1], fetches=100)
    assert [url for url in urls(two_portals.visits)[3:] if urlsplit(url).netloc != "a.example"]


def test_discounted_urls_are_not_explored(tmp_path: Path) -> None:
    web = Shelf()
    trap = [f"b/trap?day={i}" for i in range(300)]
    news = [f"/news/{i}" for i in range(300)]
    web.page("/", "portal", *map(at, trap), *news)
    for i, page in enumerate(trap):
        web.page(page, f"day {i}")  # the pages differ in numbers alone
    for i, page in enumerate(news):
        web.page(page, f"news {word(i)}")
    order = urls(crawled(tmp_path, web, "/", fetches=200).visits)
    assert sum("trap" in url for url in order[30:]) == 0


def test_a_resumed_crawl_explores_the_same_urls(tmp_path: Path) -> None:
    whole = urls(crawled(tmp_path / "whole", portal(), "/", fetches=100).visits)
    parts: list[str] = []
    for length in [1, 2, 30, 40, 27]:
        parts += urls(crawled(tmp_path / "parts", portal(), "/", fetches=length).visits)
    assert parts == whole


def test_a_request_that_fails_is_explored_again(tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, portal(), "/")
    visits = run(crawl, 20)
    fetch = crawl.next(0.0)
    assert fetch is not None
    crawl.requeue(fetch.id, 0.0)
    visits += run(crawl, 10_000)
    crawl.close("over")
    assert len(visits) == len(set(urls(visits))) == 481  # nothing is lost


def test_why_tells_that_a_url_was_explored(tmp_path: Path) -> None:
    order = urls(crawled(tmp_path, portal(), "/", fetches=60).visits)
    explored = next(url for url in order[1:] if urlsplit(url).netloc != "a.example")
    with closing(CrawlStore.open(tmp_path / "crawl.db", read_only=True)) as store:
        state = Explanation.of(store, explored).state
        assert state.endswith("; explored, because the best score was only 0.2")
        plain = next(url for url in order[1:] if urlsplit(url).netloc == "a.example")
        assert "explored" not in Explanation.of(store, plain).state
