"""What is known of a link beside its words, and the instances made of links."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.hashing import SparseRows, beside, bucket, pointers
from focuscrawl.apprentice.instances import (
    N_FEATURES,
    SPACE,
    address_margins,
    link_margins,
    make_instances,
)
from focuscrawl.apprentice.link_features import RELATIONS, SITE, cocitation, site_features
from focuscrawl.apprentice.link_table import LinkTable
from focuscrawl.apprentice.options import MAX_LINKS

from .toy_crawl import Toy

HERE = "http://h.example/a/b/page.html?q=/x/"


@pytest.mark.parametrize(
    ("target", "relation"),
    [
        ("http://other.example/a/b/", "another host"),
        ("http://www.h.example/a/b/x.html", "another host"),
        ("http://h.example:8080/a/b/x.html", "another host"),
        ("http://h.example/a/b/", "same directory"),
        ("http://h.example/a/b/x.html?to=/y/z/", "same directory"),
        ("https://h.example/a/b/x.html", "same directory"),
        ("http://h.example/a/b/c/", "directory below"),
        ("http://h.example/a/b/c/d/x.html", "directory below"),
        ("http://h.example/a/b", "directory above"),
        ("http://h.example/", "directory above"),
        ("http://h.example/?a/b/", "directory above"),
        ("http://h.example/a/bc/", "same host"),
        ("http://h.example/c/", "same host"),
    ],
)
def test_relations_of_hosts_and_directories(target: str, relation: str) -> None:
    rows = site_features(HERE, [target, HERE], 20)
    names = bucket(np.arange(len(RELATIONS), dtype=np.uint64), SITE, 20).tolist()
    assert len(set(names)) == len(RELATIONS)
    assert rows.lengths.tolist() == [1, 1]
    assert RELATIONS[names.index(rows.indices[0])] == relation
    assert RELATIONS[names.index(rows.indices[1])] == "same directory"
    assert len(site_features(HERE, [], 20)) == 0


@settings(deadline=None)
@given(st.data())
def test_rows_beside_each_other(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 4))
    tables = data.draw(
        st.lists(
            st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=n, max_size=n),
            min_size=1,
            max_size=4,
        )
    )
    parts = [
        SparseRows(
            np.array([f for row in table for f in row], np.int32),
            pointers(np.array([len(row) for row in table], np.int64)),
        )
        for table in tables
    ]
    rows, order = beside(*parts)
    together = [[f for table in tables for f in table[i]] for i in range(n)]
    assert len(rows) == n
    assert rows.lengths.tolist() == [len(row) for row in together]
    assert rows.indices.tolist() == [f for row in together for f in row]
    assert rows.indices.dtype == np.int32
    assert rows.indices[order].tolist() == [f for part in parts for f in part.indices.tolist()]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 4), st.sampled_from([None, 0.0, 0.5, 0.51, 1.0])),
        max_size=30,
    ),
    st.integers(0, 6),
)
def test_cocitation_is_that_of_the_paper(
    drawn: list[tuple[bool, int, float | None]], d_max: int
) -> None:
    turns = [turn for turn, _, _ in drawn]
    page = np.cumsum(turns).astype(np.int64)
    position = np.zeros(len(drawn), np.int32)
    for i, (turn, apart, _) in enumerate(drawn):  # links of a page follow each other
        position[i] = apart if turn or not i else position[i - 1] + apart
    y = np.array([np.nan if r is None else r for _, _, r in drawn])
    found = cocitation(page, position, y, d_max)
    width = 2 * d_max + 1
    expected = np.zeros((len(drawn), 2 * width))
    for i in range(len(drawn)):
        for j in range(len(drawn)):
            offset = int(position[j] - position[i])
            if i != j and page[i] == page[j] and abs(offset) <= d_max and np.isfinite(y[j]):
                expected[i, (0 if y[j] > 0.5 else width) + d_max + offset] = 1.0
    assert np.array_equal(found, expected)


def test_the_first_link_is_the_one_that_made_its_target_known() -> None:
    toy, known = Toy(), LinkTable()
    facts = toy.facts(0, np.ones(12, bool))
    targets = np.array([5, 6, 5, 7, 0, 6, 8, 9, 9, 9, 9, 10])
    new = np.array([5, 6, 7, 8, 9, 10])  # not 0: as if its address were known
    found = replace(
        facts,
        targets=targets,
        new=new,
        urls=SparseRows(np.zeros(6, np.int32), np.arange(7)),
        url_keys=toy.keys[new],
    )
    known.add(0, found)
    assert np.flatnonzero(known.first.data).tolist() == [0, 1, 3, 6, 7, 11]
    seen = replace(
        facts,
        targets=targets,
        new=np.zeros(0, np.int64),
        urls=SparseRows.empty(0),
        url_keys=toy.keys[:0],
    )
    known.add(1, seen)
    assert not known.first.data[12:].any()
    assert len(known) == 24


@pytest.fixture(scope="module")
def known() -> LinkTable:
    """What 60 pages of the toy say."""
    toy, known = Toy(n=80), LinkTable()
    met = np.zeros(80, bool)
    for u in range(60):
        targets = toy.targets[u]
        known.add(u, toy.facts(u, ~met[targets]))
        met[targets] = True
    return known


URLS = np.array([7, 3, 11])
DENSE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("unit_length", [True, False])
@pytest.mark.parametrize("only_first", [True, False])
@pytest.mark.parametrize("each_link", [True, False])
@pytest.mark.parametrize("most", [2, MAX_LINKS, 999])
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
        most=most,
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
            parts = [(known.addresses, int(known.address.data[url]), 1.0, SPACE)]
            for i in group:
                link, share = int(links[i]), float(shares[i])
                parts.append((known.links, link, share, 0))
                parts.append((known.pages, int(known.page.data[link]), share, 2 * SPACE))
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
        found: Counter[int] = Counter()
        for feature, value in zip(
            instances.rows.indices[inside].tolist(), instances.values[inside].tolist(), strict=True
        ):
            found[feature] += value
        assert found == pytest.approx(bag)


@pytest.mark.parametrize("unit_length", [True, False])
def test_margins_are_sums_over_instances(known: LinkTable, unit_length: bool) -> None:
    weights = np.random.default_rng(0).normal(size=N_FEATURES)
    instances, _ = make_instances(
        known, len(known), URLS, DENSE, unit_length=unit_length, most=len(known)
    )
    by_kind = weights[:SPACE].astype(np.float32), weights[2 * SPACE :]

    def margins(links: np.ndarray | range) -> np.ndarray:
        return link_margins(*by_kind, known, links, unit_length=unit_length)

    of_links = margins(range(len(known)))
    of_address = address_margins(weights, known, URLS, unit_length=unit_length)
    for i, url in enumerate(URLS.tolist()):
        links = known.target.data == url
        mean = np.average(of_links[links], weights=known.weight.data[links])
        assert np.isclose(mean + of_address[i], instances.dot(weights)[i], atol=1e-5)
    assert np.array_equal(margins(range(30, 50)), of_links[30:50])
    assert np.array_equal(margins(np.array([3, 30, 49])), of_links[[3, 30, 49]])
    assert not len(margins(range(50, 50)))
