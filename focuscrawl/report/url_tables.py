"""Pages and queued URLs of a crawl as tables: filtered, sorted, searched; its hosts."""

from __future__ import annotations

import json
import math
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.store.schema import FETCHED, QUEUED, STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from focuscrawl.foundation.databases import Database
    from focuscrawl.store import CrawlStore


#: what `sorted.page.kind` says came of a fetch
KINDS = ("page", "duplicate", "redirect", "nothing")
_SEED_SCORE = "9e999"  # of what has no score: a seed comes before every link

_TABLES = f"""
CREATE TABLE sorted.host (place INTEGER PRIMARY KEY, id INTEGER NOT NULL, name TEXT NOT NULL);
INSERT INTO sorted.host (id, name) SELECT id, name FROM main.host ORDER BY name;
CREATE INDEX sorted.host_id ON host (id, place);
CREATE TABLE sorted.page (seq INTEGER PRIMARY KEY, host INTEGER, relevance REAL, score REAL,
                          status INTEGER, kind INTEGER);
INSERT INTO sorted.page
    SELECT p.seq, (SELECT place FROM sorted.host WHERE id = u.host), p.relevance,
           coalesce(p.score, {_SEED_SCORE}), p.status,
           CASE WHEN p.duplicate_of IS NOT NULL THEN 1 WHEN p.digest IS NOT NULL THEN 0
                WHEN p.status BETWEEN 300 AND 399 OR p.error LIKE 'meta refresh%' THEN 2
                ELSE 3 END
    FROM main.page p JOIN main.url u ON u.id = p.url ORDER BY p.seq;
CREATE INDEX sorted.page_relevance ON page (relevance, seq, host, status, kind);
CREATE INDEX sorted.page_score ON page (score, seq, host, status, kind, relevance);
CREATE INDEX sorted.page_host ON page (host, seq, status, kind, relevance);
CREATE TABLE sorted.repeat (original INTEGER, seq INTEGER, PRIMARY KEY (original, seq))
    WITHOUT ROWID;
INSERT INTO sorted.repeat SELECT duplicate_of, seq FROM main.page WHERE duplicate_of IS NOT NULL;
CREATE TABLE sorted.waiting (id INTEGER PRIMARY KEY, host INTEGER, score REAL, state INTEGER);
INSERT INTO sorted.waiting
    SELECT u.id, h.place, coalesce(u.score, {_SEED_SCORE}), u.state
    FROM main.url u JOIN sorted.host h ON h.id = u.host WHERE u.state <> {FETCHED} ORDER BY u.id;
CREATE INDEX sorted.waiting_score ON waiting (score, id, host, state);
CREATE INDEX sorted.waiting_host ON waiting (host, id, state, score);
CREATE TABLE sorted.total AS
    SELECT (SELECT count(*) FROM sorted.page) AS pages,
           (SELECT count(*) FROM sorted.waiting) AS waiting;
"""


ROWS = 100  #: of a part of a table
_BATCH = 5000  # rows that are searched at once
_SEARCH_SECONDS = 0.12  # seconds; who searches on asks again
_WORDS = 5  # that are searched for
_LONGEST = 200  # characters of what is searched for
UNFETCHED_STATES = tuple(state for code, state in enumerate(STATES) if code != FETCHED)
HOSTS = 50


def write_sorted_copy(store: CrawlStore, path: Path) -> None:
    """Write the sorted copy of a crawl to `path`, where nothing is yet.

    Re-scoring changes the score of every URL that waits: an index of the store itself would slow
    the crawl down. So numbers, hosts and scores are copied, sorted, and joined with the store when
    rows are read; texts stay where they are. A copy says how the crawl was when it was made. It
    takes some seconds for a million URLs, and none of the interpreter's time; memory does
    not grow with the crawl.

    Parameters
    ----------
    store : of a crawl in a folder, which may be running
    """
    with open_sorted_copy(store, path) as connection:
        # not kept if the machine stops: nothing is lost with it
        connection.execute("PRAGMA sorted.journal_mode = OFF")
        connection.execute("PRAGMA sorted.synchronous = OFF")
        for statement in _TABLES.split(";\n"):  # each may take as many steps as all else
            connection.execute(statement)


