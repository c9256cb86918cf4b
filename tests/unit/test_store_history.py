"""`History` gives back what a crawl has put into its store, in the order it happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.store import CrawlStore, StoreWriter, schema
from focuscrawl.store.history import DIGEST, History
from focuscrawl.webs.synthetic import SyntheticWeb

from .shelves import Shelf, open_crawl, run
from .test_crawl_distilling import BUDGET, crawl_on
from .test_crawl_hub_revisits import AGE, new_links

if TYPE_CHECKING:
    from focuscrawl.store import VisitRecord
    from focuscrawl.store.history import StoredFetch


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[VisitRecord]:
    """Every record that is put into a store, in the order it is put."""
    records: list[VisitRecord] = []
    put = StoreWriter.put

    def keep(writer: StoreWriter, record: VisitRecord) -> None:
        records.append(record)
        put(writer, record)

    monkeypatch.setattr(StoreWriter, "put", keep)
    return records


def fetches_of(records: list[VisitRecord]) -> Iterator[tuple[Any, ...]]:
    """What records say of each fetch, and of each second one: see `told`."""
    for record in records:
        links = [(link.id, link.target, link.score) for link in record.links]
        if record.page is not None:
            p = record.page
            judged = (p.relevance, p.topic, p.canonical, p.digest, p.duplicate_of, record.memo)
            yield p.seq, p.url, p.status, *judged, p.title, p.error, links, False
        for row in record.revisits:
            if row.seq is not None:
                judged = (row.relevance or 0.0, None, None, None, None, row.memo)
                yield row.seq, row.url, row.status or 0, *judged, None, row.error, links, True


def told(fetch: StoredFetch) -> tuple[Any, ...]:
    f = fetch
    digest = None if f.digest is None else f.digest + (f.signature or b"")
    judged = (f.relevance, f.topic, f.canonical, digest, f.duplicate_of, f.memo)
    links = [tuple(link) for link in f.links]
    return f.seq, f.url, f.status, *judged, f.title, f.error, links, f.is_revisit


def place(fetch: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of second fetches after the same page, the store knows the order of those with links."""
    seq, url, *_, links, again = fetch
    return seq, again, bool(links), 0 if links else url


@pytest.mark.parametrize("strategy", ["best-first", "apprentice"])
@pytest.mark.parametrize("budgets", [(BUDGET,), (47, 48, 90, BUDGET)], ids=["whole", "resumed"])
def test_fetches_come_as_they_were_written(
    tmp_path: Path, written: list[VisitRecord], strategy: str, budgets: tuple[int, ...]
) -> None:
    pages = [*SyntheticWeb(0.1).urls()]
    for budget in budgets:
        crawl = crawl_on(
            tmp_path,
            budget,
            strategy,
            grown=lambda url: new_links(url, pages),
            revisit_hubs=AGE,
        )
        crawl.close("budget")
        expected = [*fetches_of(written)]
        with closing(CrawlStore.open(tmp_path / "crawl.db", read_only=True)) as store:
            history = History(store)
            found = [*map(told, history.fetches())]
            assert sorted(found, key=place) == sorted(expected, key=place)
            assert [each[0] for each in found] == [each[0] for each in expected]
            assert history.n_fetches() == sum(not again for *_, again in expected)
    *_, links, again = zip(*expected, strict=True)
    assert any(again)
    assert any(found for found, second in zip(links, again, strict=True) if second)
    assert sum(map(len, links)) == sum(len(record.links) for record in written)


