"""The loop without Scrapy: a web in memory, one page after the other."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from longer import long

from focuscrawl.crawl import CrawlConfig, Download
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.state import MAX_CONSECUTIVE_FAILURES
from focuscrawl.page import parse_page
from focuscrawl.page.documents import PDF, SITE_MAP
from focuscrawl.report.summary import Summary
from focuscrawl.store import CrawlStore
from focuscrawl.strategies.baselines import BestFirst

from .shelves import (
    Shelf,
    WordCritic,
    answer,
    at,
    crawled,
    exclude,
    given_out,
    open_crawl,
    run,
    states,
    urls,
)

if TYPE_CHECKING:
    from focuscrawl.crawl import PageVisit
    from focuscrawl.critic.protocol import Judgement
    from focuscrawl.page import PageView
    from focuscrawl.strategies import Expansion, JudgedPage, Scores, StoredPage

FAILED_ON_IT = "critic failed: IndexError: no idea"


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
    visits = crawled(tmp_path, web, "/").visits
    # d2 is found on the dull page and raised by the jazz page; equals come as they were found
    assert urls(visits) == [at(f"/{p}") for p in ("", "dull", "jazz", "d2", "j1", "j2", "d1")]
    assert [visit.score for visit in visits] == [None, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2]
    assert [visit.relevance for visit in visits] == [0.9, 0.2, 0.9, 0.2, 0.2, 0.2, 0.2]
    assert visits[1].referrer == at("/")
    assert [visit.depth for visit in visits] == [0, 1, 1, 2, 2, 2, 2]
    assert visits[2].topic == "/Music/Jazz"


def test_hard_focus_does_not_expand_what_is_off_the_topic(web: Shelf, tmp_path: Path) -> None:
    crawl, visits = crawled(tmp_path, web, "/", strategy="hard-focus")
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
    first = given_out(crawl)
    crawl.requeue(first.id, 0.0)
    assert crawl.next(0.0) == first
    exclude(crawl, first, "not wanted")
    assert len(run(crawl)) == 2
    crawl.close("budget")
    assert states(crawl)[first.url] == "excluded"


def test_best_first_by_tries_asks_again_for_what_failed_last(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/", strategy="best-first", options={"tries": True})
    home = given_out(crawl)
    answer(crawl, home)
    first = given_out(crawl)
    crawl.requeue(first.id, 0.0, tried=True)
    rest = run(crawl)
    assert len(rest) > 2
    assert rest[-2].url == first.url  # what only it links to comes after it
    crawl.close("finished")


def test_nothing_is_written_between_expanding_and_recording(web: Shelf, tmp_path: Path) -> None:
    """A crash there may not leave links queued of a page that is not there."""
    crawl = open_crawl(tmp_path, web, "/")
    fetch = given_out(crawl)
    body = b'<a href="/dull">x</a> <a href="/jazz">x</a>'
    visit = crawl.start_visit(fetch.id, Download(200, body, "text/html"))
    crawl.parse(visit)
    crawl.judge(visit)
    crawl.expand(visit)
    crawl.record_event("lesson", "of another thread")
    crawl.flush()
    stored = "SELECT (SELECT count(*) FROM url), (SELECT count(*) FROM page)"
    assert [tuple(row) for row in crawl.store.rows(stored)] == [(1, 0)]
    crawl.record(visit, 0.0)
    crawl.flush()
    assert [tuple(row) for row in crawl.store.rows(stored)] == [(3, 1)]
    events = [kind for (kind,) in crawl.store.rows("SELECT kind FROM events ORDER BY id")]
    assert events[-1] == "lesson"
    crawl.close("interrupted")


def test_nothing_is_given_out_while_links_are_scored(web: Shelf, tmp_path: Path) -> None:
    """The strategy may be at it in another thread."""
    crawl = open_crawl(tmp_path, web, "/", "/jazz", per_host=2)
    fetch = given_out(crawl)
    visit = crawl.start_visit(fetch.id, Download(200, b'<a href="/dull">x</a>', "text/html"))
    crawl.parse(visit)
    crawl.judge(visit)
    page = crawl.start_expansion(visit)
    assert page is not None
    assert crawl.next(0.0) is None
    assert crawl.is_waiting
    steps = crawl.finish_expansion(visit, page, crawl.score(visit, page))
    next(steps)
    assert crawl.next(0.0) is None
    assert [*steps] == []
    assert crawl.next(0.0) is not None
    crawl.record(visit, 0.0)
    crawl.close("interrupted")


class Failing(Part):
    """Fails when a page is about to be recorded."""

    def before_record(self, visit: PageVisit) -> None:
        raise ValueError(visit.url)


def test_a_part_that_fails_loses_no_page(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/")
    crawl.parts.append(Failing())
    fetch = given_out(crawl)
    with pytest.raises(ValueError, match="example"):
        answer(crawl, fetch)
    crawl.halt(fetch.id, 0.0)
    assert crawl.stop_reason == "error"
    crawl.close("error")
    crawl, visits = crawled(tmp_path, web, "/")
    assert (visits[0].url, crawl.fetched) == (at("/"), 7)


@pytest.mark.parametrize("relevance", [-0.1, 1.1, math.nan])
def test_a_relevance_is_between_0_and_1(web: Shelf, tmp_path: Path, relevance: float) -> None:
    crawl = open_crawl(tmp_path, web, "/")
    fetch = given_out(crawl)
    visit = crawl.start_failed_visit(fetch.id, "")
    visit.relevance = relevance
    with pytest.raises(ValueError, match="is not between 0 and 1"):
        crawl.expand(visit)
    crawl.close("error")


def test_a_failure_is_a_fetch_of_no_relevance(web: Shelf, tmp_path: Path) -> None:
    crawl = open_crawl(tmp_path, web, "/")
    fetch = given_out(crawl)
    visit = crawl.record_failed(fetch.id, "no route", 0.0)
    assert (visit.seq, visit.status, visit.relevance) == (1, 0, 0.0)
    assert visit.error == "no route"
    assert crawl.harvest_rate == 0.0
    crawl.close("interrupted")


def test_a_crawl_that_got_no_page_says_so(web: Shelf, tmp_path: Path) -> None:
    web.put("/gone", "", 404)
    web.put("/away", "", 301, location="/gone")
    seeds = ("/", "/jazz", "/gone", "/away")
    crawl = open_crawl(tmp_path, web, *seeds)
    first = given_out(crawl)
    crawl.record_failed(first.id, "refused", 0.0)
    second = given_out(crawl)
    exclude(crawl, second, "robots.txt")
    assert crawl.is_unfinished
    assert [visit.status for visit in run(crawl)] == [404, 301]
    assert crawl.stop_reason == "seeds_unreachable"
    crawl.close(crawl.stop_reason)
    assert crawled(tmp_path, web, *seeds).crawl.stop_reason == "seeds_unreachable"
    assert crawled(tmp_path, web, *seeds, "/dull").crawl.stop_reason == "frontier_empty"


def test_a_redirect_takes_the_place_of_what_was_redirected(tmp_path: Path) -> None:
    web = Shelf()
    web.put("/", "", 301, location="/one")
    web.put("/one", "", 302, location="/two")
    web.page("/two", "jazz two")
    web.page("/other", "jazz")
    visits = crawled(tmp_path, web, "/", "/other").visits
    # targets of a seed's redirects are as urgent as seeds
    assert urls(visits) == [at("/"), at("/other"), at("/one"), at("/two")]
    assert [visit.relevance for visit in visits] == [0.0, 0.9, 0.0, 0.9]
    assert visits[3].score is None
    assert visits[2].referrer == at("/")
    assert [visit.depth for visit in visits] == [0] * 4


def test_a_seed_stays_first_whatever_links_to_it(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", "/found", "/seed")
    web.page("/found", "jazz")
    web.page("/dull", "nothing", "/seed")
    web.page("/seed", "jazz")
    visits = crawled(tmp_path, web, "/dull", "/", "/seed").visits
    assert urls(visits) == [at("/dull"), at("/"), at("/seed"), at("/found")]


def test_links_out_of_a_closed_recording_are_dropped_and_counted(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz", "/here", "/gone", "/also-gone", "/picture.jpg")
    web.page("/here", "jazz")
    web.put("/picture.jpg", "", content_type="image/jpeg")
    visits = crawled(tmp_path / "closed", web, "/").visits
    assert urls(visits) == [at("/"), at("/here")]
    assert (visits[0].links, visits[0].dropped) == (4, 3)
    visits = crawled(tmp_path / "open", web, "/", closed=False).visits
    assert [visit.status for visit in visits] == [200, 200, 404, 404]
    assert visits[0].dropped == 1


def test_what_is_no_html_has_no_relevance(tmp_path: Path) -> None:
    web = Shelf()
    web.put("/", "jazz jazz", content_type="text/plain")
    (visit,) = crawled(tmp_path, web, "/").visits
    assert (visit.status, visit.relevance, visit.error) == (200, 0.0, "no HTML")


class Choosy(WordCritic):
    """Fails on the pages that have one of some words."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.words = words

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        if any(word in page.tokens for page in pages for word in self.words):
            raise IndexError("no idea")
        return super().judge(pages)


