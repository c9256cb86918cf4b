"""Pages and waiting URLs of a crawl as tables: filtered, sorted, searched, some rows at a time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from focuscrawl.errors import UserError
from focuscrawl.report.sorted_urls import KINDS
from focuscrawl.store.schema import FETCHED, STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

ROWS = 100  #: of a part of a table
_BATCH = 5000  # rows that are searched at once
_SEARCH = 0.12  # seconds; who searches on asks again
_WORDS = 5  # that are searched for
_LONGEST = 200  # characters of what is searched for


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
WAITING_ORDERS = {
    "score": _Order("score", "id", descending=True),
    "newest": _Order("id", "id", descending=True),
    "oldest": _Order("id", "id", descending=False),
    "host": _Order("host", "id", descending=False),
}
WAITING_STATES = tuple(state for code, state in enumerate(STATES) if code != FETCHED)


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
_WAITING = _Table(
    "waiting",
    """
SELECT s.id AS number, s.{key} AS key, u.url, u.score, u.state, u.depth, h.name AS host,
       r.url AS referrer
FROM ({inner}) s JOIN main.url u ON u.id = s.id JOIN sorted.host h ON h.place = s.host
     LEFT JOIN main.url r ON r.id = u.referrer""",
    "u.url LIKE :{0} ESCAPE '!'",
)


@dataclass(frozen=True)
class Wanted:
    """Which rows.

    Attributes
    ----------
    least, most : of pages, relevance; of waiting URLs, score. None: any
    host : part of its name; "": any
    kind : of pages one of `focuscrawl.report.sorted_urls.KINDS`, of the others one of
        `WAITING_STATES`; "": any
    status : HTTP status of pages; None: any
    search : words that are all in URL or title; "": any
    order : one of `PAGE_ORDERS`, `WAITING_ORDERS`
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
class Part:
    """Some rows of a table.

    Attributes
    ----------
    rows : see `pages_part`, `waiting_part`
    before, after : where the rows before and after these begin; None: there are none
    searched : how many rows were looked through; None: nothing was searched for
    """

    rows: list[dict[str, Any]]
    before: str | None
    after: str | None
    searched: int | None


def pages_part(
    connection: Connection, wanted: Wanted, *, after: str = "", before: str = "", n: int = ROWS
) -> Part:
    """Return up to `n` pages.

    Parameters
    ----------
    connection : see `focuscrawl.report.sorted_urls.reading_sorted`
    after, before : of the `Part` that these rows follow, or that follows them

    Returns
    -------
    Rows have ``seq``, ``url``, ``title``, ``relevance`` as it is by now, ``score`` (None: a
    seed), ``status``, ``kind``, ``host``, ``topic`` (the most probable class).

    Raises
    ------
    UserError
        There is no such order or kind, or `after` or `before` is nothing that was given out.
    """
    where, values = _common(wanted, "relevance")
    if wanted.kind:
        where.append("kind = :kind")
        values["kind"] = _index(KINDS, wanted.kind, "kind of page")
    if wanted.status is not None:
        where.append("status = :status")
        values["status"] = wanted.status
    order = _order(PAGE_ORDERS, wanted.order or "newest")
    read = _Reading(connection, _PAGES, order, (where, values), wanted.words)
    found = read.part(after, before, n)
    return Part([_page(row) for row in found.rows], found.before, found.after, found.searched)


def waiting_part(
    connection: Connection, wanted: Wanted, *, after: str = "", before: str = "", n: int = ROWS
) -> Part:
    """Return up to `n` URLs that were not fetched; see `pages_part`.

    Returns
    -------
    Rows have ``number``, ``url``, ``host``, ``score`` as it is by now (None: a seed, or none),
    ``state`` as it is by now, ``depth`` (clicks from a seed), ``referrer``.
    """
    where, values = _common(wanted, "score")
    if wanted.kind:
        _index(WAITING_STATES, wanted.kind, "state")
        where.append("state = :state")
        values["state"] = STATES.index(wanted.kind)
    order = _order(WAITING_ORDERS, wanted.order or "score")
    read = _Reading(connection, _WAITING, order, (where, values), wanted.words)
    found = read.part(after, before, n)
    return Part([_waiting(row) for row in found.rows], found.before, found.after, found.searched)


def totals(connection: Connection) -> tuple[int, int]:
    """Return how many pages and how many other URLs the sorted copy has."""
    row = connection.execute(sa.text("SELECT pages, waiting FROM sorted.total")).one()
    return int(row.pages), int(row.waiting)


