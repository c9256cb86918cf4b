"""The loop without Scrapy: a web in memory, one page after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import sqlalchemy as sa

from focuscrawl.crawl import Crawl, CrawlFolder, CrawlPlan, Fetched
from focuscrawl.crawl.restore import restore
from focuscrawl.critic.protocol import Judgement
from focuscrawl.errors import UserError
from focuscrawl.frontier import Frontier
from focuscrawl.store import CrawlStore
from focuscrawl.strategies import StrategyContext, make_strategy
from focuscrawl.urls import normalize
from focuscrawl.webs.protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from focuscrawl.crawl import Fetch, Visit
    from focuscrawl.page import PageView


class Shelf:
    """A web (`webs.protocol.Web`) of pages in memory."""

    name = "shelf"
    fingerprint = "5e1f"

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}

    def page(self, path: str, text: str, *links: str, head: str = "") -> None:
        anchors = " ".join(f'<a href="{link}">link {link}</a>' for link in links)
        self.put(path, f"<html><head>{head}</head><body>{text} {anchors}</body></html>")

    def put(self, path: str, body: str, status: int = 200, **headers: str) -> None:
        given = {"content_type": "text/html", **headers}
        pairs = [(name.replace("_", "-").title(), value) for name, value in given.items()]
        self.answers[at(path)] = Answer(at(path), status, pairs, body.encode())

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        return [url if url in self.answers else None for url in urls]

    def fetch(self, url: str) -> Answer | None:
        return self.answers.get(url)

    def urls(self) -> Iterator[str]:
        return iter(self.answers)


class WordCritic:
    """Relevance 0.9 for pages with the word "jazz", 0.2 for others; two classes."""

    classes: tuple[str, ...] = ("/Music/Jazz", "/Other")
    marked = np.array([True, False])
    examples: tuple[str, ...] = ()
    fingerprint = "c417"

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        relevance = np.array([0.9 if "jazz" in page.tokens else 0.2 for page in pages])
        return Judgement(relevance, np.stack([relevance, 1 - relevance], axis=1))


def at(path: str) -> str:
    """Return the URL of a page of the shelf: ``/x``, or ``host/x``."""
    host, _, rest = path.partition("/")
    url = normalize(f"http://{host or 'a'}.example/{rest}")
    assert url is not None
    return url


def open_crawl(
    folder: Path, web: Shelf, *seeds: str, closed: bool = True, **plan: object
) -> Crawl:
    """Open a crawl of `web`, new or resumed."""
    plan = {"strategy": "best-first", **plan}
    given = CrawlPlan(topic="/Music/Jazz", closed=closed, **plan)  # type: ignore[arg-type]
    critic = WordCritic()
    kept = CrawlFolder(folder)
    crawl = Crawl(
        critic=critic,
        strategy=make_strategy(
            given.strategy, StrategyContext(critic, given.random_state, web), given.options
        ),
        frontier=Frontier(given.per_host, given.delay),
        store=kept.open_store({"strategy": given.strategy}, {}),
        folder=kept,
        web=web,
        plan=given,
    )
    restore(crawl)
    crawl.start([at(seed) for seed in seeds])
    return crawl


def answer(crawl: Crawl, fetch: Fetch) -> Visit:
    """Give the crawl what its web has for `fetch`."""
    assert crawl.web is not None
    found = crawl.web.fetch(fetch.url)
    if found is None:
        return crawl.visit(fetch.id, Fetched(404), None, 0.0)
    headers = dict(found.headers)
    location = headers.get("Location")
    fetched = Fetched(
        status=found.status,
        body=found.body,
        content_type=headers["Content-Type"],
        location=at(location) if location else None,
        size=len(found.body),
    )
    return crawl.visit(fetch.id, fetched, crawl.parse(fetch.id, fetched), 0.0)


def run(crawl: Crawl, fetches: int = 1000) -> list[Visit]:
    """Crawl until nothing comes any more, or so many fetches were made."""
    visits: list[Visit] = []
    while len(visits) < fetches:
        fetch = crawl.next(0.0)
        if fetch is not None:
            visits.append(answer(crawl, fetch))
        elif not crawl.pausing:  # a lesson is waited for
            break
        else:
            time.sleep(0.001)
    return visits


def urls(visits: list[Visit]) -> list[str]:
    return [visit.url for visit in visits]


def states(crawl: Crawl) -> dict[str, str]:
    """Return the view `frontier` of a closed crawl: states by URL."""
    rows = crawl.store.rows(sa.text("SELECT url, state FROM frontier"))
    found = {row.url: row.state for row in rows}
    crawl.store.close()
    return found


@pytest.fixture
def web() -> Shelf:
    """A jazz page and a dull one lead to two pages each; all link home."""
    shelf = Shelf()
    shelf.page("/", "start jazz", "/dull", "/jazz")
    shelf.page("/dull", "nothing", "/d1", "/d2", "/")
    shelf.page("/jazz", "jazz", "/j1", "/d2", "/j2", "/")
    for name in ("d1", "d2", "j1", "j2"):
        shelf.page(f"/{name}", name, "/")
    return shelf


def test_best_first_takes_the_links_of_relevant_pages_first(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/")
    visits = run(crawl)
    crawl.close(str(crawl.stop_reason))
    # d2 is found on the dull page and raised by the jazz page; equals come as they were found
    assert urls(visits) == [at(f"/{p}") for p in ("", "dull", "jazz", "d2", "j1", "j2", "d1")]
    assert [visit.score for visit in visits] == [None, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2]
    assert [visit.relevance for visit in visits] == [0.9, 0.2, 0.9, 0.2, 0.2, 0.2, 0.2]
    assert visits[1].referrer == at("/")
    assert [visit.depth for visit in visits] == [0, 1, 1, 2, 2, 2, 2]
    assert visits[2].topic == "/Music/Jazz"


def test_hard_focus_does_not_expand_what_is_off_the_topic(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/", strategy="hard-focus")
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert at("/d1") not in urls(visits)
    assert at("/d2") in urls(visits)  # the jazz page links to it, too
    assert states(crawl) == {at("/d1"): "unfollowed"}


def test_the_budget_counts_what_is_under_way(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/", "/jazz", "/dull", budget=2, per_host=8)
    under_way = [crawl.next(0.0), crawl.next(0.0)]
    assert crawl.next(0.0) is None
    assert crawl.stop_reason is None
    for fetch in under_way:
        assert fetch is not None
        answer(crawl, fetch)
    assert crawl.next(0.0) is None
    assert crawl.fetched == 2
    crawl.close("budget")


def test_what_is_excluded_or_put_back_costs_no_budget(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/", "/jazz", "/dull", budget=2)
    first = crawl.next(0.0)
    assert first is not None
    crawl.put_back(first.id, 0.0)
    assert crawl.next(0.0) == first
    crawl.exclude(first.id, "not wanted", 0.0)
    assert len(run(crawl)) == 2
    crawl.close("budget")
    assert states(crawl)[first.url] == "excluded"


def test_a_failure_is_a_fetch_of_no_relevance(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/")
    fetch = crawl.next(0.0)
    assert fetch is not None
    visit = crawl.fail(fetch.id, "no route", 0.0)
    assert (visit.seq, visit.status, visit.relevance) == (1, 0, 0.0)
    assert visit.error == "no route"
    assert crawl.harvest_rate == 0.0
    assert crawl.stop_reason == "frontier_empty"
    crawl.close("frontier_empty")


def test_a_redirect_takes_the_place_of_what_was_redirected(tmp_path: Path) -> None:
    web = Shelf()
    web.put("/", "", 301, location="/one")
    web.put("/one", "", 302, location="/two")
    web.page("/two", "jazz two")
    web.page("/other", "jazz")
    crawl = open_crawl(tmp_path, web, "/", "/other")
    visits = run(crawl)
    crawl.close("frontier_empty")
    # targets of a seed's redirects are as urgent as seeds
    assert urls(visits) == [at("/"), at("/other"), at("/one"), at("/two")]
    assert [visit.relevance for visit in visits] == [0.0, 0.9, 0.0, 0.9]
    assert visits[3].score is None
    assert visits[2].referrer == at("/")
    assert [visit.depth for visit in visits] == [0] * 4


def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    web = Shelf()
    web.put("/", "", 301, location="/one")
    web.put("/one", "", 301, location="/")
    web.put("/self", "", 301, location="/self")
    web.put("/nowhere", "", 301)
    crawl = open_crawl(tmp_path, web, "/", "/self", "/nowhere")
    assert len(run(crawl)) == 4
    assert crawl.stop_reason == "frontier_empty"
    crawl.close("frontier_empty")


def test_a_seed_stays_first_whatever_links_to_it(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", "/found", "/seed")
    web.page("/found", "jazz")
    web.page("/dull", "nothing", "/seed")
    web.page("/seed", "jazz")
    crawl = open_crawl(tmp_path, web, "/dull", "/", "/seed")
    assert urls(run(crawl)) == [at("/dull"), at("/"), at("/seed"), at("/found")]
    crawl.close("frontier_empty")


def test_links_out_of_a_closed_recording_are_dropped_and_counted(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", "/here", "/gone", "/also-gone", "/picture.jpg")
    web.page("/here", "jazz")
    web.put("/picture.jpg", "", content_type="image/jpeg")
    crawl = open_crawl(tmp_path / "closed", web, "/")
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert urls(visits) == [at("/"), at("/here")]
    assert (visits[0].links, visits[0].dropped) == (4, 3)
    crawl = open_crawl(tmp_path / "open", web, "/", closed=False)
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert [visit.status for visit in visits] == [200, 200, 404, 404]
    assert visits[0].dropped == 1


def test_what_is_no_html_has_no_relevance(tmp_path: Path) -> None:
    web = Shelf()
    web.put("/", "jazz jazz", content_type="text/plain")
    crawl = open_crawl(tmp_path, web, "/")
    (visit,) = run(crawl)
    crawl.close("frontier_empty")
    assert (visit.status, visit.relevance, visit.error) == (200, 0.0, "no HTML")


def test_the_same_content_under_another_url_is_a_duplicate(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", at("/copy"), at("b/copy"))
    web.page("/copy", "jazz jazz", "/below")
    web.page("b/copy", "jazz jazz", "/below")
    web.page("/below", "jazz")
    crawl = open_crawl(tmp_path, web, "/")
    visits = {visit.url: visit for visit in run(crawl)}
    crawl.close("frontier_empty")
    assert visits[at("b/copy")].duplicate_of == at("/copy")
    assert visits[at("b/copy")].relevance == 0.0
    assert visits[at("/below")].referrer == at("/copy")


def test_aliases_are_struck_out_or_recorded_as_duplicates(tmp_path: Path) -> None:
    canonical = f'<link rel="canonical" href="{at("/true")}">'
    web = Shelf()
    web.page("/", "jazz", "/alias", "/true", "/late")
    web.page("/alias", "jazz alias", "/below", head=canonical)
    web.page("/true", "jazz true", head=canonical)
    web.page("/late", "jazz late", "/below", head=canonical)
    web.page("/below", "jazz below", "/true")
    crawl = open_crawl(tmp_path, web, "/")
    visits = {visit.url: visit for visit in run(crawl)}
    crawl.close("frontier_empty")
    assert visits[at("/alias")].relevance == 0.9
    assert visits[at("/late")].duplicate_of == at("/alias")
    assert at("/true") not in visits
    assert states(crawl) == {at("/true"): "excluded"}


def test_canonical_urls_of_other_hosts_are_not_believed(tmp_path: Path) -> None:
    web = Shelf()
    head = f'<link rel="canonical" href="{at("victim/")}">'
    web.page("/", "jazz", at("victim/"), head=head)
    web.page("victim/", "jazz victim")
    crawl = open_crawl(tmp_path, web, "/")
    visits = run(crawl)
    crawl.close("frontier_empty")
    assert [visit.duplicate_of for visit in visits] == [None, None]


def test_a_critic_that_fails_ends_the_crawl_and_loses_no_page(
    web: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = open_crawl(tmp_path, web, "/")
    run(crawl, 1)
    fetch = crawl.next(0.0)
    assert fetch is not None

    def fail(_: object) -> Judgement:
        raise ValueError("no idea")

    with monkeypatch.context() as patch:
        patch.setattr(crawl.critic, "judge", fail)
        with pytest.raises(ValueError, match="no idea"):
            answer(crawl, fetch)
        crawl.halt(fetch.id, 0.0)
        assert crawl.stop_reason == "error"
        assert crawl.next(0.0) is None
        crawl.close("error")
    again = open_crawl(tmp_path, web)
    assert urls(run(again))[0] == fetch.url
    again.close("frontier_empty")


def test_a_lesson_that_fails_ends_the_crawl(
    web: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(20):
        web.page(f"/m{n}", f"jazz {n}", f"/m{n + 1}", f"/m{(5 * n) % 20}")
    web.page("/", "start jazz", "/m0", "/m1")
    crawl = open_crawl(tmp_path, web, "/", strategy="apprentice", options={"batch": 2})

    def fail() -> None:
        raise ValueError("no idea")

    monkeypatch.setattr(crawl.strategy, "learn", fail)
    visits = run(crawl)
    assert crawl.stop_reason == "error"
    assert 5 <= len(visits) < 20
    assert "a lesson failed" in caplog.text
    crawl.close("error")


def test_a_store_opened_to_read_is_not_written(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path / "crawl", web, "/")
    run(crawl, 3)
    crawl.close("interrupted")
    store = CrawlStore.open(tmp_path / "crawl" / "crawl.db", read_only=True)
    with store.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM pages")) == 3
        with pytest.raises(sa.exc.OperationalError, match="readonly"):
            connection.execute(sa.text("DELETE FROM events"))
    store.close()


def test_no_relevant_page_for_long_ends_the_crawl(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/", stagnation=2)
    visits = run(crawl)
    assert crawl.stop_reason == "no_relevant_page"
    assert [visit.relevance > 0.5 for visit in visits[-3:]] == [True, False, False]
    crawl.close("no_relevant_page")


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("apprentice", {"batch": 2}),
        ("best-first", {}),
        ("breadth-first", {}),
        ("hard-focus", {}),
        ("random", {}),
    ],
)
def test_interrupted_after_any_fetch_it_goes_on_the_same(
    web: Shelf, tmp_path: Path, strategy: str, options: dict[str, int]
) -> None:
    for n in range(12):  # enough for several lessons
        words = "jazz" if n % 3 else "other"
        web.page(f"/m{n}", f"{words} {n}", f"/m{n + 1}", f"/m{(5 * n) % 12}", "/d1")
    web.page("/dull", "nothing", "/m0", "/m1", "/d2")
    web.page("/j1", "jazz", "/j3", "b/4", head='<link rel="canonical" href="/j2">')
    web.page("/j3", "jazz", "/d1", "b/4")
    whole = open_crawl(tmp_path / "whole", web, "/", strategy=strategy, options=options)
    expected = urls(run(whole))
    whole.close("frontier_empty")
    for moment in range(len(expected)):
        folder = tmp_path / f"cut-{moment}"
        first = open_crawl(folder, web, "/", strategy=strategy, options=options)
        before = urls(run(first, moment))
        first.next(0.0)  # lost, as with a process that is killed
        first.close("killed")
        second = open_crawl(folder, web, "/", strategy=strategy, options=options)
        after = run(second)
        second.close("frontier_empty")
        assert before + urls(after) == expected
        assert [visit.seq for visit in after] == list(range(moment + 1, len(expected) + 1))
        assert states(second) == states(whole)
    if options:
        assert whole.model_version > 3


def test_the_plan_reads_whole_numbers_only() -> None:
    assert CrawlPlan.whole_number("budget", " 12 ") == 12
    for text in ("", "1.5", "-1", "abc", "1e3", "²"):
        with pytest.raises(UserError, match="budget must be a whole number"):
            CrawlPlan.whole_number("budget", text)


def test_topics_are_read_however_they_are_spelt() -> None:
    plan = CrawlPlan(topic=" Music/Jazz/, /Sports ,")
    assert plan.topics == ("/Music/Jazz", "/Sports")
