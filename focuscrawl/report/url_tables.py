"""Lists pages, queued URLs and hosts of a crawl, with filters, sorting and search."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.store.schema import FETCHED, QUEUED, STATES

if TYPE_CHECKING:
    from focuscrawl.foundation.databases import Database
    from focuscrawl.store import CrawlStore


#: kinds of fetches, by their number in `sorted.page.kind`
KINDS = ("page", "duplicate", "redirect", "nothing")
_LARGEST = sys.float_info.max  # in place of an infinite number, which SQL cannot write
_SEED_SCORE = "9e999"  # in place of a missing score: seeds come before every link

# number of the kind of a fetch `p`, see `KINDS`
_KIND = """CASE WHEN p.duplicate_of IS NOT NULL THEN 1 WHEN p.digest IS NOT NULL THEN 0
                WHEN p.status BETWEEN 300 AND 399 OR p.error LIKE 'meta refresh%' THEN 2
                ELSE 3 END"""

_TABLES = f"""
CREATE TABLE sorted.host (place INTEGER PRIMARY KEY, id INTEGER NOT NULL, name TEXT NOT NULL,
                          fetches INTEGER DEFAULT 0, relevant INTEGER DEFAULT 0,
                          share REAL DEFAULT 0.0, waiting INTEGER DEFAULT 0);
INSERT INTO sorted.host (id, name) SELECT id, name FROM main.host ORDER BY name;
CREATE INDEX sorted.host_id ON host (id, place);
CREATE TABLE sorted.page (seq INTEGER PRIMARY KEY, host INTEGER, relevance REAL, score REAL,
                          status INTEGER, kind INTEGER);
INSERT INTO sorted.page
    SELECT p.seq, (SELECT place FROM sorted.host WHERE id = u.host), p.relevance,
           coalesce(p.score, {_SEED_SCORE}), p.status,
           {_KIND}
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
           (SELECT count(*) FROM sorted.waiting) AS waiting,
           (SELECT count(*) FROM sorted.host) AS hosts;
UPDATE sorted.host
    SET fetches = f.fetches, relevant = f.relevant, share = 1.0 * f.relevant / f.fetches
    FROM (SELECT host, count(*) AS fetches, sum(relevance > {RELEVANT}) AS relevant
          FROM sorted.page GROUP BY host) f WHERE f.host = place;
UPDATE sorted.host SET waiting = w.waiting
    FROM (SELECT host, count(*) AS waiting FROM sorted.waiting WHERE state = {QUEUED}
          GROUP BY host) w WHERE w.host = place;
