"""Bags that are kept are those that would be made anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.instances import InstanceCache, make_instances
from focuscrawl.apprentice.link_table import LinkTable

from .toy_crawl import Toy

N_URLS = 40


def grown(pages: int, known: LinkTable | None = None, begin: int = 0) -> LinkTable:
    """What the toy's pages from `begin` on say."""
    toy, known = Toy(n=N_URLS, out=9), LinkTable() if known is None else known
    for u in range(begin, begin + pages):
        met = known.address.data[:N_URLS] >= 0
        met = np.pad(met, (0, N_URLS - len(met)))
        known.add(u % N_URLS, toy.facts(u % N_URLS, ~met[toy.targets[u % N_URLS]]))
    return known


def check(memory: InstanceCache, known: LinkTable, n_links: int, urls: np.ndarray) -> None:
    inputs = np.arange(2.0 * len(urls)).reshape(-1, 2)
    expected, _ = make_instances(known, n_links, urls, inputs, unit_length=True)
    found = memory.instances(known, n_links, urls, inputs)
    assert np.array_equal(found.rows.indices, expected.rows.indices)
    assert np.array_equal(found.rows.indptr, expected.rows.indptr)
    assert found.rows.indices.dtype == expected.rows.indices.dtype
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.dense, expected.dense)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.integers(0, N_URLS - 1), unique=True)),
        min_size=1,
        max_size=8,
    )
)
def test_from_lesson_to_lesson(lessons: list[tuple[int, list[int]]]) -> None:
    known, memory, pages = grown(12), InstanceCache(unit_length=True), 12
    for more, wanted in lessons:
        grown(more, known, pages)
        pages += more
        n_links = len(known) - (5 if more else 0)  # what comes during a lesson is not in it
        met = set(known.target.data[:n_links].tolist())
        check(memory, known, n_links, np.array([v for v in wanted if v in met], np.int64))


@pytest.mark.parametrize("same_links", [True, False])
def test_after_links_were_forgotten(same_links: bool) -> None:
    known, memory = grown(20), InstanceCache(unit_length=True)
    urls = np.unique(known.target.data[-30:])
    check(memory, known, len(known), urls)
    out = np.arange(20) < 10
    kept = known.without(out, len(known))
    if not same_links:
        grown(15, kept, 20)
    check(memory, kept, len(kept), urls)
