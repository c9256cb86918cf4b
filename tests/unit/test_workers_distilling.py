"""The graph that one of several workers distils, as it is read from the store."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa

from focuscrawl.store import CrawlStore
from focuscrawl.store.schema import QUEUED, link, metadata, page, url
from focuscrawl.workers.shared_distilling import StoredGraph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANY = 200_000
FAR = 2**62  # ids of workers are hashes of 63 bits: no float can hold them


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CrawlStore]:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'crawl.db'}")
    metadata.create_all(engine)
    yield CrawlStore(engine, "here")
    engine.dispose()


def put(store: CrawlStore, table: sa.Table, *rows: dict[str, Any]) -> None:
    with store.engine.begin() as connection:
        connection.execute(sa.insert(table), list(rows))


def put_url(store: CrawlStore, number: int, of_host: int, referrer: int | None = None) -> None:
    row = {"id": number, "host": of_host, "referrer": referrer, "depth": 0, "score": 0.5}
    put(store, url, {**row, "url": f"http://h{of_host}/{number}", "state": QUEUED})


def put_page(
    store: CrawlStore, seq: int, number: int, relevance: float, of: int | None = None
) -> None:
    row = {"seq": seq, "url": number, "relevance": relevance, "duplicate_of": of, "status": 200}
    put(store, page, {**row, "fetched_at": "", "size": 0, "links": 0, "dropped": 0})


def put_links(store: CrawlStore, *links: tuple[int, int]) -> None:
    same = {"anchor": "", "dom_position": 0, "model_version": 0}
    rows = [{"id": i, "source": s, "target": t, **same} for i, (s, t) in enumerate(links)]
    put(store, link, *rows)


def test_the_graph_is_that_of_the_store(store: CrawlStore) -> None:
    a, b, c, later = FAR + 3, FAR + 1, 7, FAR + 2
    put_url(store, a, FAR + 11)
    put_url(store, b, 5, referrer=a)
    put_url(store, c, FAR + 11, referrer=b)
    put_page(store, 1, a, 0.75)
    put_page(store, 2, b, 0.25, of=a)
    put_page(store, 3, later, 1.0)
    put_links(store, (a, b), (b, c), (a, later), (later, c), (a, c))
    graph, ids, hosts = StoredGraph.of(store)
    assert ids.tolist() == [c, b, a]
    assert hosts[graph.host].tolist() == [FAR + 11, 5, FAR + 11]
    assert graph.referrer.tolist() == [1, 2, -1]
    assert ids[graph.page].tolist() == [a, b]
    assert graph.relevance.tolist() == [0.75, 0.25]
    assert graph.repeats.tolist() == [-1, 2]
    links = [*zip(ids[graph.source].tolist(), ids[graph.target].tolist(), strict=True)]
    assert links == [(a, b), (b, c), (a, c)]  # of the others, an end is not there yet
    assert all(each.dtype == np.int64 for each in (*graph, ids) if each is not graph.relevance)


def test_an_empty_store_has_an_empty_graph(store: CrawlStore) -> None:
    graph, ids, hosts = StoredGraph.of(store)
    assert not any(map(len, (*graph, ids, hosts)))


def test_links_take_little_memory_while_they_are_read(store: CrawlStore) -> None:
    for number in (1, 2):
        put_url(store, number, 1)
    put_page(store, 1, 1, 0.5)
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?)"
            " INSERT INTO link (id, source, target, anchor, dom_position, model_version)"
            " SELECT i, 1, 2, '', 0, 0 FROM n",
            (MANY,),
        )
    StoredGraph.of(store)  # what is imported and compiled once is no matter of links
    tracemalloc.start()
    try:
        graph = StoredGraph.of(store).graph
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(graph.source) == MANY
    assert peak < 80 * MANY  # lists of tuples of numbers take 186 bytes a link
