"""The crawl store: opening, refusing, writing off the event loop, records that SQLite refuses."""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.store import CrawlStore, NewUrl, RevisitRow, StoreWriter, VisitRecord
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, SCHEMA_VERSION, UNFOLLOWED, LinkRow

from .small_crawl import page_row, rows

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


def seeds(*states: int) -> VisitRecord:
    """A record of the URLs 0, 1, ... of one host."""
    return VisitRecord(
        hosts=[(0, "a.example")],
        urls=[
            NewUrl(i, f"http://a.example/{i}", 0, 0, None, None if i == 0 else i / 10, state)
            for i, state in enumerate(states)
        ],
        events=[(0, "seeds", "some")],
    )


def test_a_store_keeps_what_it_was_made_for(store: CrawlStore, tmp_path: Path) -> None:
    expected = {"schema_version": str(SCHEMA_VERSION), "topic": "/A"}
    assert store.identity() == expected
    again = CrawlStore.open(tmp_path / "crawl.db")
    assert again.identity() == expected
    again.close()


def test_what_is_read_while_a_store_is_closed_is_read_to_its_end(store: CrawlStore) -> None:
    write(store, [seeds(QUEUED, QUEUED)])
    found = store.rows("SELECT id FROM url ORDER BY id")
    assert next(found)["id"] == 0
    store.close()
    assert [*map(tuple, found)] == [(1,)]
    assert rows(store, "SELECT id FROM url") == [(0,), (1,)]


def test_a_store_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    # what a process killed while it made a store leaves behind
    for name in (".crawl.db.7.draft", ".crawl.db.7.draft-wal", ".crawl.db.7.draft-shm"):
        (tmp_path / name).write_bytes(b"half of something")
    store = CrawlStore.create(tmp_path / "crawl.db", {"topic": "/A"})
    assert store.identity()["topic"] == "/A"
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.db"]


def test_views_show_numbers_as_names(store: CrawlStore) -> None:
    writer = StoreWriter(store)
    writer.put(seeds(QUEUED, UNFOLLOWED, EXCLUDED))
    writer.put(
        VisitRecord(
            page=page_row(1, 0),
            urls=[NewUrl(3, "http://a.example/3", 0, 1, 0, 0.25, QUEUED)],
            links=[LinkRow(0, 0, 3, "three", 7, 0.25, 0), LinkRow(1, 0, 1, "one", 8, None, 0)],
            changes=[(0, None, FETCHED)],
        )
    )
    writer.close()
    assert rows(store, "SELECT seq, url, referrer, depth, bytes FROM pages") == [
        (1, "http://a.example/0", None, 0, 10)
    ]
    assert rows(store, "SELECT * FROM links ORDER BY dom_position") == [
        ("http://a.example/0", "http://a.example/3", "three", 7, 0.25, 0),
        ("http://a.example/0", "http://a.example/1", "one", 8, None, 0),
    ]
    assert rows(store, "SELECT * FROM frontier ORDER BY url") == [
        ("http://a.example/1", "a.example", 0.1, "unfollowed"),
        ("http://a.example/2", "a.example", 0.2, "excluded"),
        ("http://a.example/3", "a.example", 0.25, "queued"),
    ]
    assert rows(store, "SELECT seq, kind, detail FROM events") == [(0, "seeds", "some")]


def test_records_are_written_in_order_and_the_last_change_stays(store: CrawlStore) -> None:
    writer = StoreWriter(store)
    writer.put(seeds(QUEUED, QUEUED))
    for step in range(1, 300):
        writer.put(VisitRecord(changes=[(1, step / 1000, QUEUED)]))
    writer.close()
    writer.close()
    assert writer.failure is None
    assert rows(store, "SELECT score FROM url WHERE id = 1") == [(0.299,)]


def test_a_writer_that_fails_says_so_and_writes_nothing_more(store: CrawlStore) -> None:
    link = LinkRow(0, 0, 1, "one", 0, 0.5, 0)
    write(store, [seeds(QUEUED, QUEUED), VisitRecord(page=page_row(1, 0), links=[link])])
    # the page is new, the link is not: neither may be written
    writer = write(store, [VisitRecord(page=page_row(2, 1), links=[link])])
    assert isinstance(writer.failure, sqlite3.IntegrityError)
    assert rows(store, "SELECT seq FROM pages") == [(1,)]


def test_a_backlog_holds_the_crawl_back(store: CrawlStore) -> None:
    writer = StoreWriter(store, backlog=3)
    with closing(sqlite3.connect(store.location)) as other:
        other.execute("BEGIN IMMEDIATE")  # somebody else writes: the writer has to wait
        writer.put(seeds(QUEUED))
        for _ in range(5):
            writer.put(VisitRecord(events=[(0, "note", "waits")]))
        full_while_waiting = writer.is_full
        other.rollback()
    writer.close()
    assert full_while_waiting
    assert not writer.is_full
    assert rows(store, "SELECT count(*) FROM events") == [(6,)]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no crawl"):
        CrawlStore.open(tmp_path / "crawl.db")
    (tmp_path / "crawl.db").write_bytes(b"Dear diary, this is no database at all. " * 50)
    with pytest.raises(UserError, match="is not a crawl store"):
        CrawlStore.open(tmp_path / "crawl.db")


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, SCHEMA_VERSION - 1, 0])
def test_other_versions_are_refused(tmp_path: Path, version: int) -> None:
    folder = CrawlFolder(tmp_path)
    folder.open_store({"topic": "/A"}, {}).close()
    folder.release()
    with closing(sqlite3.connect(folder.store_path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [version])
    with pytest.raises(UserError, match=f"schema version {version}, .*: crawl again"):
        folder.open_store({"topic": "/A"}, {})


def test_a_folder_belongs_to_one_crawl_and_one_process_at_a_time(tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path / "deep" / "crawl")
    store = folder.open_store({"topic": "/A"}, {"note": "for people"})
    assert store.identity()["note"] == "for people"
    with pytest.raises(UserError, match="in use by another process"):
        CrawlFolder(folder.path).open_store({"topic": "/A"}, {})
    store.close()
    folder.release()
    with pytest.raises(UserError, match="its topic is /A, not /B"):
        CrawlFolder(folder.path).open_store({"topic": "/B"}, {})
    again = CrawlFolder(folder.path)
    again.open_store({"topic": "/A"}, {"note": "other"}).close()
    again.release()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        CrawlFolder(tmp_path / "file" / "crawl").open_store({}, {})


def visit(seq: int, **unfit: Any) -> VisitRecord:
    """The fetch of URL `seq` - 1, on which URL `seq` is found."""
    return VisitRecord(
        page=page_row(seq, seq - 1, **{"title": "a page", "links": 1} | unfit),
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
