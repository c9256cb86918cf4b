"""URLs of hosts and patterns that keep no promises count less, and are never lost."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.crawl import state
from focuscrawl.crawl.traps import Discounts
from focuscrawl.frontier import LAST
from focuscrawl.report.summary import Summary
from focuscrawl.report.why import Explanation
from focuscrawl.store import CrawlStore

from .shelves import Shelf, at, crawled, given_out, open_crawl, run, urls, word

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


MONTHS = 300


def calendar() -> Shelf:
    """A calendar whose months all come before the articles, found first and scored alike."""
    web = Shelf()
    months = [f"/calendar/?month={i}" for i in range(MONTHS)]
    articles = [f"b/articles/{i}" for i in range(60)]
    web.page("/", "jazz", *months, *map(at, articles))
    for i, month in enumerate(months):
        web.page(month, f"nothing this month, {word(i)}", "/")
    for i, article in enumerate(articles):
        web.page(article, f"jazz {word(i)}", "/")
    return web


def events(folder: Path, kind: str) -> list[tuple[int, str]]:
    with closing(CrawlStore.open(folder / "crawl.db", read_only=True)) as store:
        rows = store.rows("SELECT seq, detail FROM events WHERE kind = ?", (kind,))
        return [(seq, detail) for seq, detail in rows]


def crawl(folder: Path, web: Shelf, fetches: int = 10_000, **plan: Any) -> list[str]:
    visits = crawled(folder, web, "/", **plan, fetches=fetches).visits
    return urls(visits)


def test_a_calendar_sinks_below_the_articles(tmp_path: Path) -> None:
    order = crawl(tmp_path, calendar())
    # a month brings 0.2 of the predicted 0.9, so the yield of 10 months and the prior is a half
    assert all("month=" in url for url in order[1:11])
    assert all("articles" in url for url in order[11:71])
    assert len(order) == len(set(order)) == 1 + MONTHS + 60  # nothing is lost
    words = "had 22% of the predicted relevance"
    assert events(tmp_path, "discounted") == [
        (11, f"the last new pages of a.example/*?month {words}")
    ]


def test_without_limits_it_comes_first(tmp_path: Path) -> None:
    order = crawl(tmp_path, calendar(), limits=False)
    assert all("month=" in url for url in order[1 : MONTHS + 1])
    assert not events(tmp_path, "discounted")


def test_scores_that_promise_no_relevance_are_not_broken(tmp_path: Path) -> None:
    order = crawl(tmp_path, calendar(), strategy="breadth-first")
    assert all("month=" in url for url in order[1 : MONTHS + 1])


def test_a_web_of_one_pattern_is_crawled_as_without_limits(tmp_path: Path) -> None:
    web = Shelf()
    pages = [f"/p{i}" for i in range(400)]
    rng = random.Random(0)
    web.page("/", "jazz", *pages)
    for i, page in enumerate(pages):
        text = "jazz" if rng.random() < 0.1 else "tax"
        web.page(page, f"{text} {word(i)}", *rng.sample(pages, 8))
    limited = crawl(tmp_path / "limited", web)
    assert limited == crawl(tmp_path / "free", web, limits=False)
    assert events(tmp_path / "limited", "discounted")


def test_the_raw_score_is_stored(tmp_path: Path) -> None:
    crawl(tmp_path, calendar())
    with closing(CrawlStore.open(tmp_path / "crawl.db", read_only=True)) as store:
        scores = [score for (score,) in store.rows("SELECT score FROM pages WHERE depth = 1")]
    assert scores == [0.9] * (MONTHS + 60)


def test_why_and_summary_tell(tmp_path: Path) -> None:
    crawl(tmp_path, calendar(), 80)
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    waits = Explanation.of(store, at("/calendar/?month=200")).state
    assert waits.endswith(
        "; its score 0.9 counts as 0.45, because the last new pages of a.example/*?month "
        "had 22% of the predicted relevance"
    )
    assert Explanation.of(store, at("/calendar/?month=200")).value == 0.9
    summary = Summary.of(store)
    store.close()
    queued = MONTHS + 60 - 79
    assert f"; {queued} queued URLs discounted" in dict(summary.lines())["frontier"]


def versions() -> Shelf:
    """A page of the topic in a hundred versions, and other pages of the topic."""
    rng = random.Random(1)
    page = ["jazz", *(f"word{rng.randrange(3000)}" for _ in range(300))]
    web = Shelf()
    old = [f"/w?version={i}" for i in range(100)]
    new = [f"/new/{i}" for i in range(60)]
    web.page("/", "jazz", *old, *new)
    for i, url in enumerate(old):
        web.page(url, " ".join([*page[:100], f"edit{i}", *page[101:]]))
    for url in new:
        web.page(url, "jazz " + " ".join(f"word{rng.randrange(3000)}" for _ in range(300)))
    return web


def test_near_duplicates_bring_nothing(tmp_path: Path) -> None:
    order = crawl(tmp_path, versions())
    # the first version is new, and the yield falls to a half after 4 repeats
    assert [at("/new/") in url for url in order[1:66]] == [False] * 5 + [True] * 60
    near = events(tmp_path, "near-duplicate")
    assert len(near) == 99
    assert near[0][1].endswith(f"% like {at('/w?version=0')}")
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    told = Explanation.of(store, at("/w?version=7")).state
    assert told.endswith(f"% like {at('/w?version=0')}")
    assert dict(Summary.of(store).lines())["duplicates"].startswith("0, 99 near-duplicates; ")
    store.close()


def test_unless_they_are_not_looked_for(tmp_path: Path) -> None:
    order = crawl(tmp_path, versions(), near_duplicates=False)
    assert all("version=" in url for url in order[1:101])
    assert not events(tmp_path, "near-duplicate")


@pytest.mark.parametrize(
    ("made", "cuts"),
    [
        (calendar, (1, 20, 12, 4, 70, 20, 60, 1, 1, 400)),
        (versions, (1, 2, 40, 30, 100)),
    ],
)
def test_killed_at_any_fetch_it_goes_on_alike(
    tmp_path: Path, made: Callable[[], Shelf], cuts: tuple[int, ...]
) -> None:
    web = made()
    whole = crawl(tmp_path / "whole", web)
    assert [url for n in cuts for url in crawl(tmp_path / "parts", web, n)] == whole
    for kind in ("discounted", "near-duplicate"):
        assert events(tmp_path / "parts", kind) == events(tmp_path / "whole", kind)


def count(discounts: Discounts, url: str, **told: Any) -> None:
    given = {"predicted": 0.9, "relevance": 0.9, "moved": False, "repeats": False}
    discounts.count(url, None, **(given | told))


def test_a_pattern_that_pays_again_counts_fully_again() -> None:
    discounts = Discounts()
    steps = []
    for i in range(600):
        count(discounts, f"http://hub.example/{i}/x", repeats=i < 30 and i % 10 > 0)
        steps.append(discounts.halvings("http://hub.example/600/x"))
    assert max(steps) == 2
    assert steps[-1] == 0
    assert [b - a for a, b in pairwise(steps)].count(-1) == 2  # no step back and forth


def test_a_pattern_of_repeats_only_comes_last_until_it_brings_a_new_page() -> None:
    discounts = Discounts()
    url, steps = "http://a.example/w?version=99", []
    for i in range(42):
        count(discounts, f"http://a.example/w?version={i}", repeats=i not in (0, 20))
        steps.append(discounts.halvings(url))
    assert [i for i, step in enumerate(steps) if step == LAST] == [18, 19, 38, 39, 40, 41]
    assert discounts.reason(url) == "the last 21 fetches of a.example/*?version were repeats"
    assert discounts.halvings("http://a.example/new") == 0


@pytest.mark.parametrize(
    ("url", "text", "last"),
    [
        ("/calendar/?month={}", "no jazz in month {}", True),
        ("/calendar/?month={}", "no jazz in the month of {name}", False),
        ("/slides/{}", "slide {} of 100", False),
    ],
)
def test_pages_that_differ_only_in_numbers_come_last(
    tmp_path: Path, url: str, text: str, last: bool
) -> None:
    web = Shelf()
    months = [url.format(i) for i in range(100)]
    web.page("/", "jazz", *months)
    for i, month in enumerate(months):
        web.page(month, text.format(i, name=word(i)), "/")
    crawl(tmp_path, web, 50)
    store = CrawlStore.open(tmp_path / "crawl.db", read_only=True)
    told = Explanation.of(store, at(months[99])).state
    because = "the last 48 fetches of a.example/*?month were repeats"
    assert told.endswith(f"; all other URLs are fetched first, because {because}") == last
    store.close()


def test_a_host_whose_patterns_all_repeat_themselves_counts_less() -> None:
    discounts = Discounts()
    seen = []
    for folder in "abcdefg":
        seen.append(discounts.halvings(f"http://copy.example/{folder}/1"))
        for i in range(3):
            count(discounts, f"http://copy.example/{folder}/{i}", repeats=True)
    assert seen[:2] == [0, 0]  # one folder is not the host
    assert seen[2:] == sorted(seen[2:])
    assert seen[-1] == 2


def test_a_pattern_that_brings_new_pages_counts_fully_on_a_host_that_repeats_itself() -> None:
    discounts = Discounts()
    for i in range(60):
        count(discounts, f"http://a.example/people/p{i}", repeats=False)
        for order in "NMSD":
            count(discounts, f"http://a.example/people/?C={order}&n={i}", repeats=True)
    assert discounts.halvings("http://a.example/people/?C=N&n=99") > 3
    assert discounts.halvings("http://a.example/people/p99") == 0
    assert discounts.halvings("http://a.example/elsewhere/") == 0
    assert discounts.halvings("http://b.example/") == 0


def test_endless_links_of_low_scores_sink_among_their_like() -> None:
    discounts = Discounts()
    for i in range(600):
        count(discounts, f"http://a.example/?day={i}", predicted=0.02, relevance=0.0)
        count(discounts, f"http://b.example/?id={i}", predicted=0.02, relevance=0.02)
    assert discounts.halvings("http://a.example/?day=601") > 0
    assert discounts.halvings("http://b.example/?id=601") == 0


def test_repeats_sink_although_new_pages_are_better_than_predicted() -> None:
    discounts = Discounts()
    for i in range(200):
        count(discounts, f"http://a.example/?v={i}", predicted=0.1, repeats=i % 5 > 0)
    assert discounts.halvings("http://a.example/?v=201") == 2


def test_scores_that_were_corrected_count_fully_again() -> None:
    discounts = Discounts()
    steps = []
    for i in range(500):
        told = {"predicted": 0.9} if i < 50 else {"predicted": 0.1}
        count(discounts, f"http://a.example/?v={i}", relevance=0.1, **told)
        steps.append(discounts.halvings("http://a.example/?v=500"))
    assert max(steps) == 2
    assert steps[-1] == 0


def test_a_redirect_counts_like_its_target() -> None:
    discounts = Discounts()
    for i in range(60):
        count(discounts, f"http://old.example/{i}", moved=True, relevance=0.0)
        target = f"http://new.example/{i}"
        discounts.count(
            target,
            f"http://old.example/{i}",
            predicted=None,
            relevance=0.1 if i > 5 else 0.9,
            moved=False,
            repeats=False,
        )
        if i == 5:
            assert not discounts.halvings("http://old.example/next")
    assert discounts.halvings("http://old.example/next") > 0
    for i in range(60):
        count(discounts, f"http://log.example/?in={i}", moved=True, relevance=0.0)
    assert discounts.halvings("http://log.example/?in=61") > 3


def test_another_topic_begins_without_discounts(tmp_path: Path) -> None:
    opened = open_crawl(tmp_path, calendar(), "/")
    run(opened, 80)
    month = opened.urls.get(at("/calendar/?month=299"))
    assert month is not None
    given_out(opened)
    assert opened.frontier.halved_score(month) == 0.45
    for part in opened.parts:
        part.reset()
    assert opened.frontier.halved_score(month) == 0.9
    opened.close("over")


def test_discounting_many_is_done_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_MAX_DISCOUNTED", 10)
    web = Shelf()
    web.page("/", "jazz", *(f"/go?n={i}" for i in range(38)), at("b/last"))
    for i in range(38):
        web.page(f"/go?n={i}", f"nothing {word(i)}")
    web.page("b/last", "nothing")
    opened = open_crawl(tmp_path, web, "/")
    run(opened, 11)
    for _ in range(2):
        assert opened.next(0.0) is None
        assert opened.is_waiting
    fetch = given_out(opened)
    assert fetch.url == at("b/last")
    assert fetch.score == 0.9
    assert not opened.is_waiting
    opened.close("over")