CREATE INDEX sorted.host_fetches ON host (fetches, place);
CREATE INDEX sorted.host_relevant ON host (relevant, place);
CREATE INDEX sorted.host_share ON host (share, place);
CREATE INDEX sorted.host_waiting ON host (waiting, place);
"""


ROWS = 100  #: rows of a part of a table
_BATCH = 5000  # rows searched by one statement
_SEARCH_SECONDS = 0.12  # then the search stops, and the caller can continue it
_WORDS = 5  # words of a search that count
_LONGEST = 200  # characters of a search that count
UNFETCHED_STATES = tuple(state for code, state in enumerate(STATES) if code != FETCHED)
HOSTS = 50


def write_sorted_copy(store: CrawlStore, path: Path) -> None:
    """Write an indexed copy of the numbers and scores in a crawl's store to the new file `path`.

    A new model changes the scores of all queued URLs, so database indexes in the store itself
    would slow the crawl down. Only the sorted copy of the store has database indexes for sorting.
    When rows are read, an SQL statement joins the sorted copy with the texts of the store. The
    sorted copy has the state of the crawl at the time of copying. Copying a million URLs takes
    some seconds. The memory for copying does not grow with the crawl.

    Parameters
    ----------
    store : CrawlStore
        Store of a crawl in a folder, which may be running.
    """
    with open_sorted_copy(store, path) as connection:
        # a copy that is damaged by a crash is written again
        connection.execute("PRAGMA sorted.journal_mode = OFF")
        connection.execute("PRAGMA sorted.synchronous = OFF")
        for statement in _TABLES.split(";\n"):  # the limit on steps counts by statement
            connection.execute(statement)


@contextmanager
def open_sorted_copy(store: CrawlStore, path: Path) -> Iterator[Database]:
    """Open a store as ``main`` with its sorted copy attached as ``sorted``."""
    with closing(store.reopen()) as reading, reading.connection() as connection:
        connection.execute("ATTACH ? AS sorted", (str(path),))
        yield connection


class QueuedUrl(NamedTuple):
    """A queued URL and its score; the score is None for a seed, which is fetched first."""

    url: str
    score: float | None


def frontier_top(store: CrawlStore, most: int = 20) -> list[QueuedUrl]:
    """Return the queued URLs with the best scores, the best first.

    The SQL statement reads every URL of the crawl, which takes a second for a million URLs. The
    crawl may fetch other URLs next, because the hosts of the best URLs can be busy.
    """
    query = """SELECT url, score FROM url WHERE state = ?
               ORDER BY score IS NOT NULL, score DESC, id LIMIT ?"""
    return [*map(QueuedUrl._make, store.rows(query, (QUEUED, most)))]


class _Order(NamedTuple):
    """Sort key of rows of the sorted copy: a column, and an unique column for equal keys."""

    key: str
    number: str
    descending: bool


#: orders of the rows of each table by their names
ORDERS = {
    "pages": {
        "newest": _Order("seq", "seq", descending=True),
        "oldest": _Order("seq", "seq", descending=False),
        "relevance": _Order("relevance", "seq", descending=True),
        "score": _Order("score", "seq", descending=True),
        "host": _Order("host", "seq", descending=False),
    },
    "frontier": {
        "score": _Order("score", "id", descending=True),
        "newest": _Order("id", "id", descending=True),
        "oldest": _Order("id", "id", descending=False),
        "host": _Order("host", "id", descending=False),
    },
    "hosts": {
        "relevant": _Order("relevant", "place", descending=True),
        "share": _Order("share", "place", descending=True),
        "fetches": _Order("fetches", "place", descending=True),
        "queued": _Order("waiting", "place", descending=True),
        "name": _Order("place", "place", descending=False),
    },
}
_FIRST_ORDERS = {"pages": "relevance", "frontier": "score", "hosts": "relevant"}


class _Source(NamedTuple):
    """SQL that reads the rows of a table from the sorted copy, or from the store itself."""

    select: str
    match: str  # condition on a word of a search
    number: str  # expression that `least` and `most` of a filter limit
    kind: str = ""  # expression of the number of the kind or state
    host: str = ""  # condition on a part of the name of the host
    status: str = ""  # expression of the HTTP status


_URL_OR_TITLE = "(u.url LIKE {0} ESCAPE '!' OR p.title LIKE {0} ESCAPE '!')"
_HOST_PART = "host IN (SELECT place FROM sorted.host WHERE name LIKE {0} ESCAPE '!')"
_COPIES = {
    "pages": _Source(
        """
SELECT s.seq AS number, s.{key} AS key, u.url, p.title, p.relevance, p.score, s.status, s.kind,
       h.name AS host, p.topic
FROM ({inner}) s JOIN main.page p ON p.seq = s.seq JOIN main.url u ON u.id = p.url
     JOIN sorted.host h ON h.place = s.host""",
        _URL_OR_TITLE,
        "relevance",
        "kind",
        _HOST_PART,
        "status",
    ),
    "frontier": _Source(
        """
SELECT s.id AS number, s.{key} AS key, u.url, u.score, u.state, u.depth, h.name AS host,
       r.url AS referrer
FROM ({inner}) s JOIN main.url u ON u.id = s.id JOIN sorted.host h ON h.place = s.host
     LEFT JOIN main.url r ON r.id = u.referrer""",
        "u.url LIKE {0} ESCAPE '!'",
        "score",
        "state",
        _HOST_PART,
    ),
    "hosts": _Source(
        """