@contextmanager
def open_sorted_copy(store: CrawlStore, path: Path) -> Iterator[Database]:
    """Open a store, as ``main``, with a copy that `write_sorted_copy` made, as ``sorted``."""
    with closing(store.reopen()) as reading, reading.connection() as connection:
        connection.execute("ATTACH ? AS sorted", (str(path),))
        yield connection


class QueuedUrl(NamedTuple):
    """A URL that waits, and its score; None: a start URL, which comes before every link."""

    url: str
    score: float | None


def frontier_top(store: CrawlStore, most: int = 20) -> list[QueuedUrl]:
    """Return the waiting URLs with the best scores, the best first; of equals the first found.

    It looks at every URL of the crawl: a second for a million. What is given out next also
    depends on which hosts have room.
    """
    query = """SELECT url, score FROM url WHERE state = ?
               ORDER BY score IS NOT NULL, score DESC, id LIMIT ?"""
    return [*map(QueuedUrl._make, store.rows(query, (QUEUED, most)))]


class _Order(NamedTuple):
    """Columns of the sorted copy: what rows are sorted by, and what tells them apart."""

    key: str
    number: str
    descending: bool


#: orders of pages by their names
PAGE_ORDERS = {
    "newest": _Order("seq", "seq", descending=True),
    "oldest": _Order("seq", "seq", descending=False),
    "relevance": _Order("relevance", "seq", descending=True),
    "score": _Order("score", "seq", descending=True),
    "host": _Order("host", "seq", descending=False),
}
#: orders of URLs that were not fetched
UNFETCHED_ORDERS = {
    "score": _Order("score", "id", descending=True),
    "newest": _Order("id", "id", descending=True),
    "oldest": _Order("id", "id", descending=False),
    "host": _Order("host", "id", descending=False),
}


class _Table(NamedTuple):
    """A table of the sorted copy, what is read of its rows, and what a word has to be in."""

    name: str
    select: str
    match: str


_Where: TypeAlias = "tuple[list[str], dict[str, Any]]"  # conditions, and the values in them

_PAGES = _Table(
    "page",
    """
SELECT s.seq AS number, s.{key} AS key, u.url, p.title, p.relevance, p.score, s.status, s.kind,
       h.name AS host, p.topic
FROM ({inner}) s JOIN main.page p ON p.seq = s.seq JOIN main.url u ON u.id = p.url
     JOIN sorted.host h ON h.place = s.host""",
    "(u.url LIKE :{0} ESCAPE '!' OR p.title LIKE :{0} ESCAPE '!')",
)
_UNFETCHED = _Table(
    "waiting",
    """
SELECT s.id AS number, s.{key} AS key, u.url, u.score, u.state, u.depth, h.name AS host,
       r.url AS referrer
FROM ({inner}) s JOIN main.url u ON u.id = s.id JOIN sorted.host h ON h.place = s.host
     LEFT JOIN main.url r ON r.id = u.referrer""",
    "u.url LIKE :{0} ESCAPE '!'",
)


@dataclass(frozen=True)
class UrlFilter:
    """Which rows.

    Attributes
    ----------
    least, most : of pages, relevance; of waiting URLs, score. None: any
    host : part of its name; "": any
    kind : of pages one of `focuscrawl.report.url_tables.KINDS`, of the others one of
        `UNFETCHED_STATES`; "": any
    status : HTTP status of pages; None: any
    search : words that are all in URL or title; "": any
    order : one of `PAGE_ORDERS`, `UNFETCHED_ORDERS`
    """

    least: float | None = None
    most: float | None = None
    host: str = ""
    kind: str = ""
    status: int | None = None
    search: str = ""
    order: str = ""

    @property
    def words(self) -> list[str]:
        """What is searched for."""
        return self.search[:_LONGEST].split()[:_WORDS]


