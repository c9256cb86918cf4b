"""The links of one page of a crawl, out of it and to it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

_SHOWN = 100


@dataclass(frozen=True)
class LinksAround:
    """Links out of a page and to it, the first ones of either.

    Attributes
    ----------
    out : in the order they were found: ``id``, ``url``, ``anchor``, ``score`` (None: not
        followed), ``seq`` and ``relevance`` (None: not fetched)
    more_out : whether there are others
    into : of pages that link to it, by number: the same
    n_into : how many links lead to it
    """

    out: list[dict[str, Any]]
    more_out: bool
    into: list[dict[str, Any]]
    n_into: int

    @classmethod
    def of(cls, store: CrawlStore, url: int, n: int = _SHOWN) -> LinksAround:
        """Read the links of the URL with that number; what is read does not grow with the crawl.

        Parameters
        ----------
        store : of a crawl in a folder
        """
        link = schema.link.c
        into = store.rows(_links(link.source).where(link.target == url).order_by(link.id).limit(n))
        count = sa.select(sa.func.count().label("n")).where(link.target == url)
        out = _out(store, url, n + 1)
        return cls(
            out=out[:n],
            more_out=len(out) > n,
            into=[dict(row._mapping) for row in into],
            n_into=int(store.row(count.select_from(schema.link)).n),
        )


def _links(other: sa.ColumnElement[int]) -> sa.Select[Any]:
    """Select links with what is at their other end."""
    link, u, p = schema.link.c, schema.url.c, schema.page.c
    return (
        sa.select(link.id, u.url, link.anchor, link.score, p.seq, p.relevance)
        .select_from(schema.link)
        .join(schema.url, u.id == other)
        .outerjoin(schema.page, p.url == other)
    )


def _out(store: CrawlStore, url: int, n: int) -> list[dict[str, Any]]:
    """Return the first links of a page: links are numbered in the order of the fetches.

    Nothing says where those of a page begin, but the page that a link is on, and its number: it
    is found by halving. Those found when a hub was fetched again stand between others; where
    they are is known.
    """
    p, link = schema.page.c, schema.link.c
    seq = next(iter(store.rows(sa.select(p.seq).where(p.url == url))), None)
    last = store.row(sa.select(sa.func.max(link.id).label("id"))).id
    if seq is None or last is None:
        return []
    again = _again(store)
    low, high = 0, int(last) + 1  # the first link of a page fetched as late, or later
    while low < high:
        middle = (low + high) // 2
        if _seq(store, again, middle) < seq[0]:
            low = middle + 1
        else:
            high = middle
    rows = store.rows(
        _links(link.target).where(link.id >= low, link.id < low + n, link.source == url)
        .order_by(link.id)
    )  # fmt: skip
    found = {row.id: dict(row._mapping) for row in rows}
    for first, length, _, of in again:
        if of == url and len(found) < n:
            inside = link.id.between(first, first + length - 1)
            more = store.rows(_links(link.target).where(inside).order_by(link.id))
            found |= {row.id: dict(row._mapping) for row in more}
    return [found[number] for number in sorted(found)][:n]


def _again(store: CrawlStore) -> list[tuple[int, int, int, int]]:
    """Return first link, number of links, fetches before, and URL of pages fetched again."""
    a = schema.revisit.c
    rows = sa.select(a.first_link, a.links, a.seq, a.url).where(a.first_link.is_not(None))
    return [
        (int(first), int(links), int(seq or 0), int(url))
        for first, links, seq, url in map(tuple, store.rows(rows.order_by(a.first_link)))
    ]


def _seq(store: CrawlStore, again: list[tuple[int, int, int, int]], number: int) -> float:
    """Return after how many fetches a link was found."""
    at = bisect_right(again, (number, 1 << 62, 0, 0)) - 1
    if at >= 0 and number < again[at][0] + again[at][1]:
        return again[at][2] + 0.5
    p, link = schema.page.c, schema.link.c
    of_it = sa.select(p.seq).join(schema.link, link.source == p.url).where(link.id == number)
    return float(next((row.seq for row in store.rows(of_it)), 0))