SELECT s.place AS number, s.{key} AS key, s.name, s.fetches, s.relevant, s.share, s.waiting
FROM ({inner}) s""",
        "s.name LIKE {0} ESCAPE '!'",
        "relevant",
    ),
}
_COPY_TABLES = {"pages": "page", "frontier": "waiting", "hosts": "host"}
_SCORE = f"coalesce(u.score, {_SEED_SCORE})"
_STORES = {
    "pages": _Source(
        """SELECT p.seq, u.url, p.title, p.relevance, p.score, p.status, h.name AS host, p.topic
FROM page p JOIN url u ON u.id = p.url JOIN host h ON h.id = u.host""",
        _URL_OR_TITLE,
        "p.relevance",
        _KIND,
        "h.name LIKE {0} ESCAPE '!'",
        "p.status",
    ),
    "frontier": _Source(
        f"""SELECT u.id AS number, u.url, h.name AS host, u.score, u.depth, r.url AS referrer
FROM url u JOIN host h ON h.id = u.host LEFT JOIN url r ON r.id = u.referrer
WHERE u.state <> {FETCHED}""",
        "u.url LIKE {0} ESCAPE '!'",
        _SCORE,
        "u.state",
        "h.name LIKE {0} ESCAPE '!'",
    ),
    "hosts": _Source(
        f"""SELECT * FROM (SELECT h.name, count(p.seq) AS fetches,
    coalesce(sum(p.relevance > {RELEVANT}), 0) AS relevant,
    coalesce(avg(p.relevance > {RELEVANT}), 0.0) AS share, sum(u.state = {QUEUED}) AS waiting
    FROM url u JOIN host h ON h.id = u.host LEFT JOIN page p ON p.url = u.id GROUP BY h.id)""",
        "name LIKE {0} ESCAPE '!'",
        "relevant",
    ),
}
# expressions in the store for the columns of an order, where their names differ
_STORE_KEYS = {
    "pages": {
        "seq": "p.seq",
        "relevance": "p.relevance",
        "score": f"coalesce(p.score, {_SEED_SCORE})",
        "host": "h.name",
    },
    "frontier": {"id": "u.id", "score": _SCORE, "host": "h.name"},
    "hosts": {"place": "name"},
}


@dataclass(frozen=True)
class UrlFilter:
    """Filter and order of the rows of a URL table; the defaults select all rows."""

    #: least relevance of pages, least score of other URLs, or least relevant pages of hosts
    least: float | None = None
    most: float | None = None  #: greatest value of the same number
    host: str = ""  #: part of the host name
    kind: str = ""  #: for pages one of `KINDS`, for other URLs one of `UNFETCHED_STATES`
    status: int | None = None  #: HTTP status of pages
    search: str = ""  #: words that must all occur in URL or title
    order: str = ""  #: one of the `ORDERS` of the table; with the prefix ``-`` reversed

    @property
    def words(self) -> list[str]:
        """The words to search for; an overlong search is cut."""
        return self.search[:_LONGEST].split()[:_WORDS]


@dataclass(frozen=True)
class UrlRows:
    """A part of the rows of a URL table, with cursors to the rows before and after."""

    rows: list[dict[str, Any]]  #: see `list_rows`
    before: str | None  #: cursor to the rows before this part; None without such rows
    after: str | None  #: cursor to the rows after this part
    searched: int | None  #: number of rows searched; None without a search


def list_rows(
    connection: Database,
    table: str,
    wanted: UrlFilter,
    *,
    after: str = "",
    before: str = "",
    n: int = ROWS,
) -> UrlRows:
    """Return up to `n` rows of a table that match a filter, in the order of the filter.

    Parameters
    ----------
    connection : Database
        Connection of `open_sorted_copy`.
    table : str
        ``pages``, ``frontier`` (URLs that were not fetched) or ``hosts``. Of the filter, the
        table of hosts uses the search and the number of relevant pages.
    after, before : str
        Cursor of another `UrlRows`: return the rows after or before it.

    Returns
    -------
    UrlRows
        Rows of pages have ``seq``, ``url``, ``title``, ``relevance`` (current), ``score`` (None:
        a seed), ``status``, ``kind``, ``host``, ``topic`` (the most probable class). Rows of
        other URLs have ``number`` (ID), ``url``, ``host``, ``score`` (current; None: a seed, or
        no score), ``state`` (current), ``depth`` (clicks from a seed), ``referrer``. Rows of
        hosts have ``name``, ``fetches``, ``relevant`` (pages), ``share`` (relevant pages of the
        fetches), ``queued`` (URLs).

    Raises
    ------
    UserError
        The order, the kind or a cursor is invalid.
    """
    found = _TableReader(connection, table, wanted).part(after, before, n)
    return replace(found, rows=[_READ_ROW[table](row) for row in found.rows])


def count_rows(connection: Database) -> tuple[int, int, int]:
    """Return the numbers of pages, of unfetched URLs and of hosts in the copy of a crawl."""
    ((pages, waiting, hosts),) = connection.execute(
        "SELECT pages, waiting, hosts FROM sorted.total"
    )
    return int(pages), int(waiting), int(hosts)


def sql_of(table: str, wanted: UrlFilter) -> str:
    """Return the SQL statement that reads from a store all rows of a table that match a filter.

    Parameters
    ----------
    table : str
        ``pages``, ``frontier`` or ``hosts``.
    """
    source, order = _STORES[table], _order(table, wanted.order)
    conditions = _conditions(table, source, wanted)
    conditions += [(source.match, _like(word)) for word in wanted.words]
    where = [condition.format(_literal(value)) for condition, value in conditions]
    way = "DESC" if order.descending else "ASC"
    keys = dict.fromkeys(_STORE_KEYS[table].get(each, each) for each in (order.key, order.number))
    joined = "\n  AND ".join(where)
    start = "AND" if "\nWHERE" in source.select else "WHERE"
    condition = f"\n{start} {joined}" if where else ""
    return f"{source.select}{condition}\nORDER BY {', '.join(f'{key} {way}' for key in keys)};"


def list_duplicates(connection: Database, url: int, n: int = ROWS) -> list[dict[str, Any]]:
    """Return ``seq`` and ``url`` of the first pages that are duplicates of the page `url`."""
    rows = connection.execute(
        "SELECT r.seq, u.url FROM sorted.repeat r JOIN main.page p ON p.seq = r.seq "
        "JOIN main.url u ON u.id = p.url WHERE r.original = ? ORDER BY r.seq LIMIT ?",
        (url, n),
    )
    return [*map(dict, rows)]


class _TableReader:
    """Reads filtered and sorted parts of one table."""

    def __init__(self, connection: Database, table: str, wanted: UrlFilter) -> None:
        source, words = _COPIES[table], wanted.words
        conditions = _conditions(table, source, wanted)
        self._connection = connection
        self._select = source.select
        self._table = _COPY_TABLES[table]
        self._order = _order(table, wanted.order)
        self._where = [each.format(f":value{i}") for i, (each, _) in enumerate(conditions)]
        self._values: dict[str, Any] = {f"value{i}": v for i, (_, v) in enumerate(conditions)}
        self._values |= {f"word{i}": _like(word) for i, word in enumerate(words)}
        self._match = " AND ".join(source.match.format(f":word{i}") for i in range(len(words)))

    def part(self, after: str, before: str, n: int) -> UrlRows:
        """Return up to `n` rows of the table after or before a cursor."""
        backwards = bool(before)
        place = _parse_cursor(before or after) if before or after else None
        rows, searched, more = self._rows(place, n, backwards=backwards)
        ends = [_cursor_of(row["key"], row["number"]) for row in rows[:: max(len(rows) - 1, 1)]]
        first, last = (ends[0], ends[-1]) if ends else (None, None)
        if more is not None and searched is not None:
            last = more  # the next part of a search continues after the last row searched
        if backwards:
            return UrlRows(rows[::-1], last if more else None, first or before, searched)
        return UrlRows(rows, (first or after) if place else None, last if more else None, searched)

    def _rows(
        self, place: tuple[float, int] | None, n: int, *, backwards: bool
    ) -> tuple[list[dict[str, Any]], int | None, str | None]:
        """Return rows, the number of rows searched, and the cursor to the rest."""
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
        """Return the rows among the next `n` that match the search."""
        inner, values, way = self._inner(place, n, backwards=backwards)
        select = self._select.format(key=self._order.key, inner=inner)
        select += f" WHERE {self._match}" if self._match else ""
        select += f" ORDER BY s.{self._order.key} {way}, s.{self._order.number} {way}"
        return [*map(dict, self._connection.execute(select, values))]

    def _end(
        self, place: tuple[float, int] | None, *, backwards: bool
    ) -> tuple[int, tuple[float, int] | None]:
        """Return the statement for the next `n` rows, its parameters, and `ASC` or `DESC`."""
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
        """Return statement and parameters for the next `n` rows, and the direction."""
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


def _conditions(table: str, source: _Source, wanted: UrlFilter) -> list[tuple[str, Any]]:
    """Return SQL conditions of a filter, each with the value to insert for ``{0}``."""
    kind = _kind_number(table, wanted.kind) if source.kind and wanted.kind else None
    limits = [
        (f"{source.number} >= {{0}}", wanted.least),
        (f"{source.number} <= {{0}}", wanted.most),
        (source.host, _like(wanted.host[:_LONGEST]) if source.host and wanted.host else None),
        (f"{source.kind} = {{0}}", kind),
        (f"{source.status} = {{0}}", wanted.status if source.status else None),
    ]
    return [(condition, value) for condition, value in limits if value is not None]


def _kind_number(table: str, name: str) -> int:
    """Return the number of a kind of pages, or of a state of other URLs."""
    names, what = (KINDS, "kind of page") if table == "pages" else (UNFETCHED_STATES, "state")
    if name not in names:
        raise UserError(f"{what} {name!r:.40} is invalid: use one of {', '.join(names)}")
    return KINDS.index(name) if table == "pages" else STATES.index(name)


def _page_row(row: dict[str, Any]) -> dict[str, Any]:
    names = ("url", "title", "relevance", "score", "status", "host", "topic")
    kind = KINDS[row["kind"]]
    return {"seq": row["number"], **{name: row[name] for name in names}, "kind": kind}


def _unfetched_row(row: dict[str, Any]) -> dict[str, Any]:
    names = ("number", "url", "host", "score", "depth", "referrer")
    return {**{name: row[name] for name in names}, "state": STATES[row["state"]]}


def _host_row(row: dict[str, Any]) -> dict[str, Any]:
    names = ("name", "fetches", "relevant", "share")
    return {**{name: row[name] for name in names}, "queued": row["waiting"]}


_READ_ROW = {"pages": _page_row, "frontier": _unfetched_row, "hosts": _host_row}


def _order(table: str, name: str) -> _Order:
    orders = ORDERS[table]
    name = name or _FIRST_ORDERS[table]
    found = orders.get(name.removeprefix("-"))
    if found is None:
        raise UserError(f"order {name!r:.40} is invalid: use one of {', '.join(orders)}")
    if name.startswith("-"):
        return found._replace(descending=not found.descending)
    return found


def _literal(value: float | str) -> str:
    """Return a value as an SQL literal."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(max(min(value, _LARGEST), -_LARGEST))


def _like(word: str) -> str:
    for special in "!%_":
        word = word.replace(special, f"!{special}")
    return f"%{word}%"


def _cursor_of(key: float, number: int) -> str:
    return f"{key!r}:{number}"


def _parse_cursor(text: str) -> tuple[float, int]:
    """Parse the text of `_cursor_of`; raise UserError if it is invalid."""
    key, _, number = text.partition(":")
    try:
        found = float(key), int(number)
    except ValueError:
        found = math.nan, 0
    if math.isnan(found[0]) or abs(found[1]) >= 1 << 63:
        raise UserError(f"cursor {text!r:.40} is invalid: load the table from its first row")
    return found


class MappedHost(NamedTuple):
    """Numbers of fetches, of relevant pages and of links to other hosts, for one host of a map."""

    name: str
    fetches: int
    relevant: int
    out: int
    into: int


class HostMap(NamedTuple):
    """The hosts with the largest numbers of relevant pages, and the links between these hosts."""

    #: the most relevant pages first; with equally many, the fewest fetches first
    hosts: list[MappedHost]
    #: indexes of both hosts in `hosts`, and the number of links, the most links first
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
    """Return the hosts with the largest numbers of relevant pages, and links between them."""
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