@dataclass(frozen=True)
class UrlRows:
    """Some rows of a table.

    Attributes
    ----------
    rows : see `list_pages`, `list_unfetched`
    before, after : where the rows before and after these begin; None: there are none
    searched : how many rows were looked through; None: nothing was searched for
    """

    rows: list[dict[str, Any]]
    before: str | None
    after: str | None
    searched: int | None


def list_pages(
    connection: Database, wanted: UrlFilter, *, after: str = "", before: str = "", n: int = ROWS
) -> UrlRows:
    """Return up to `n` pages.

    Parameters
    ----------
    connection : see `focuscrawl.report.url_tables.open_sorted_copy`
    after, before : of the `UrlRows` that these rows follow, or that follows them

    Returns
    -------
    Rows have ``seq``, ``url``, ``title``, ``relevance`` as it is by now, ``score`` (None: a
    seed), ``status``, ``kind``, ``host``, ``topic`` (the most probable class).

    Raises
    ------
    UserError
        There is no such order or kind, or `after` or `before` is nothing that was given out.
    """
    where, values = _filter_conditions(wanted, "relevance")
    if wanted.kind:
        where.append("kind = :kind")
        values["kind"] = _index(KINDS, wanted.kind, "kind of page")
    if wanted.status is not None:
        where.append("status = :status")
        values["status"] = wanted.status
    order = _order(PAGE_ORDERS, wanted.order or "newest")
    read = _TableReader(connection, _PAGES, order, (where, values), wanted.words)
    found = read.part(after, before, n)
    return UrlRows(
        [_page_row(row) for row in found.rows], found.before, found.after, found.searched
    )


def list_unfetched(
    connection: Database, wanted: UrlFilter, *, after: str = "", before: str = "", n: int = ROWS
) -> UrlRows:
    """Return up to `n` URLs that were not fetched; see `list_pages`.

    Returns
    -------
    Rows have ``number``, ``url``, ``host``, ``score`` as it is by now (None: a seed, or none),
    ``state`` as it is by now, ``depth`` (clicks from a seed), ``referrer``.
    """
    where, values = _filter_conditions(wanted, "score")
    if wanted.kind:
        _index(UNFETCHED_STATES, wanted.kind, "state")
        where.append("state = :state")
        values["state"] = STATES.index(wanted.kind)
    order = _order(UNFETCHED_ORDERS, wanted.order or "score")
    read = _TableReader(connection, _UNFETCHED, order, (where, values), wanted.words)
    found = read.part(after, before, n)
    return UrlRows(
        [_unfetched_row(row) for row in found.rows], found.before, found.after, found.searched
    )


def count_rows(connection: Database) -> tuple[int, int]:
    """Return how many pages and how many other URLs the sorted copy has."""
    ((pages, waiting),) = connection.execute("SELECT pages, waiting FROM sorted.total")
    return int(pages), int(waiting)


def list_duplicates(connection: Database, url: int, n: int = ROWS) -> list[dict[str, Any]]:
    """Return ``seq`` and ``url`` of the first duplicates of the page with that number."""
    rows = connection.execute(
        "SELECT r.seq, u.url FROM sorted.repeat r JOIN main.page p ON p.seq = r.seq "
        "JOIN main.url u ON u.id = p.url WHERE r.original = ? ORDER BY r.seq LIMIT ?",
        (url, n),
    )
    return [*map(dict, rows)]


