"""A crawl's store of 100,000 pages and a million waiting URLs, made of arithmetic in a minute.

python benchmarks/large_store.py FOLDER/crawls/large
"""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.store import CrawlStore, schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import sqlalchemy as sa

_BATCH = 20_000
_ABOUT = {"topic": "/Sports/Cycling", "strategy": "best-first", "web": "live", "spider": "focused"}
_ABOUT |= {"critic_name": "models/none", "critic": "none"}


def make_large_store(path: Path, pages: int, waiting: int, hosts: int, links: int) -> None:
    """Write the store of a crawl that has fetched `pages`, with `links` on each, and ended."""
    random.seed(0)
    with closing(CrawlStore.create(path, _ABOUT)) as store, store.engine.begin() as connection:

        def insert(table: sa.Table, rows: Iterable[tuple[object, ...]]) -> None:
            marks = ", ".join("?" * len(table.columns))
            statement = f"INSERT INTO {table.name} VALUES ({marks})"
            batch = list[tuple[object, ...]]()
            for row in rows:
                batch.append(row)
                if len(batch) == _BATCH:
                    connection.exec_driver_sql(statement, batch)
                    batch = []
            if batch:
                connection.exec_driver_sql(statement, batch)

        insert(schema.host, ((i, f"host{i}.example") for i in range(hosts)))
        insert(schema.url, _urls(pages, waiting, hosts))
        insert(schema.page, _pages(pages))
        insert(schema.link, _links(pages, waiting, links))


def _urls(pages: int, waiting: int, hosts: int) -> Iterator[tuple[object, ...]]:
    for i in range(pages + waiting):
        host = i * 7919 % hosts
        url = f"http://host{host}.example/{'cycling' if i % 3 else 'other'}/page-{i}.html"
        score = None if i < 10 else random.random()
        referrer = None if i < 10 else i // 11
        state = schema.FETCHED if i < pages else schema.QUEUED
        yield i, url, host, 0 if i < 10 else 1 + i.bit_length() // 4, referrer, score, state


def _pages(pages: int) -> Iterator[tuple[object, ...]]:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for i in range(pages):
        at = (began + timedelta(milliseconds=100 * i)).isoformat()
        relevance = random.random() ** (1 + i % 5)
        repeat = i - 50 if i % 40 == 39 else None
        judged = (200, 0.0 if repeat else relevance, "/Sports/Cycling", random.random(), at)
        answer = ("text/html", 20_000 + i % 1000, f"Page {i} on wheels and gears", None)
        yield (i + 1, i, *judged, *answer, i.to_bytes(16, "big"), repeat, None, 10, 0, None)


def _links(pages: int, waiting: int, links: int) -> Iterator[tuple[object, ...]]:
    for source in range(pages):
        for place in range(links):
            number = source * links + place
            known = place * 2 < links  # half of them to pages, near ones
            target = random.randrange(pages) if known else pages + number * 13 % waiting
            yield number, source, target, f"page {target}", 10 * place, random.random(), 1


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--pages", default=100_000, show_default=True)
@click.option("--waiting", default=1_000_000, show_default=True)
@click.option("--hosts", default=5_000, show_default=True)
@click.option("--links", default=20, show_default=True, help="On each page.")
def main(folder: Path, pages: int, waiting: int, hosts: int, links: int) -> None:
    """Make the store."""
    folder.mkdir(parents=True)
    make_large_store(folder / "crawl.db", pages, waiting, hosts, links)


if __name__ == "__main__":
    main()
