"""Small crawls for the tests of reports, written through the store's own writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from focuscrawl.foundation.urls import host
from focuscrawl.store import CrawlStore, NewUrl, PageRow, StoreWriter, VisitRecord, schema
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED, LinkRow

IDENTITY = {"topic": "/Home/Bees", "strategy": "best-first", "web": "live", "critic": "c"}
BEGAN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
HOSTILE = "</a><script>alert(1)</script>\x1b]0;x\x07"


def put(store: CrawlStore, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """Insert rows by the names of their tables; columns that a row leaves out are NULL."""
    with store.connection() as connection:
        for table, given in rows.items():
            columns = [column.name for column in schema.layout().tables[table]]
            statement = f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})"
            connection.executemany(statement, ([row.get(c) for c in columns] for row in given))


def page_row(seq: int, url: int, **columns: Any) -> PageRow:
    """A fetch of which only the `columns` matter."""
    about: dict[str, Any] = {
        "status": 200,
        "relevance": 0.25,
        "topic": "/A",
        "score": 0.5,
        "size": 10,
    }
    about |= {"fetched_at": "2026-01-01T00:00:00.000+00:00", "content_type": "text/html"}
    return PageRow(seq=seq, url=url, **about | columns)


def rows(store: CrawlStore, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in store.rows(sql)]


class Building:
    """A crawl being written, one record at a time."""

    def __init__(self, folder: Path, **identity: str) -> None:
        folder.mkdir()
        self.store = CrawlStore.create(folder / "crawl.db", IDENTITY | identity)
        self.writer = StoreWriter(self.store)
        self.urls: dict[str, int] = {}
        self.hosts: dict[str, int] = {}
        self.links = 0
        self.seq = 0
        self.clock = BEGAN

    def url(
        self,
        url: str,
        depth: int = 1,
        referrer: str | None = None,
        score: float | None = None,
        state: int = QUEUED,
    ) -> int:
        record = VisitRecord()
        name = host(url)
        if name not in self.hosts:
            self.hosts[name] = len(self.hosts)
            record.hosts.append((self.hosts[name], name))
        number = self.urls[url] = len(self.urls)
        found_on = None if referrer is None else self.urls[referrer]
        row = NewUrl(number, url, self.hosts[name], depth, found_on, score, state)
        record.urls.append(row)
        self.writer.put(record)
        return number

    def link(self, source: str, target: str, score: float | None, anchor: str = "more") -> None:
        row = LinkRow(self.links, self.urls[source], self.urls[target], anchor, 7, score, 3)
        self.links += 1
        self.writer.put(VisitRecord(links=[row]))

    def fetch(
        self,
        url: str,
        relevance: float = 0.0,
        *,
        status: int = 200,
        error: str | None = None,
        title: str | None = None,
        duplicate_of: str | None = None,
        canonical: str | None = None,
        after: float = 1.0,
    ) -> None:
        self.seq += 1
        self.clock += timedelta(seconds=after)
        number = self.urls[url] if url in self.urls else self.url(url, depth=0)
        row = page_row(
            self.seq,
            number,
            status=status,
            relevance=relevance,
            topic="/Home/Bees",
            fetched_at=self.clock.isoformat(timespec="milliseconds"),
            size=100,
            title=title,
            canonical=canonical,
            duplicate_of=None if duplicate_of is None else self.urls[duplicate_of],
            error=error,
            links=10,
            dropped=4,
        )
        self.writer.put(VisitRecord(page=row, changes=[(number, 0.25, FETCHED)]))

    def event(self, kind: str, detail: str) -> None:
        self.writer.put(VisitRecord(events=[(self.seq, kind, detail)]))

    def written(self) -> CrawlStore:
        self.writer.close()
        assert self.writer.failure is None
        return self.store


@contextmanager
def being_written(folder: Path, **identity: str) -> Iterator[Building]:
    """Begin a crawl in a folder that is not there, and close it at the end."""
    crawl = Building(folder, **identity)
    try:
        yield crawl
    finally:
        crawl.writer.close()
        crawl.store.close()


def bees(crawl: Building) -> CrawlStore:
    """Five fetches of five kinds, and one URL in every other state."""
    crawl.fetch("http://hive.example/", 0.9, title=f"Hive {HOSTILE}")
    crawl.url("http://hive.example/honey", 1, "http://hive.example/")
    crawl.link("http://hive.example/", "http://hive.example/honey", 0.9, "honey \x1b[1mnow")
    crawl.fetch("http://hive.example/honey", 0.7, title="Honey", canonical="http://hive.example/h")
    crawl.fetch("http://hive.example/copy", duplicate_of="http://hive.example/honey")
    crawl.fetch("http://road.example/moved", status=301)
    crawl.fetch("http://road.example/slow", status=0, error="TimeoutError: 30 s are over")
    crawl.url("http://hive.example/wax", 2, "http://hive.example/honey", 0.6)
    crawl.url("http://hive.example/comb", 2, "http://hive.example/honey", 0.6)
    crawl.url("http://hive.example/best", 2, "http://hive.example/honey", 0.8)
    crawl.url("http://hive.example/h", 1, "http://hive.example/", 0.1, EXCLUDED)
    crawl.url("http://hive.example/secret", 1, "http://hive.example/", 0.1, EXCLUDED)
    crawl.url("http://hive.example/login", 1, "http://hive.example/", None, UNFOLLOWED)
    crawl.event("excluded", "http://hive.example/secret: Forbidden by robots.txt")
    crawl.event("noindex", "Wax, unlisted")
    crawl.event("noindex", "Honey, unlisted")
    crawl.link("http://hive.example/honey", "http://hive.example/wax", 0.4, "wax")
    crawl.link("http://hive.example/", "http://hive.example/wax", None, "")
    crawl.link("http://hive.example/copy", "http://hive.example/honey", 0.99, "back")
    return crawl.written()
