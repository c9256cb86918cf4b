"""Links between the pages of a collection, and between their hosts, as edges of graphs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import sqlalchemy as sa

from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import draft_of, write_whole
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.urls import host
from focuscrawl.report.plain_text import one_line
from focuscrawl.store import schema

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.collection.collection import Collection
    from focuscrawl.store import CrawlStore

#: source, target: number of links
Edges = Counter[tuple[str, str]]

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="links" for="edge" attr.name="links" attr.type="long"/>
<graph edgedefault="directed">
"""


def write_edges(store: CrawlStore, collection: Collection, folder: Path, name: str) -> list[Path]:
    """Write the links between pages, and between hosts, each as Parquet and as GraphML.

    Returns
    -------
    The files: ``NAME.links.parquet``, ``NAME.links.graphml`` and the same of hosts

    Raises
    ------
    UserError
        One cannot be written.
    """
    pages = _links(store, collection)
    hosts: Edges = Counter()
    for (source, target), number in pages.items():
        if host(source) != host(target):
            hosts[host(source), host(target)] += number
    written = []
    urls = [page.url for page in collection.pages]
    for kind, nodes, edges in (
        ("links", urls, pages),
        ("hosts", list(dict.fromkeys(map(host, urls))), hosts),
    ):
        table, graph = (folder / f"{name}.{kind}.{each}" for each in ("parquet", "graphml"))
        try:
            _write_parquet(edges, table)
            write_whole(graph, _graphml(nodes, edges))
        except OSError as error:
            raise UserError(f"{table} cannot be written ({error.strerror})") from None
        written += [table, graph]
    return written


def _links(store: CrawlStore, collection: Collection) -> Edges:
    taken = {page.url for page in collection.pages}
    source, target = schema.url.alias(), schema.url.alias()
    of, link = schema.page.c, schema.link.c
    columns = (source.c.url.label("source"), target.c.url.label("target"))
    found = sa.select(*columns).select_from(schema.link)
    found = found.join(source, source.c.id == link.source).join(target, target.c.id == link.target)
    found = found.join(schema.page, of.url == link.source)
    found = found.where(of.relevance >= collection.wanted.min_relevance).order_by(link.id)
    rows = ((row.source, row.target) for row in store.rows(found))
    return Counter((a, b) for a, b in rows if a in taken and b in taken)


def _write_parquet(edges: Edges, path: Path) -> None:
    with needs("text", "links as Parquet"):
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow.parquet import write_table  # noqa: PLC0415
    types = [("source", pa.string()), ("target", pa.string()), ("links", pa.int64())]
    rows = [{"source": a, "target": b, "links": n} for (a, b), n in edges.items()]
    with draft_of(path) as draft:
        write_table(pa.Table.from_pylist(rows, pa.schema(types)), draft, compression="zstd")


def _graphml(nodes: list[str], edges: Edges) -> str:
    lines = [f"<node id={_quoted(node)}/>\n" for node in nodes]
    lines += [
        f'<edge source={_quoted(a)} target={_quoted(b)}><data key="links">{number}</data></edge>\n'
        for (a, b), number in edges.items()
    ]
    return "".join([_HEAD, *lines, "</graph>\n</graphml>\n"])


def _quoted(text: str) -> str:
    return quoteattr(one_line(text))  # no character that XML has not