class _TableReader:
    """Reads parts of one table, as filtered and sorted."""

    def __init__(
        self,
        connection: Database,
        table: _Table,
        order: _Order,
        where: _Where,
        words: Sequence[str],
    ) -> None:
        self._connection = connection
        self._select = table.select
        self._table = table.name
        self._order = order
        self._where, values = where
        self._values = values | {f"word{i}": _like(word) for i, word in enumerate(words)}
        self._match = " AND ".join(table.match.format(f"word{i}") for i in range(len(words)))

    def part(self, after: str, before: str, n: int) -> UrlRows:
        """Return rows after or before a place, in order."""
        backwards = bool(before)
        place = _parse_cursor(before or after) if before or after else None
        rows, searched, more = self._rows(place, n, backwards=backwards)
        ends = [_cursor_of(row["key"], row["number"]) for row in rows[:: max(len(rows) - 1, 1)]]
        first, last = (ends[0], ends[-1]) if ends else (None, None)
        if more is not None and searched is not None:
            last = more  # what was looked at and does not fit need not be looked at again
        if backwards:
            return UrlRows(rows[::-1], last if more else None, first or before, searched)
        return UrlRows(rows, (first or after) if place else None, last if more else None, searched)

    def _rows(
        self, place: tuple[float, int] | None, n: int, *, backwards: bool
    ) -> tuple[list[dict[str, Any]], int | None, str | None]:
        """Return rows, how many were looked through, and where what was not begins."""
        if not self._match:
            found = self._batch(place, n + 1, backwards=backwards)
            more = (
                _cursor_of(found[n - 1]["key"], found[n - 1]["number"]) if len(found) > n else None
            )
            return found[:n], None, more
        rows: list[dict[str, Any]] = []
        searched, until = 0, time.monotonic() + _SEARCH_SECONDS
        while True:
            found = self._batch(place, _BATCH, backwards=backwards)
            size, end = self._end(place, backwards=backwards)
            searched += size
            rows += found
            if len(rows) > n:
                more = _cursor_of(rows[n - 1]["key"], rows[n - 1]["number"])
                return rows[:n], searched, more
            if end is None:
                return rows, searched, None
            place = end
            if time.monotonic() > until:
                return rows, searched, _cursor_of(*place)

    def _batch(
        self, place: tuple[float, int] | None, n: int, *, backwards: bool
    ) -> list[dict[str, Any]]:
        """Return what is searched for among the next `n` rows; all if nothing is."""
        inner, values, way = self._inner(place, n, backwards=backwards)
        select = self._select.format(key=self._order.key, inner=inner)
        select += f" WHERE {self._match}" if self._match else ""
        select += f" ORDER BY s.{self._order.key} {way}, s.{self._order.number} {way}"
        return [*map(dict, self._connection.execute(select, values))]

    def _end(
        self, place: tuple[float, int] | None, *, backwards: bool
    ) -> tuple[int, tuple[float, int] | None]:
        """Return how many of the next rows there are, and the last one; None: it is the last."""
        inner, values, _ = self._inner(place, _BATCH, backwards=backwards)
        key, number = self._order.key, self._order.number
        last = f"SELECT {key} AS key, {number} AS number, row_number() OVER () AS n FROM ({inner})"
        last = f"SELECT * FROM ({last}) ORDER BY n DESC LIMIT 1"
        for key, number, n in self._connection.execute(last, values):
            return n, (key, number) if n == _BATCH else None
        return 0, None

    def _inner(
        self, place: tuple[float, int] | None, n: int, *, backwards: bool
    ) -> tuple[str, dict[str, Any], str]:
        """Return the statement for the next `n` rows, its values, and its direction."""
        key, number = self._order.key, self._order.number
        down = self._order.descending != backwards
        where, values = [*self._where], self._values | {"n": n}
        if place is not None:
            where.append(f"({key}, {number}) {'<' if down else '>'} (:key, :number)")
            values |= {"key": place[0], "number": place[1]}
        way = "DESC" if down else "ASC"
        inner = f"SELECT * FROM sorted.{self._table}"
        inner += f" WHERE {' AND '.join(where)}" if where else ""
        return f"{inner} ORDER BY {key} {way}, {number} {way} LIMIT :n", values, way


