"""Instances made of links, their margins, and the cache of those made before."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.apprentice import Apprentice, pack_judged_batch
from focuscrawl.apprentice.hashing import SparseRows, hstack, row_pointers
from focuscrawl.apprentice.instances import (
    N_FEATURES,
    InstanceCache,
    JudgedUrls,
    link_margins,
    make_instances,
    row_margins,
)
from focuscrawl.apprentice.link_features import HASH_SIZE
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.options import EVIDENCE, MAX_LINKS, Options
from focuscrawl.foundation.arrays import unpack_arrays

from .toy_crawl import Crawl, Toy

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_URLS = 60
URLS = np.array([7, 3, 11])
DENSE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def grown(pages: int, known: LinkTable | None = None, begin: int = 0) -> LinkTable:
    """Return a table with so many pages of a toy from `begin` on."""
    toy, known = Toy(n=N_URLS, out=9), LinkTable() if known is None else known
    for u in range(begin, begin + pages):
        known.grow(N_URLS)
        targets = toy.targets[u % N_URLS]
        known.add(u % N_URLS, toy.features(u % N_URLS, known.url_row.data[targets] < 0))
    return known


@pytest.fixture(scope="module")
def known() -> LinkTable:
    return grown(50)


@settings(deadline=None)
@given(st.data())
def test_rows_beside_each_other(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 4))
    row = st.lists(st.integers(0, 99), max_size=3)
    tables = data.draw(st.lists(st.lists(row, min_size=n, max_size=n), min_size=1, max_size=4))
    parts = [
        SparseRows(
            np.array([f for row in table for f in row], np.int32),
            row_pointers(np.array([len(row) for row in table], np.int64)),
        )
        for table in tables
    ]
    rows, order = hstack(*parts)
    together = [[f for table in tables for f in table[i]] for i in range(n)]
    assert rows.lengths.tolist() == [len(row) for row in together]
    assert rows.indices.tolist() == [f for row in together for f in row]
    assert rows.indices.dtype == np.int32
    assert rows.indices[order].tolist() == [f for part in parts for f in part.indices.tolist()]


@pytest.mark.parametrize("unit_length", [True, False])
@pytest.mark.parametrize("only_first", [True, False])
@pytest.mark.parametrize("each_link", [True, False])
@pytest.mark.parametrize("most", [2, MAX_LINKS])
def test_instances_hold_links_pages_and_addresses(
    known: LinkTable, unit_length: bool, only_first: bool, each_link: bool, most: int
) -> None:
    n_links = len(known) - 100
    instances, owner = make_instances(
        known,
        n_links,
        URLS,
        DENSE,
        unit_length=unit_length,
        each_link=each_link,
        only_first=only_first,
        max_links=most,
    )
    expected: list[tuple[int, Counter[int]]] = []
    for number, url in enumerate(URLS.tolist()):
        links = np.flatnonzero(known.target.data[:n_links] == url)
        if only_first:
            links = links[known.first.data[links]]
            assert len(links) == 1
        links = links[:most]
        weight = known.weight.data[links]
        shares = np.ones(len(links)) if each_link else weight / weight.sum()
        groups = [[i] for i in range(len(links))] if each_link else [[*range(len(links))]]
        for group in groups:
            bag: Counter[int] = Counter()
            parts = [(known.url_rows, int(known.url_row.data[url]), 1.0, HASH_SIZE)]
            for i in group:
                link, share = int(links[i]), float(shares[i])
                parts.append((known.links, link, share, 0))
                parts.append((known.pages, int(known.page.data[link]), share, 2 * HASH_SIZE))
            for store, row, share, space in parts:
                features = store.rows(len(store)).take(np.array([row])).indices.tolist()
                for feature in features:
                    scale = len(features) ** -0.5 if unit_length else 1.0
                    bag[feature + space] += share * scale  # type: ignore[assignment]
            expected.append((number, bag))
    assert owner.tolist() == [number for number, _ in expected]
    assert np.array_equal(instances.dense, DENSE[owner])
    for at, (_, bag) in enumerate(expected):
        inside = slice(*instances.rows.indptr[at : at + 2])
        values = instances.values[inside].tolist()
        found: Counter[int] = Counter()
        for feature, value in zip(instances.rows.indices[inside].tolist(), values, strict=True):
            found[feature] += value
        assert found == pytest.approx(bag)


@pytest.mark.parametrize("unit_length", [True, False])
def test_margins_are_sums_over_instances(known: LinkTable, unit_length: bool) -> None:
    weights = np.random.default_rng(0).normal(size=N_FEATURES)
    instances, _ = make_instances(
        known, len(known), URLS, DENSE, unit_length=unit_length, max_links=len(known)
    )
    of_links, of_urls, of_pages = weights.reshape(3, HASH_SIZE)

    def margins(links: NDArray[np.int64] | range) -> NDArray[np.float64]:
        by_link = of_links.astype(np.float32)
        return link_margins(by_link, of_pages, known, links, unit_length=unit_length)

    of_all = margins(range(len(known)))
    of_address = row_margins(of_urls, known.features_of_urls(URLS), unit_length)
    for i, url in enumerate(URLS.tolist()):
        links = known.target.data == url
        mean = np.average(of_all[links], weights=known.weight.data[links])
        assert np.isclose(mean + of_address[i], instances.dot(weights)[i], atol=1e-5)
    assert np.array_equal(margins(range(30, 50)), of_all[30:50])
    assert np.array_equal(margins(np.array([3, 30, 49])), of_all[[3, 30, 49]])
    assert not len(margins(range(50, 50)))


def judged(known: LinkTable, urls: NDArray[np.int64]) -> JudgedUrls:
    """Return URLs that are judged now, with some inputs."""
    n = len(urls)
    inputs = np.stack([urls, 2 * urls], axis=1).astype(float)
    return JudgedUrls(urls, inputs, np.zeros(n), np.full(n, known.pages_ever))


def together(parts: list[JudgedUrls]) -> JudgedUrls:
    return JudgedUrls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def check(cache: InstanceCache, known: LinkTable, n_links: int, learned: JudgedUrls) -> None:
    """Compare the instances of the cache with those of `make_instances`."""
    expected, _ = make_instances(
        known,
        n_links,
        learned.urls,
        learned.inputs,
        unit_length=True,
        max_links=MAX_LINKS,
        n_pages=learned.n_pages,
    )
    found = cache.instances(known, n_links, learned)
    assert found.rows.indices.dtype == expected.rows.indices.dtype
    for one, other in (
        (found.rows.indices, expected.rows.indices),
        (found.rows.indptr, expected.rows.indptr),
        (found.values, expected.values),
        (found.dense, expected.dense),
    ):
        assert np.array_equal(one, other)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.integers(0, N_URLS - 1), unique=True)),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 40),
)
def test_a_cache_from_training_to_training(
    trainings: list[tuple[int, list[int]]], remembered: int
) -> None:
    known, cache, pages = grown(12), InstanceCache(unit_length=True, max_links=MAX_LINKS), 12
    learned: list[JudgedUrls] = []
    fetched: set[int] = set()
    for more, wanted in trainings:
        met = set(known.target.data.tolist()) - fetched
        new = [v for v in wanted if v in met]
        fetched |= set(new)
        learned.append(judged(known, np.array(new, np.int64)))
        n_links = len(known)
        grown(more, known, pages)  # pages expanded during a training are not in it
        pages += more
        check(cache, known, n_links, together(learned).latest(remembered))


@pytest.mark.parametrize("same_links", [True, False])
def test_a_cache_after_links_were_forgotten(same_links: bool) -> None:
    known, cache = grown(20), InstanceCache(unit_length=True, max_links=MAX_LINKS)
    learned = judged(known, np.unique(known.target.data[-30:]))
    check(cache, known, len(known), learned)
    kept = known.without_pages(np.arange(20) < 10, len(known))
    if not same_links:
        grown(15, kept, 20)
    check(cache, kept, len(kept), learned)


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_a_prefix_of_a_crawl_gives_the_instances_of_the_whole_crawl(evidence: str) -> None:
    web = Toy()
    web.targets[:, 0] = np.arange(len(web.targets))  # each page links to itself
    crawl = Crawl(web, Apprentice(Options(batch=10, evidence=evidence)))
    at_prefix: dict[int, list[tuple[list[int], list[float], list[float]]]] = {}
    for _ in range(12):
        batch = unpack_arrays(pack_judged_batch(crawl.run(7).apprentice) or b"")
        ends = np.cumsum(batch["lengths"]).tolist()
        rows = [
            (batch["indices"][a:b].tolist(), batch["values"][a:b].tolist(), dense.tolist())
            for a, b, dense in zip([0, *ends], ends, batch["dense"], strict=False)
        ]
        n = len(batch["y"])
        at_prefix[n] = rows
    whole = at_prefix[max(at_prefix)]
    assert len(at_prefix) > 8
    for rows in at_prefix.values():
        assert rows == whole[: len(rows)]


def test_an_instance_has_the_links_of_pages_fetched_before_and_none_to_itself() -> None:
    web, apprentice = Toy(n=30, out=3), Apprentice(Options())
    web.targets[:] = [[0, 1, 2]]
    web.visit(apprentice, [0, 5, 2, 1, 9])
    table, learned = apprentice.table, apprentice.memory.buffer.judged
    assert learned.urls.tolist() == [2, 1]
    _, owner = make_instances(
        table,
        len(table),
        learned.urls,
        learned.inputs,
        unit_length=True,
        max_links=MAX_LINKS,
        each_link=True,
        n_pages=learned.n_pages,
    )
    # links from 0 and 5; from 0, 5 and 2; never from 1 and 9
    assert owner.tolist() == [0, 0, 1, 1, 1]
