"""How a crawl is doing, by its store alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from focuscrawl.crawl.crawl_folder import CrawlFolder, CrawlPhase, FileControl
from focuscrawl.report.outcomes import run_state
from focuscrawl.report.plain_text import pluralize
from focuscrawl.report.status import Status
from focuscrawl.report.summary import Summary
from focuscrawl.store import (
    CrawlStore,
    ModelRow,
    NewUrl,
    PageRow,
    StoreWriter,
    VisitRecord,
)
from focuscrawl.store.history import History, StoredEvent
from focuscrawl.store.schema import FETCHED, QUEUED

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    about = {"topic": "/A", "strategy": "apprentice", "web_name": "the live Web"}
    made = CrawlStore.create(tmp_path / "crawl.db", about)
    yield made
    made.close()


@pytest.fixture
def folder(store: CrawlStore) -> Iterator[CrawlFolder]:
    """Return the folder of the crawl."""
    made = CrawlFolder(Path(store.location).parent)
    yield made
    made.release()


def write(store: CrawlStore, *records: VisitRecord) -> None:
    writer = StoreWriter(store)
    for record in records:
        writer.put(record)
    writer.close()


def page(seq: int, ago: float, relevance: float) -> PageRow:
    at = (NOW - timedelta(seconds=ago)).isoformat(timespec="milliseconds")
    return PageRow(seq, seq, 200, relevance, None, None, at, "text/html", 10)


def fetched(ages: list[float], waiting: int = 0) -> list[VisitRecord]:
    """Records of fetches so many seconds ago, relevant by turns; and of URLs that wait."""
    count = len(ages)
    urls = [
        NewUrl(i, f"http://{i % 2}.example/{i}", i % 2, 0, None, 0.5, FETCHED if i <= count else 0)
        for i in range(1, count + waiting + 1)
    ]
    assert QUEUED == 0
    hosts = [(0, "0.example"), (1, "1.example")]
    start = VisitRecord(hosts=hosts, urls=urls, events=[(0, "start", "")])
    pages = [page(i, age, float(i % 2)) for i, age in enumerate(ages, 1)]
    return [start, *(VisitRecord(page=each) for each in pages)]


def test_a_crawl_under_way(store: CrawlStore, folder: CrawlFolder) -> None:
    folder.acquire(CrawlPhase.CRAWLING)
    write(store, *fetched([120.0, 59.0, 30.0, 3.0], waiting=5))
    model = ModelRow(version=2, trained_at_seq=3, instances=9, metrics="{}", state=b"")
    write(store, VisitRecord(model=model))
    status = Status.of(store, now=NOW)
    assert (status.state, status.fetched, status.harvest_rate) == ("crawling", 4, 0.5)
    assert (status.waiting, status.hosts) == (5, 2)
    assert (status.model, status.behind) == (2, 1)
    assert status.recent.pages_per_second == pytest.approx(3 / 60)
    assert (status.recent.harvest_rate, status.recent.idle) == (0.5, 3.0)
    heading, crawl, recent = status.text().splitlines()
    assert heading == "apprentice of /A on the live Web: crawling"
    assert "5 URLs queued on 2 hosts" in crawl
    assert recent == (
        "0.1 pages/s in the last minute, harvest rate of the last 100 0.500, last fetch 3 s ago"
    )
    assert json.loads(json.dumps(status.to_dict()))["recent"]["harvest_rate"] == 0.5


def test_a_crawl_that_has_just_begun_is_measured_from_its_first_fetch(store: CrawlStore) -> None:
    write(store, *fetched([4.0, 3.0, 2.0, 1.0]))
    assert Status.of(store, now=NOW).recent.pages_per_second == 1.0


def test_a_break_is_no_slow_fetch(store: CrawlStore) -> None:
    write(store, *fetched([7200.0, 4.0, 2.0]))
    assert Status.of(store, now=NOW).recent.pages_per_second == 0.5


@pytest.mark.parametrize(
    ("events", "doing", "state"),
    [
        ([], CrawlPhase.CRAWLING, "crawling"),
        (["paused"], CrawlPhase.CRAWLING, "paused"),
        (["paused", "resumed"], CrawlPhase.CRAWLING, "crawling"),
        (["paused", "start"], CrawlPhase.CRAWLING, "crawling"),
        (["stop"], CrawlPhase.STARTING, "starting"),
        (["stop"], CrawlPhase.CRAWLING, "starting"),  # its start is about to be written
        (["stop"], CrawlPhase.REJUDGING, "judging pages again"),
        ([], CrawlPhase.STOPPING, "stopping"),
        (["stop"], CrawlPhase.STOPPING, "stopping"),
        ([], None, "killed; the same command resumes the crawl"),
        (["stop", "start", "paused"], None, "killed; the same command resumes the crawl"),
        (["stop"], None, "the budget of 1 fetches is spent"),
    ],
)
def test_states(
    store: CrawlStore, folder: CrawlFolder, events: list[str], doing: CrawlPhase | None, state: str
) -> None:
    write(store, *fetched([1.0]), *(VisitRecord(events=[(1, e, "budget")]) for e in events))
    if doing is not None:
        folder.acquire(doing)
    status = Status.of(store, now=NOW)
    assert (status.state, status.running) == (state, doing is not None)
    assert (status.is_stopped, status.is_paused) == (doing is None, state == "paused")
    stopped = Summary.of(store).stopped
    assert stopped == (state if doing is None else f"not yet: {state}")


def test_a_process_that_has_just_locked_the_folder_is_starting(folder: CrawlFolder) -> None:
    folder.acquire(CrawlPhase.REJUDGING)
    folder.set_phase(CrawlPhase.STOPPING)
    assert folder.phase is CrawlPhase.STOPPING
    (folder.path / folder.LOCK).write_text("")  # as it is before the first phase is written
    assert FileControl(folder.path).is_starting


def test_a_crawl_that_ends_while_it_is_looked_at_was_not_killed(
    store: CrawlStore, folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, *fetched([1.0]))
    folder.acquire(CrawlPhase.CRAWLING)
    events = History.events

    def ends_after(history: History, *kinds: str, last: int | None = None) -> list[StoredEvent]:
        found = events(history, *kinds, last=last)
        monkeypatch.setattr(History, "events", events)
        write(store, VisitRecord(events=[(1, "stop", "budget")]))
        folder.release()
        return found

    monkeypatch.setattr(History, "events", ends_after)
    assert run_state(store) == (False, "the budget of 1 fetches is spent")


def test_an_ended_crawl_says_why(store: CrawlStore) -> None:
    write(store, *fetched([400.0]), VisitRecord(events=[(1, "stop", "budget")]))
    status = Status.of(store, now=NOW)
    assert status.state == "the budget of 1 fetches is spent"
    assert status.recent.pages_per_second == 0.0
    assert status.is_stopped


def test_before_the_first_fetch(store: CrawlStore, folder: CrawlFolder) -> None:
    folder.acquire()
    status = Status.of(store, now=NOW)
    assert (status.state, status.fetched) == ("starting", 0)
    assert status.text().endswith("harvest rate of the last 100 -, last fetch -")


def test_the_one_row_of_a_statement(store: CrawlStore) -> None:
    write(store, *fetched([3.0, 2.0]))
    assert store.row("SELECT count(*) AS n FROM page")["n"] == 2
    with pytest.raises(ValueError, match="too many values"):
        store.row("SELECT seq FROM page")


@pytest.mark.parametrize(
    ("n", "thing", "words"),
    [(1, "page", "1 page"), (1200, "page", "1,200 pages"), (2, "fetch", "2 fetches")],
)
def test_counted(n: int, thing: str, words: str) -> None:
    assert pluralize(n, thing) == words