def duplicates_of(connection: Connection, url: int, n: int = ROWS) -> list[dict[str, Any]]:
    """Return ``seq`` and ``url`` of the first duplicates of the page with that number."""
    rows = connection.execute(
        sa.text(
            "SELECT r.seq, u.url FROM sorted.repeat r JOIN main.page p ON p.seq = r.seq "
            "JOIN main.url u ON u.id = p.url WHERE r.original = :url ORDER BY r.seq LIMIT :n"
        ),
        {"url": url, "n": n},
    )
    return [dict(row) for row in rows.mappings()]


class _Reading:
    """Reads parts of one table, as filtered and sorted."""

    def __init__(
        self,
        connection: Connection,
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

    def part(self, after: str, before: str, n: int) -> Part:
        """Return rows after or before a place, in order."""
        backwards = bool(before)
        place = _read_place(before or after) if before or after else None
        rows, searched, more = self._rows(place, n, backwards=backwards)
        ends = [_place(row["key"], row["number"]) for row in rows[:: max(len(rows) - 1, 1)]]
        first, last = (ends[0], ends[-1]) if ends else (None, None)
        if more is not None and searched is not None:
            last = more  # what was looked at and does not fit need not be looked at again
        if backwards:
            return Part(rows[::-1], last if more else None, first or before, searched)
        return Part(rows, (first or after) if place else None, last if more else None, searched)

    def _rows(
        self, place: tuple[float, int] | None, n: int, *, backwards: bool
    ) -> tuple[list[dict[str, Any]], int | None, str | None]:
        """Return rows, how many were looked through, and where what was not begins."""
        if not self._match:
            found = self._batch(place, n + 1, backwards=backwards)
            more = _place(found[n - 1]["key"], found[n - 1]["number"]) if len(found) > n else None
            return found[:n], None, more
        rows: list[dict[str, Any]] = []
        searched, until = 0, time.monotonic() + _SEARCH
        while True:
            found = self._batch(place, _BATCH, backwards=backwards)
            size, end = self._end(place, backwards=backwards)
            searched += size
            rows += found
            if len(rows) > n:
                more = _place(rows[n - 1]["key"], rows[n - 1]["number"])
                return rows[:n], searched, more
            if end is None:
                return rows, searched, None
            place = end
            if time.monotonic() > until:
                return rows, searched, _place(*place)

    def _batch(
        self, place: tuple[float, int] | None, n: int, *, backwards: bool
    ) -> list[dict[str, Any]]:
        """Return what is searched for among the next `n` rows; all if nothing is."""
        inner, values, way = self._inner(place, n, backwards=backwards)
        select = self._select.format(key=self._order.key, inner=inner)
        select += f" WHERE {self._match}" if self._match else ""
        select += f" ORDER BY s.{self._order.key} {way}, s.{self._order.number} {way}"
        return [dict(row) for row in self._connection.execute(sa.text(select), values).mappings()]

    def _end(
        self, place: tuple[float, int] | None, *, backwards: bool
    ) -> tuple[int, tuple[float, int] | None]:
        """Return how many of the next rows there are, and the last one; None: it is the last."""
        inner, values, _ = self._inner(place, _BATCH, backwards=backwards)
        key, number = self._order.key, self._order.number
        last = f"SELECT {key} AS key, {number} AS number, row_number() OVER () AS n FROM ({inner})"
        last = f"SELECT * FROM ({last}) ORDER BY n DESC LIMIT 1"
        row = self._connection.execute(sa.text(last), values).one_or_none()
        if row is None:
            return 0, None
        return row.n, (row.key, row.number) if row.n == _BATCH else None

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


def _common(wanted: Wanted, number: str) -> _Where:
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


def _page(row: dict[str, Any]) -> dict[str, Any]:
    names = ("url", "title", "relevance", "score", "status", "host", "topic")
    kind = KINDS[row["kind"]]
    return {"seq": row["number"], **{name: row[name] for name in names}, "kind": kind}


def _waiting(row: dict[str, Any]) -> dict[str, Any]:
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


def _place(key: float, number: int) -> str:
    return f"{key!r}:{number}"


def _read_place(text: str) -> tuple[float, int]:
    """Return what `_place` has written."""
    key, _, number = text.partition(":")
    try:
        found = float(key), int(number)
    except ValueError:
        found = math.nan, 0
    if math.isnan(found[0]) or abs(found[1]) >= 1 << 63:
        raise UserError(f"no place {text!r:.40} in this table: begin it anew")
    return found
