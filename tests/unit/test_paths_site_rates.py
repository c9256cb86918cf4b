"""What directories of a site brought, against what their links promised."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.paths.forager import SiteRates, directories_of

URLS = [
    "http://a.example/people/1",
    "http://a.example/people/2",
    "http://a.example/photos/1",
    "http://a.example/photos/2",
    "http://b.example/people/3",
]


def _rates() -> SiteRates:
    rates = SiteRates()
    rates.make_room(len(URLS))
    rates.note(np.arange(len(URLS)), directories_of(URLS))
    return rates


def test_what_keeps_its_promise_stays_as_it_is() -> None:
    rates = _rates()
    for url in range(4):
        rates.observe(url, 0.3, 0.3)
    assert rates.factors(np.arange(len(URLS))) == pytest.approx(1.0)


def test_a_directory_is_told_from_its_neighbour_by_what_it_brought() -> None:
    rates = _rates()
    np.testing.assert_array_equal(rates.factors(np.arange(len(URLS))), 1.0)
    rates.observe(0, 0.3, 0.9)
    rates.observe(2, 0.3, 0.01)
    people, photos, elsewhere = rates.factors(np.array([1, 3, 4]))
    assert photos < elsewhere < people
    assert people > 1.5
    assert photos < 0.6