def test_what_is_left_out(tmp_path: Path, written: list[VisitRecord]) -> None:
    pages = [*SyntheticWeb(0.1).urls()]
    crawl = crawl_on(
        tmp_path,
        BUDGET,
        "apprentice",
        grown=lambda url: new_links(url, pages),
        revisit_hubs=AGE,
    )
    crawl.close("budget")
    with closing(CrawlStore.open(tmp_path / "crawl.db", read_only=True)) as store:
        history = History(store)
        all_of_it = [*history.fetches()]
        without_links = [fetch._replace(links=()) for fetch in all_of_it]
        assert [*history.fetches(links=False)] == without_links
        first = [fetch._replace(memo=None) for fetch in without_links if not fetch.is_revisit]
        assert [*history.first_fetches()] == first
        rows = [link for record in written for link in record.links]
        pairs = [(link.source, link.target) for link in rows]
        assert history.links().tolist() == [list(pair) for pair in pairs]
        by_target = sorted(rows, key=lambda link: (link.target, link.id))
        assert [*history.anchors()] == [(link.target, link.anchor) for link in by_target]
        models = [record.model for record in written if record.model is not None]
        assert history.last_model() == (models[-1].trained_at_seq, models[-1].state)
        urls = [*history.urls()]
        assert [url.id for url in urls] == [*range(len(urls))]
        assert [fetch.url_text for fetch in all_of_it] == [
            urls[each.url].url for each in all_of_it
        ]
        assert [fetch.depth for fetch in all_of_it] == [urls[f.url].depth for f in all_of_it]
        assert [f.referrer for f in all_of_it] == [urls[f.url].referrer for f in all_of_it]
        hosts = [name for record in written for _, name in record.hosts]
        assert [*history.hosts()] == hosts
        assert [*history.numbered_hosts()] == [*enumerate(hosts)]


def test_a_page_fetched_again_right_after_itself(tmp_path: Path) -> None:
    """Two fetches of one page in a row: its source alone does not tell their links apart."""
    store = CrawlStore.create(tmp_path / "crawl.db", {})
    with store.connection() as connection:
        for statement in (
            "INSERT INTO host VALUES (0, 'h')",
            "INSERT INTO url VALUES (0, 'http://h/', 0, 0, NULL, NULL, 1)",
            "INSERT INTO url VALUES (1, 'http://h/1', 0, 1, 0, 0.5, 0)",
            "INSERT INTO page (seq, url, status, relevance, fetched_at, size, links, dropped, "
            "digest) VALUES (1, 0, 200, 0.5, '', 1, 2, 0, X'00')",
            "INSERT INTO link VALUES (0, 0, 0, 'self', 0, 0.1, 0), (1, 0, 1, 'one', 1, 0.2, 0), "
            "(2, 0, 1, 'new', 2, NULL, 0)",
            "INSERT INTO revisit (id, url, asked_at, seq, status, size, links, first_link) "
            "VALUES (0, 0, 1, 1, 200, 1, 1, 2), (1, 0, 1, 1, 304, 1, 0, NULL), "
            "(2, 0, 1, NULL, NULL, 0, 0, NULL)",
        ):
            connection.execute(statement)
    fetches = [*History(store).fetches()]
    assert [(each.is_revisit, each.status) for each in fetches] == [
        (False, 200),
        (True, 304),
        (True, 200),
    ]
    assert [[link.id for link in each.links] for each in fetches] == [[0, 1], [], [2]]
    assert fetches[2].links[0].score is None
    store.close()


def test_events_by_their_kinds(tmp_path: Path) -> None:
    store = CrawlStore.create(tmp_path / "crawl.db", {})
    rows = [(0, "start", "1"), (3, "limited", "h: a"), (3, "stop", "x"), (5, "start", "2")]
    with store.connection() as connection:
        connection.executemany(schema.INSERT["events"], [("now", *row) for row in rows])
    history = History(store)
    seen = [(each.seq, each.kind, each.detail) for each in history.events("start", "stop")]
    assert seen == [rows[0], rows[2], rows[3]]
    assert [each.detail for each in history.events("start", "stop", last=2)] == ["x", "2"]
    assert history.events("paused") == history.events("paused", last=1) == []
    store.close()


def test_nothing_yet(tmp_path: Path) -> None:
    store = CrawlStore.create(tmp_path / "crawl.db", {})
    history = History(store)
    assert history.n_fetches() == 0
    assert not [*history.fetches(), *history.answers(), *history.urls()]
    assert history.links().shape == (0, 2)
    assert history.links().dtype == np.int64
    assert history.last_model() is None
    store.close()


def test_a_digest_and_the_signature_behind_it(tmp_path: Path) -> None:
    web = Shelf()
    web.page("/", "jazz " + " ".join(f"word{n}" for n in range(300)))
    crawl = open_crawl(tmp_path, web, "/")
    run(crawl)
    crawl.close("budget")
    with closing(CrawlStore.open(tmp_path / "crawl.db")) as store:
        (fetch,) = History(store).fetches()
        (digest,) = store.row("SELECT digest FROM page")
    assert fetch.digest is not None
    assert fetch.signature is not None
    assert len(fetch.digest) == DIGEST
    assert fetch.digest + fetch.signature == digest
