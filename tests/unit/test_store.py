"""The crawl store: opening, refusing, and writing off the event loop."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from focuscrawl.crawl import CrawlFolder
from focuscrawl.errors import UserError
from focuscrawl.store import CrawlStore, NewUrl, PageRow, StoreWriter, VisitRecord
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, SCHEMA_VERSION, UNFOLLOWED, LinkRow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    made = CrawlStore.create(tmp_path / "crawl.db", {"topic": "/A"})
    yield made
    made.close()


def page(seq: int, url: int) -> PageRow:
    return PageRow(
        seq=seq,
        url=url,
        status=200,
        relevance=0.25,
        topic="/A",
        score=0.5,
        fetched_at="2026-01-01T00:00:00.000+00:00",
        content_type="text/html",
        size=10,
    )


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


def rows(store: CrawlStore, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in store.rows(sql)]


def test_a_store_keeps_what_it_was_made_for(store: CrawlStore, tmp_path: Path) -> None:
    expected = {"schema_version": str(SCHEMA_VERSION), "topic": "/A"}
    assert store.identity() == expected
    again = CrawlStore.open(tmp_path / "crawl.db")
    assert again.identity() == expected
    again.close()


def test_what_a_folder_is_called_does_not_say_how_it_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "50 %?mode=rwc&x#%20"
    folder.mkdir()
    CrawlStore.create(folder / "crawl.db", {"topic": "/A"}).close()
    for read_only in (True, False):
        with closing(CrawlStore.open(folder / "crawl.db", read_only=read_only)) as store:
            assert store.identity()["topic"] == "/A"
    assert list(tmp_path.iterdir()) == [folder]


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
            page=page(1, 0),
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
    writer = StoreWriter(store)
    writer.put(seeds(QUEUED, QUEUED))
    writer.put(VisitRecord(page=page(1, 0), links=[LinkRow(0, 0, 1, "one", 0, 0.5, 0)]))
    writer.close()
    writer = StoreWriter(store)
    # the page is new, the link is not: neither may be written
    broken = VisitRecord(page=page(2, 1), links=[LinkRow(0, 0, 1, "again", 0, 0.5, 0)])
    writer.put(broken)
    writer.close()
    assert isinstance(writer.failure, sqlite3.IntegrityError)
    assert rows(store, "SELECT seq FROM pages") == [(1,)]


def test_a_backlog_holds_the_crawl_back(store: CrawlStore) -> None:
    writer = StoreWriter(store, backlog=3)
    with closing(sqlite3.connect(store.where)) as other:
        other.execute("BEGIN IMMEDIATE")  # somebody else writes: the writer has to wait
        writer.put(seeds(QUEUED))
        for _ in range(5):
            writer.put(VisitRecord(events=[(0, "note", "waits")]))
        full_while_waiting = writer.full
        other.rollback()
    writer.close()
    assert full_while_waiting
    assert not writer.full
    assert rows(store, "SELECT count(*) FROM events") == [(6,)]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no crawl"):
        CrawlStore.open(tmp_path / "crawl.db")
    (tmp_path / "crawl.db").write_bytes(b"Dear diary, this is no database at all. " * 50)
    with pytest.raises(UserError, match="is no crawl store"):
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
    with pytest.raises(UserError, match="being crawled by another process"):
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