def _filter_conditions(wanted: UrlFilter, number: str) -> _Where:
    where, values = list[str](), dict[str, Any]()
    if wanted.least is not None:
        where.append(f"{number} >= :least")
        values["least"] = wanted.least
    if wanted.most is not None:
        where.append(f"{number} <= :most")
        values["most"] = wanted.most
    if wanted.host:
        where.append(
            "host IN (SELECT place FROM sorted.host WHERE name LIKE :host_name ESCAPE '!')"
        )
        values["host_name"] = _like(wanted.host[:_LONGEST])
    return where, values


def _page_row(row: dict[str, Any]) -> dict[str, Any]:
    names = ("url", "title", "relevance", "score", "status", "host", "topic")
    kind = KINDS[row["kind"]]
    return {"seq": row["number"], **{name: row[name] for name in names}, "kind": kind}


def _unfetched_row(row: dict[str, Any]) -> dict[str, Any]:
    names = ("number", "url", "host", "score", "depth", "referrer")
    return {**{name: row[name] for name in names}, "state": STATES[row["state"]]}


def _order(orders: dict[str, _Order], name: str) -> _Order:
    if name not in orders:
        raise UserError(f"no order {name!r:.40}: take one of {', '.join(orders)}")
    return orders[name]


def _index(names: Sequence[str], name: str, what: str) -> int:
    if name not in names:
        raise UserError(f"no {what} {name!r:.40}: take one of {', '.join(names)}")
    return names.index(name)


def _like(word: str) -> str:
    for special in "!%_":
        word = word.replace(special, f"!{special}")
    return f"%{word}%"


def _cursor_of(key: float, number: int) -> str:
    return f"{key!r}:{number}"


def _parse_cursor(text: str) -> tuple[float, int]:
    """Return what `_cursor_of` has written."""
    key, _, number = text.partition(":")
    try:
        found = float(key), int(number)
    except ValueError:
        found = math.nan, 0
    if math.isnan(found[0]) or abs(found[1]) >= 1 << 63:
        raise UserError(f"no place {text!r:.40} in this table: begin it anew")
    return found


class MappedHost(NamedTuple):
    """A host: its fetches, how many were relevant, and links from and to others of the map."""

    name: str
    fetches: int
    relevant: int
    out: int
    into: int


class HostMap(NamedTuple):
    """Hosts, those with the most relevant pages first, and links between them.

    Attributes
    ----------
    hosts : of equally many relevant pages, the host with fewer fetches comes first
    links : (place of one host, place of the other, number of links), the most links first
    """

    hosts: list[MappedHost]
    links: list[tuple[int, int, int]]


_HOSTS = """
SELECT u.host, h.name, count(*) AS fetches,
       sum(CASE WHEN p.relevance > ? THEN 1 ELSE 0 END) AS relevant
FROM page p JOIN url u ON u.id = p.url JOIN host h ON h.id = u.host
GROUP BY u.host, h.name ORDER BY relevant DESC, fetches, h.name LIMIT ?
"""
_LINKS_BETWEEN = """
SELECT s.host, t.host, count(*) AS n
FROM link l JOIN url s ON s.id = l.source JOIN url t ON t.id = l.target
WHERE s.host <> t.host AND s.host IN (SELECT value FROM json_each(:hosts))
      AND t.host IN (SELECT value FROM json_each(:hosts))
GROUP BY s.host, t.host ORDER BY n DESC, s.host, t.host
"""


def map_hosts(store: CrawlStore, most: int = HOSTS) -> HostMap:
    """Map the `most` hosts that matter; it reads all fetches and links, once."""
    found = [*store.rows(_HOSTS, (RELEVANT, most))]
    place = {row["host"]: i for i, row in enumerate(found)}
    between = store.rows(_LINKS_BETWEEN, {"hosts": json.dumps([*place])})
    links = [(place[a], place[b], int(count)) for a, b, count in between]
    hosts = [
        MappedHost(
            row["name"],
            int(row["fetches"]),
            int(row["relevant"]),
            sum(count for a, _, count in links if a == i),
            sum(count for _, b, count in links if b == i),
        )
        for i, row in enumerate(found)
    ]
    return HostMap(hosts, links)
