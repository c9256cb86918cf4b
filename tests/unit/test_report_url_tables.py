"""Tables of pages and waiting URLs: every part of every order, filters, searches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.errors import UserError
from focuscrawl.report import url_tables
from focuscrawl.report.url_lookup import PageLinks
from focuscrawl.report.url_tables import (
    ORDERS,
    UrlFilter,
    count_rows,
    frontier_top,
    list_duplicates,
    list_rows,
    map_hosts,
    open_sorted_copy,
    sql_of,
    write_sorted_copy,
)
from focuscrawl.store import CrawlStore

from .small_crawl import put

if TYPE_CHECKING:
    from focuscrawl.foundation.databases import Database

PAGES, WAITING, HOSTS, LINKS = 23, 31, 3, 4
AGAIN = 5  # links found when the third page was fetched again, after the tenth


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrawlStore]:
    """A store whose links are numbered in the order of fetches, but for a second one of a hub."""
    path = tmp_path_factory.mktemp("store") / "crawl.db"
    with closing(CrawlStore.create(path, {"topic": "/A"})) as store:
        put(store, _rows())
        yield store


@pytest.fixture(scope="module")
def connection(store: CrawlStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("sorted") / "sorted.db"
    write_sorted_copy(store, path)
    with open_sorted_copy(store, path) as connection:
        yield connection


def _rows() -> dict[str, list[dict[str, Any]]]:
    hosts = [{"id": n, "name": f"{'cba'[n]}.example"} for n in range(HOSTS)]
    urls = [
        {
            "id": n,
            "url": f"http://{'cba'[n % HOSTS]}.example/page-{n}%_{n % 7}",
            "host": n % HOSTS,
            "depth": 0,
            "score": None if n < 2 else (n * 5 % 8) / 8,
            "state": 1 if n < PAGES else (0, 2, 3)[n % 3],
        }
        for n in range(PAGES + WAITING)
    ]
    pages = [
        {
            "seq": n + 1,
            "url": n,
            "status": 404 if n % 10 == 9 else 200,
            "relevance": 0.0 if n % 10 == 9 else (n * 3 % 5) / 5,
            "score": None if n < 2 else (n * 5 % 8) / 8,
            "fetched_at": "2026-01-01T00:00:00+00:00",
            "size": 1,
            "title": f"Title {n} of Wheels",
            "digest": None if n % 10 == 9 else bytes(16),
            "duplicate_of": 4 if n in (11, 13) else None,
            "links": LINKS,
            "dropped": 0,
        }
        for n in range(PAGES)
    ]
    links: list[dict[str, Any]] = []
    again = 0
    for source in range(PAGES):
        if source == 10:
            again = len(links)
            links += [_link(len(links) + i, 2, 40 + i) for i in range(AGAIN)]
        links += [_link(len(links) + i, source, (source + i * i) % 50) for i in range(LINKS)]
    revisit = {"id": 1, "url": 2, "asked_at": 9, "seq": 10, "status": 200, "relevance": 1.0,
               "fetched_at": "2026-01-01T00:00:00+00:00", "size": 1, "links": AGAIN,
               "first_link": again}  # fmt: skip
    return {"host": hosts, "url": urls, "page": pages, "link": links, "revisit": [revisit]}


def _link(number: int, source: int, target: int) -> dict[str, Any]:
    return {"id": number, "source": source, "target": target, "anchor": f"{source}-{target}",
            "dom_position": 0, "score": 0.5, "model_version": 0}  # fmt: skip


@pytest.mark.parametrize("order", [*ORDERS["pages"]])
def test_parts_of_pages_make_the_whole_forwards_and_backwards(
    connection: Database, order: str
) -> None:
    whole = list_rows(connection, "pages", UrlFilter(order=order)).rows
    keys = {
        "newest": lambda row: -row["seq"],
        "oldest": lambda row: row["seq"],
        "relevance": lambda row: (-row["relevance"], -row["seq"]),
        "score": lambda row: (row["score"] is not None, -(row["score"] or 0), -row["seq"]),
        "host": lambda row: (row["host"], row["seq"]),
    }
    assert len(whole) == PAGES
    assert whole == sorted(whole, key=keys[order])
    found, after = list[dict[str, Any]](), ""
    while True:
        part = list_rows(connection, "pages", UrlFilter(order=order), after=after, n=7)
        if after:
            earlier = list_rows(
                connection, "pages", UrlFilter(order=order), before=part.before or "", n=7
            )
            assert earlier.rows == found[-7:]
        found += part.rows
        if part.after is None:
            break
        after = part.after
    assert found == whole


@pytest.mark.parametrize("order", [*ORDERS["frontier"]])
def test_parts_of_the_frontier_make_the_whole(connection: Database, order: str) -> None:
    whole = list_rows(connection, "frontier", UrlFilter(order=order)).rows
    found, after = list[dict[str, Any]](), ""
    while True:
        part = list_rows(connection, "frontier", UrlFilter(order=order), after=after, n=10)
        found += part.rows
        if part.after is None:
            break
        after = part.after
    assert found == whole
    assert {row["number"] for row in whole} == set(range(PAGES, PAGES + WAITING))
    assert count_rows(connection) == (PAGES, WAITING, HOSTS)


def test_an_order_can_be_reversed(connection: Database) -> None:
    whole = list_rows(connection, "pages", UrlFilter(order="score")).rows
    assert list_rows(connection, "pages", UrlFilter(order="-score")).rows == whole[::-1]
    with pytest.raises(UserError, match="order '--score' is invalid"):
        list_rows(connection, "pages", UrlFilter(order="--score"))


@pytest.mark.parametrize("order", [*ORDERS["hosts"]])
def test_hosts_are_counted_and_sorted(connection: Database, order: str) -> None:
    pages = list_rows(connection, "pages", UrlFilter()).rows
    waiting = list_rows(connection, "frontier", UrlFilter(kind="queued")).rows
    rows = list_rows(connection, "hosts", UrlFilter(order=order)).rows
    for row in rows:
        fetches = [page for page in pages if page["host"] == row["name"]]
        relevant = sum(page["relevance"] > 0.5 for page in fetches)
        assert (row["fetches"], row["relevant"]) == (len(fetches), relevant)
        assert row["share"] == pytest.approx(relevant / len(fetches))
        assert row["queued"] == sum(url["host"] == row["name"] for url in waiting)
    assert [row[order] for row in rows] == sorted(
        (row[order] for row in rows), reverse=order != "name"
    )
    assert len(rows) == HOSTS
    assert [
        row["name"] for row in list_rows(connection, "hosts", UrlFilter(search="B.ex")).rows
    ] == ["b.example"]


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("pages", UrlFilter()),
        ("pages", UrlFilter(kind="page", least=0.2, search="wheels 1%", order="-score")),
        ("pages", UrlFilter(host="B.exam'ple")),
        ("pages", UrlFilter(host="b", status=200, most=float("inf"), order="host")),
        ("frontier", UrlFilter(order="-newest")),
        ("frontier", UrlFilter(kind="queued", host="a", least=0.1, search="page")),
        ("hosts", UrlFilter(least=2, order="share")),
        ("hosts", UrlFilter(search="example", order="-name")),
    ],
)
def test_the_sql_of_a_table_gives_its_rows(
    store: CrawlStore, connection: Database, table: str, wanted: UrlFilter
) -> None:
    key = "name" if table == "hosts" else "url"
    rows = [row[key] for row in list_rows(connection, table, wanted).rows]
    assert [row[key] for row in store.rows(sql_of(table, wanted))] == rows


def test_filters(connection: Database) -> None:
    def seqs(**wanted: Any) -> set[int]:
        return {row["seq"] for row in list_rows(connection, "pages", UrlFilter(**wanted)).rows}

    rows = list_rows(connection, "pages", UrlFilter()).rows
    relevant = {row["seq"] for row in rows if 0.4 <= row["relevance"] <= 0.6}
    assert seqs(least=0.4, most=0.6) == relevant
    assert seqs(host="b.ex") == {n + 1 for n in range(PAGES) if n % HOSTS == 1}
    assert seqs(host="_") == set()  # no wildcard
    assert seqs(status=404) == seqs(kind="nothing") == {10, 20}
    assert seqs(kind="duplicate", order="relevance") == {12, 14}
    states = {
        row["state"] for row in list_rows(connection, "frontier", UrlFilter(kind="excluded")).rows
    }
    assert states == {"excluded"}


def test_a_search_goes_on_where_it_stopped(
    connection: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(url_tables, "_BATCH", 4)
    monkeypatch.setattr(url_tables, "_SEARCH_SECONDS", 0.0)
    wanted = UrlFilter(search="wheels E-1", order="relevance")
    found, after, searched = list[int](), "", 0
    while True:
        part = list_rows(connection, "pages", wanted, after=after)
        found += [row["seq"] for row in part.rows]
        assert part.searched is not None
        searched += part.searched
        if part.after is None:
            break
        after = part.after
    assert set(found) == {2, *range(11, 21)}  # pages 1 and 10 to 19
    assert len(found) == len(set(found))
    assert searched == PAGES
    assert list_rows(connection, "pages", UrlFilter(search="%")).searched == 4
    monkeypatch.undo()
    assert [
        row["seq"] for row in list_rows(connection, "pages", UrlFilter(search="7%_0")).rows
    ] == [8]


def test_what_makes_no_sense_is_refused(connection: Database) -> None:
    with pytest.raises(UserError, match="is invalid: use one of newest"):
        list_rows(connection, "pages", UrlFilter(order="seq; DROP TABLE page"))
    with pytest.raises(UserError, match="is invalid: use one of queued"):
        list_rows(connection, "frontier", UrlFilter(kind="fetched"))
    for place in ("x", "1:x", "nan:1", f"1:{1 << 63}"):
        with pytest.raises(UserError, match="cursor"):
            list_rows(connection, "pages", UrlFilter(), after=place)


def test_duplicates(connection: Database) -> None:
    assert [row["seq"] for row in list_duplicates(connection, 4)] == [12, 14]


def test_links_of_a_page_are_found_by_their_numbers(store: CrawlStore) -> None:
    for source in range(PAGES):
        found = PageLinks.of(store, source)
        expected = [f"{source}-{(source + i * i) % 50}" for i in range(LINKS)]
        if source == 2:
            expected += [f"2-{40 + i}" for i in range(AGAIN)]
        assert [link["anchor"] for link in found.out] == expected
    assert PageLinks.of(store, PAGES + 1).out == []
    into = PageLinks.of(store, 10)
    assert into.n_into == len(into.into) > 0
    assert all(link["anchor"].endswith("-10") for link in into.into)
    assert PageLinks.of(store, 2, n=5).more_out


def test_the_map_counts_links_between_hosts(store: CrawlStore) -> None:
    found = map_hosts(store)
    assert sum(host.fetches for host in found.hosts) == PAGES
    rows = _rows()
    between = sum(each["source"] % HOSTS != each["target"] % HOSTS for each in rows["link"])
    assert sum(n for *_, n in found.links) == between == sum(host.out for host in found.hosts)
    assert map_hosts(store, most=1).links == []


def test_start_urls_come_before_links_and_these_by_score(tmp_path: Path) -> None:
    urls = [(0, None, 1), (1, 0.5, 0), (2, 0.9, 0), (3, None, 0), (4, 0.9, 0), (5, 1.0, 2)]
    with closing(CrawlStore.create(tmp_path / "crawl.db", {})) as store:
        put(store, {"url": [
            {"id": n, "url": f"u{n}", "host": 0, "depth": 0, "score": score, "state": state}
            for n, score, state in urls
        ]})  # fmt: skip
        assert frontier_top(store) == [("u3", None), ("u2", 0.9), ("u4", 0.9), ("u1", 0.5)]
        assert frontier_top(store, 1) == [("u3", None)]
