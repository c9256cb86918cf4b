"""Records that SQLite refuses, among others that it takes; and errors that are no refusals."""

from __future__ import annotations

import logging
import math
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.store import CrawlStore, NewUrl, PageRow, RevisitRow, StoreWriter, VisitRecord
from focuscrawl.store.schema import FETCHED, QUEUED, LinkRow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = 20
HALF = "half of a \ud800 character"
UNFIT: dict[str, object] = {
    "status": 2**63,
    "size": -(2**70),
    "relevance": math.nan,
    "title": HALF,
    "topic": object(),
    "links": None,
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    made = CrawlStore.create(tmp_path / "crawl.db", {"topic": "/A"})
    yield made
    made.close()


def rows(store: CrawlStore, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in store.rows(sql)]


def visit(seq: int, **unfit: Any) -> VisitRecord:
    """The fetch of URL `seq` - 1, on which URL `seq` is found."""
    page = PageRow(
        seq=seq,
        url=seq - 1,
        status=200,
        relevance=0.25,
        topic="/A",
        score=0.5,
        fetched_at="2026-01-01T00:00:00.000+00:00",
        content_type="text/html",
        size=10,
        title="a page",
        links=1,
    )
    return VisitRecord(
        page=page._replace(**unfit),
        urls=[NewUrl(seq, f"http://a.example/{seq}", 0, seq, seq - 1, 0.5, QUEUED)],
        links=[LinkRow(seq - 1, seq - 1, seq, "next", 0, 0.5, 0)],
        changes=[(seq - 1, 0.5, FETCHED)],
        memo=b"memo",
        events=[(seq, "seen", "a page")],
    )


def start() -> VisitRecord:
    seed = NewUrl(0, "http://a.example/0", 0, 0, None, None, QUEUED)
    return VisitRecord(hosts=[(0, "a.example")], urls=[seed])


def write(store: CrawlStore, records: list[VisitRecord]) -> StoreWriter:
    writer = StoreWriter(store)
    for record in records:  # in one batch: the writer gathers them first
        writer.put(record)
    writer.close()
    return writer


@pytest.mark.parametrize("name", UNFIT)
def test_one_refused_record_costs_no_other(
    store: CrawlStore, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {4, 5, 13, PAGES}
    pages = [visit(n, **({name: UNFIT[name]} if n in bad else {})) for n in range(1, PAGES + 1)]
    with caplog.at_level(logging.ERROR):
        writer = write(store, [start(), *pages])
    assert writer.failure is None
    found = rows(store, "SELECT seq, status, relevance, title, error FROM page ORDER BY seq")
    assert [row[0] for row in found] == [*range(1, PAGES + 1)]
    for seq, status, relevance, title, error in found:
        if seq in bad:
            assert (status, relevance, title) == (0, 0.0, None)
            assert error.startswith("not stored: ")
            assert len(error) > 20  # why
        else:
            assert (status, relevance, title, error) == (200, 0.25, "a page", None)
    assert len(caplog.records) == len(bad)
    # URLs and hosts are numbered without a gap, and known to be fetched
    assert rows(store, "SELECT id FROM url ORDER BY id") == [(n,) for n in range(PAGES + 1)]
    assert rows(store, "SELECT id FROM url WHERE state = 0") == [(PAGES,)]
    kept = [(n - 1,) for n in range(1, PAGES + 1) if n not in bad]
    assert rows(store, "SELECT source FROM link ORDER BY id") == kept
    assert rows(store, "SELECT seq - 1 FROM memo ORDER BY seq") == kept
    assert len(rows(store, "SELECT id FROM events WHERE kind = 'seen'")) == PAGES


def test_events_are_told_as_far_as_they_can_be(store: CrawlStore) -> None:
    told = VisitRecord(events=[(0, "excluded", HALF), (0, "note", "whole")])
    assert write(store, [start(), told]).failure is None
    assert rows(store, "SELECT kind, detail FROM events") == [
        ("excluded", "half of a ? character"),
        ("note", "whole"),
    ]


def test_a_second_fetch_that_is_refused_is_one_that_failed(store: CrawlStore) -> None:
    done = RevisitRow(
        0, 0, 1, HALF, None, seq=1, status=2**70, relevance=0.5, links=1, first_link=0
    )
    waits = RevisitRow(1, 0, 1, HALF, None)
    again = VisitRecord(links=[LinkRow(0, 0, 0, "next", 0, 0.5, 0)], revisits=[done, waits])
    assert write(store, [start(), again]).failure is None
    found = rows(store, "SELECT id, seq, status, relevance, links, error, etag FROM revisit")
    assert [row[:5] for row in found] == [(0, 1, 0, None, 0), (1, None, None, None, 0)]
    assert found[0][5].startswith("not stored: ")
    assert found[1][5:] == (None, None)
    assert rows(store, "SELECT id FROM link") == []


def test_a_full_disk_is_no_refusal(store: CrawlStore) -> None:
    with store.connection() as connection:  # the one that the writer takes next
        ((pages,),) = connection.execute("PRAGMA page_count")
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")
    large = [visit(1, title="x" * 100_000), *(visit(n) for n in range(2, PAGES))]
    writer = write(store, [start(), *large])
    assert isinstance(writer.failure, sqlite3.OperationalError)
    assert "full" in str(writer.failure)
    assert rows(store, "SELECT * FROM page") == []


def test_what_is_refused_without_its_contents_is_the_store_s_trouble(store: CrawlStore) -> None:
    nameless = VisitRecord(hosts=[(0, None)])  # type: ignore[list-item]
    writer = write(store, [start(), nameless, visit(1)])
    assert isinstance(writer.failure, sqlite3.IntegrityError)
    assert rows(store, "SELECT * FROM page") == []