class Touchy(BestFirst):
    """Fails on the pages that have the word "jazz" on them, or to recall them."""

    recalls = True

    def expand(self, page: JudgedPage) -> Expansion:
        if "jazz" in page.view.tokens and "start" not in page.view.tokens:
            raise ValueError("no idea")
        return super().expand(page)

    def restore_page(self, page: StoredPage) -> Scores:
        if not self.recalls:
            raise ValueError("what was that")
        return super().restore_page(page)


def test_a_page_that_the_critic_fails_on_is_recorded_and_the_crawl_goes_on(
    web: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = open_crawl(tmp_path, web, "/", critic=Choosy("nothing"))
    visits = run(crawl)
    assert urls(visits) == [at(f"/{p}") for p in ("", "dull", "jazz", "j1", "d2", "j2")]
    failed = visits[1]
    assert (failed.relevance, failed.error, failed.links) == (0.0, FAILED_ON_IT, 3)
    assert failed.dropped == 3
    assert crawl.stop_reason == "frontier_empty"
    assert "Traceback" in caplog.text
    crawl.close("frontier_empty")
    again = open_crawl(tmp_path, web, "/", critic=Choosy("nothing"))
    assert run(again) == []
    again.flush()
    summary = Summary.of(again.store)
    assert summary.page_failures == (1, f"{at('/dull')}: {FAILED_ON_IT}")
    assert f"failed on     1 page, last {at('/dull')}: critic failed" in summary.text()
    again.close("frontier_empty")


def test_a_relevance_of_a_critic_that_is_none_is_a_failure(web: Shelf, tmp_path: Path) -> None:
    class Wild(WordCritic):
        def judge(self, pages: Sequence[PageView]) -> Judgement:
            judged = super().judge(pages)
            return replace(judged, relevance=judged.relevance * np.nan)

    (visit,) = crawled(tmp_path, web, "/", critic=Wild()).visits
    assert (
        visit.error
        == "critic failed: ValueError: the critic's relevance nan is not between 0 and 1"
    )


@pytest.mark.parametrize("interrupted", [0, 1, 2, 3, 4])
def test_a_page_that_the_strategy_fails_on_is_the_same_however_the_crawl_is_resumed(
    web: Shelf, tmp_path: Path, interrupted: int
) -> None:
    visits = crawled(tmp_path, web, "/", strategy=Touchy, fetches=interrupted).visits
    again = open_crawl(tmp_path, web, "/", strategy=Touchy)
    visits += run(again)
    assert urls(visits) == [at(f"/{p}") for p in ("", "dull", "jazz", "d1", "d2")]
    jazz = visits[2]
    assert (jazz.relevance, jazz.error, jazz.links, jazz.dropped) == (0.9, None, 4, 4)
    assert again.stop_reason == "frontier_empty"
    again.flush()
    assert Summary.of(again.store).page_failures[0] == 1
    again.close("frontier_empty")


def test_a_stored_page_that_the_strategy_fails_on_is_left_out_of_the_past(
    web: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    crawled(tmp_path, web, "/", strategy=Touchy, fetches=2)
    with monkeypatch.context() as patch:
        patch.setattr(Touchy, "recalls", False)
        again = open_crawl(tmp_path, web, "/", strategy=Touchy)
    assert "is not restored" in caplog.text
    assert urls(run(again)) == [at(f"/{p}") for p in ("jazz", "d1", "d2")]
    again.close("frontier_empty")


def test_a_critic_that_fails_on_many_pages_in_a_row_ends_the_crawl(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "start", *(f"/{n}" for n in range(2 * MAX_CONSECUTIVE_FAILURES)))
    for n in range(2 * MAX_CONSECUTIVE_FAILURES):
        web.page(f"/{n}", f"bad {n}" if n > 1 else f"good {n}")
    crawl, visits = crawled(tmp_path, web, "/", critic=Choosy("bad"))
    assert (len(visits), crawl.stop_reason) == (3 + MAX_CONSECUTIVE_FAILURES, "error")
    assert len(crawled(tmp_path, web, "/").visits) == MAX_CONSECUTIVE_FAILURES - 2


def test_a_critic_that_fails_on_all_that_there_is_is_no_good_end(
    web: Shelf, tmp_path: Path
) -> None:
    crawl, visits = crawled(tmp_path, web, "/", critic=Choosy("jazz"))
    assert (len(visits), crawl.stop_reason) == (1, "error")


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
    assert "Learning failed" in caplog.text
    crawl.close("error")


def test_a_store_opened_to_read_is_not_written(web: Shelf, tmp_path: Path) -> None:
    crawled(tmp_path / "crawl", web, "/", fetches=3)
    store = CrawlStore.open(tmp_path / "crawl" / "crawl.db", read_only=True)
    assert store.row("SELECT count(*) FROM pages")[0] == 3
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        list(store.rows("DELETE FROM events"))
    store.close()


def test_no_relevant_page_for_long_ends_the_crawl(web: Shelf, tmp_path: Path) -> None:
    crawl, visits = crawled(tmp_path, web, "/", stagnation=2)
    assert crawl.stop_reason == "no_relevant_page"
    assert [visit.relevance > 0.5 for visit in visits[-3:]] == [True, False, False]


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("apprentice", {"batch": 2}),
        ("best-first", {}),
        *long(("breadth-first", {}), ("hard-focus", {}), ("random", {})),
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
    whole, visits = crawled(tmp_path / "whole", web, "/", strategy=strategy, options=options)
    expected = urls(visits)
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


def test_topics_are_read_however_they_are_spelt() -> None:
    plan = CrawlConfig(topic=" Music/Jazz/, /Sports ,")
    assert plan.topics == ("/Music/Jazz", "/Sports")


@pytest.mark.parametrize(("kind", "noindex"), [(PDF, True), (SITE_MAP, False)])
def test_the_headers_of_a_pdf_may_forbid_its_index(
    web: Shelf, tmp_path: Path, kind: str, noindex: bool
) -> None:
    crawl = open_crawl(tmp_path, web, "/", agent="cycling-survey")
    fetch = crawl.next(0.0)
    assert fetch is not None
    answered = Download(200, robots=("otherbot: nofollow, cycling-survey: noindex",))
    visit = crawl.start_visit(fetch.id, answered)
    crawl.read(visit, kind, lambda body, url, _: parse_page(body, url))
    assert visit.view is not None
    assert (visit.view.noindex, visit.view.nofollow) == (noindex, False)
