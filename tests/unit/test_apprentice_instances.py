"""Instances made of links, their margins, and the cache of those made before."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.hashing import SparseRows, hstack, row_pointers
from focuscrawl.apprentice.instances import (
    N_FEATURES,
    InstanceCache,
    link_margins,
    make_instances,
    row_margins,
)
from focuscrawl.apprentice.link_features import HASH_SIZE
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.options import MAX_LINKS

from .toy_crawl import Toy

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


def check(cache: InstanceCache, known: LinkTable, n_links: int, urls: NDArray[np.int64]) -> None:
    """Compare the instances of the cache with instances made anew."""
    inputs = np.arange(2.0 * len(urls)).reshape(-1, 2)
    expected, _ = make_instances(
        known, n_links, urls, inputs, unit_length=True, max_links=MAX_LINKS
    )
    found = cache.instances(known, n_links, urls, inputs)
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
    )
)
def test_a_cache_from_lesson_to_lesson(lessons: list[tuple[int, list[int]]]) -> None:
    known, cache, pages = grown(12), InstanceCache(unit_length=True, max_links=MAX_LINKS), 12
    for more, wanted in lessons:
        grown(more, known, pages)
        pages += more
        n_links = len(known) - (5 if more else 0)  # what comes during a lesson is not in it
        met = set(known.target.data[:n_links].tolist())
        check(cache, known, n_links, np.array([v for v in wanted if v in met], np.int64))


@pytest.mark.parametrize("same_links", [True, False])
def test_a_cache_after_links_were_forgotten(same_links: bool) -> None:
    known, cache = grown(20), InstanceCache(unit_length=True, max_links=MAX_LINKS)
    urls = np.unique(known.target.data[-30:])
    check(cache, known, len(known), urls)
    kept = known.without_pages(np.arange(20) < 10, len(known))
    if not same_links:
        grown(15, kept, 20)
    check(cache, kept, len(kept), urls)
