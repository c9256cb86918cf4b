"""The hosts that matter to a crawl, and the links between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.store import schema

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

HOSTS = 50


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


def host_map(store: CrawlStore, most: int = HOSTS) -> HostMap:
    """Map the `most` hosts that matter; it reads all fetches and links, once."""
    u, p, h = schema.url.c, schema.page.c, schema.host.c
    relevant = sa.func.sum(sa.case((p.relevance > RELEVANT, 1), else_=0))
    fetches = sa.func.count()
    counted = (
        sa.select(u.host, h.name, fetches.label("fetches"), relevant.label("relevant"))
        .select_from(schema.page)
        .join(schema.url, u.id == p.url)
        .join(schema.host, h.id == u.host)
        .group_by(u.host, h.name)
        .order_by(relevant.desc(), fetches, h.name)
        .limit(most)
    )
    found = [*store.rows(counted)]
    place = {row.host: i for i, row in enumerate(found)}
    source, target = schema.url.alias(), schema.url.alias()
    link, n = schema.link.c, sa.func.count()
    between = (
        sa.select(source.c.host, target.c.host, n)
        .select_from(schema.link)
        .join(source, source.c.id == link.source)
        .join(target, target.c.id == link.target)
        .where(source.c.host != target.c.host)
        .where(source.c.host.in_(place), target.c.host.in_(place))
        .group_by(source.c.host, target.c.host)
        .order_by(n.desc(), source.c.host, target.c.host)
    )
    links = [(place[a], place[b], int(count)) for a, b, count in map(tuple, store.rows(between))]
    hosts = [
        MappedHost(
            row.name,
            int(row.fetches),
            int(row.relevant),
            sum(count for a, _, count in links if a == i),
            sum(count for _, b, count in links if b == i),
        )
        for i, row in enumerate(found)
    ]
    return HostMap(hosts, links)
