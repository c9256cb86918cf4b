"""What is left of a directory that has ended is told by the misses in a row."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.dense_inputs import INPUTS, input_names, prior_of, widened
from focuscrawl.apprentice.evidence import FetchOutcomes
from focuscrawl.apprentice.misses import Misses
from focuscrawl.apprentice.options import DEFAULT_GROUPS, Options
from focuscrawl.apprentice.url_features import PREFIXES, address_keys
from focuscrawl.foundation.packed_arrays import pack_arrays, unpack_arrays

from .toy_crawl import Crawl, Toy

HOST = "http://boats.example/"


def misses_of(misses: Misses, *urls: str) -> list[float]:
    keys = np.array([address_keys(url)[:PREFIXES] for url in urls], np.uint32)
    counted: list[float] = misses.of(keys).tolist()
    return counted


def test_a_directory_that_brings_nothing_counts_until_it_does() -> None:
    misses = Misses()
    old, new, root = HOST + "old/1", HOST + "new/1", HOST + "1"
    for _ in range(5):
        misses.observe(np.array(address_keys(old)[:PREFIXES], np.uint32), 0.0)
    below = HOST + "old/years/1"
    assert misses_of(misses, old, below, new, root) == [5.0, 5.0, 0.0, 5.0]
    misses.observe(np.array(address_keys(below)[:PREFIXES], np.uint32), 1.0)
    assert misses_of(misses, old, below, new, root) == [0.0, 0.0, 0.0, 0.0]


def test_a_page_at_the_edge_of_the_topic_ends_most_of_it() -> None:
    misses, keys = Misses(), np.array(address_keys(HOST + "old/1")[:PREFIXES], np.uint32)
    for relevance in (0.0, 0.0, 0.0, 0.75):
        misses.observe(keys, relevance)
    assert misses_of(misses, HOST + "old/2") == [1.0]


def test_outcomes_of_fetches_are_counted_for_what_waits() -> None:
    fetched = FetchOutcomes()
    fetched.observe(np.array(address_keys(HOST + "old/1"), np.uint32), 0.0)
    assert misses_of(fetched.misses, HOST + "old/2", HOST + "new/2") == [1.0, 0.0]


@pytest.mark.parametrize("groups", [DEFAULT_GROUPS, (*DEFAULT_GROUPS, "cocitation")])
def test_what_was_learned_without_misses_is_gone_on_from(
    groups: tuple[str, ...],
) -> None:
    options = Options(batch=10, groups=groups)
    crawl = Crawl(Toy(), Apprentice(options)).run(60)
    arrays = dict(unpack_arrays(crawl.apprentice.export()))
    at = INPUTS.index("misses")
    for name in ("m_dense", "m_prior"):
        arrays[name] = np.delete(arrays[name], at)
    warm = Apprentice.warm_started(options, pack_arrays(arrays, compressed=False))
    learned = crawl.apprentice.scorer.dense.copy()
    learned[at] = prior_of(options)[at]
    assert np.array_equal(warm.scorer.dense, learned)


def test_what_is_none_of_ours_is_not_widened() -> None:
    now = np.zeros(len(input_names(Options())))
    for other in (np.array(1.0), np.zeros(0), np.zeros(3), np.zeros((2, len(now) + 1))):
        assert widened(other, now) is other
