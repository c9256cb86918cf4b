"""Features of pages and links, what directories of a site brought, when a site is given up."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.page import parse_page
from focuscrawl.paths.forager import WINDOW, SiteRates, SiteStopRule, directory_keys
from focuscrawl.paths.path_features import (
    FeatureVocabulary,
    PathFeatureReader,
    ReadingLimits,
    relation,
    split_url,
    word_shape,
)
from focuscrawl.paths.path_model import Calibration, LikelihoodRatio

URLS = [
    "http://a.example/people/1",
    "http://a.example/people/2",
    "http://a.example/photos/1",
    "http://a.example/photos/2",
    "http://b.example/people/3",
]
CALIBRATION = Calibration(LikelihoodRatio(2.0, 2.0), LikelihoodRatio(2.0, 2.0), 0.25, 8)
NOWHERE, DULL, MAYBE, GOOD = 0.01, 0.1, 0.25, 0.7


@pytest.mark.parametrize(
    ("url", "seen_from", "said"),
    [
        ("http://a.b.example/x/y/", "http://a.b.example/x/", "below"),
        ("http://a.b.example/x/z", "http://a.b.example/x/y", "beside"),
        ("http://a.b.example/", "http://a.b.example/x/y/", "above"),
        ("http://a.b.example/v/", "http://a.b.example/x/", "host"),
        ("http://c.b.org/", "http://a.b.org/", "domain"),
        ("http://c.d.example/", "http://a.b.example/", "away"),
        ("http://a.b.example/xy/", "http://a.b.example/x/", "host"),
    ],
)
def test_places(url: str, seen_from: str, said: str) -> None:
    assert relation(split_url(url), split_url(seen_from)) == said


def test_forms_of_urls_and_anchors() -> None:
    home = {"place:~", "place:~home", "place:ends/", "place:index"}
    assert home <= set(split_url("http://a.example/~ann/").facts)
    assert "place:ends.html" in split_url("http://a.example/x/cs101.HTML").facts
    assert word_shape("Ann Bee") == "AaAa"
    assert word_shape("CS 101: logic") == "AA0:a"


_TEXT = st.text(st.sampled_from("abc <>/a=\"'h1li.:~09\x00é\n"), max_size=200)


@settings(max_examples=60, deadline=None)
@given(
    _TEXT,
    st.lists(
        st.tuples(st.sampled_from(["/", "x/y", "?q", "http://b.example", "#"]), _TEXT), max_size=6
    ),
)
def test_any_page_can_be_read(text: str, links: list[tuple[str, str]]) -> None:
    anchors = "".join(f'<a href="{to}">{anchor}</a>' for to, anchor in links)
    view = parse_page(f"<h2>{text}</h2>{anchors}{text}".encode(), "http://a.example/x")
    reader = PathFeatureReader(ReadingLimits(), keep_words=True)
    page = reader.page(view, "http://a.example/")
    every = np.arange(len(view.links))
    rows = reader.links(view, "http://a.example/", every)
    assert rows.n == len(every)
    for i in every.tolist():  # a link has the same features alone as among others
        alone = reader.links(view, "http://a.example/", np.array([i]))
        assert set(alone.keys.tolist()) == set(rows.keys[rows.owner == i].tolist())
    names = reader.names([page.keys, rows.keys])
    vocabulary = FeatureVocabulary(sorted(set(names.values())))
    known = vocabulary.rows(rows)
    assert {vocabulary.names[i] for i in known.indices} == {names[k] for k in rows.keys.tolist()}
    for i in every.tolist():  # what repeats counts once
        of_link = known.indices[known.indptr[i] : known.indptr[i + 1]].tolist()
        assert sorted(vocabulary.names[j] for j in of_link) == sorted(
            {names[key] for key in rows.keys[rows.owner == i].tolist()}
        )
    # each kind of a link has a length of 1, however many words there are
    lengths: defaultdict[tuple[int, str], float] = defaultdict(float)
    row = np.repeat(np.arange(len(known)), known.lengths)
    for at, feature, value in zip(row, known.indices, vocabulary.values(known), strict=True):
        lengths[int(at), vocabulary.names[feature].partition(" ")[0]] += value**2
    assert all(length == pytest.approx(1.0) for length in lengths.values())


def test_a_directory_is_told_from_its_neighbour_by_what_it_brought() -> None:
    rates, every = SiteRates(), np.arange(len(URLS))
    rates.grow(len(URLS))
    rates.set_directories(every, directory_keys(URLS))
    np.testing.assert_array_equal(rates.factors(every), 1.0)
    for url in range(4):  # what keeps its promise stays as it is
        rates.observe(url, 0.3, 0.3)
    assert rates.factors(every) == pytest.approx(1.0)
    rates.observe(0, 0.3, 0.9)
    rates.observe(2, 0.3, 0.01)
    people, photos, elsewhere = rates.factors(np.array([1, 3, 4]))
    assert photos < elsewhere < people
    assert people > 1.2
    assert photos < 0.8


def _ends(fetched: list[float], waiting: list[float]) -> bool:
    """Tell whether a site ends while its pages have these Pr(goal), and these wait."""
    stop_rule = SiteStopRule(CALIBRATION, 0.02)
    for url, goal in enumerate(fetched):
        stop_rule.record_fetch(url)
        stop_rule.record_page(url, goal)
        if stop_rule.is_due and stop_rule.should_stop(np.array(waiting)[:WINDOW]):
            return True
    return False


@pytest.mark.parametrize(
    ("fetched", "waiting", "over"),
    [
        ([GOOD] * 10 + [DULL] * 150, [DULL] * WINDOW, True),
        ([DULL] * 10, [], True),
        ([DULL] * 10, [NOWHERE] * WINDOW, True),  # all that waits is on other sites
        ([DULL] * 10, [DULL] + [NOWHERE] * WINDOW, False),
        ([GOOD] * 10 + [DULL] * 150, [GOOD] * 5 + [DULL] * WINDOW, False),  # a list was found
        ([GOOD] * 10 + [DULL] * 80, [DULL] * WINDOW, False),  # too early to tell
        ([DULL] * 200, [DULL] * WINDOW, False),  # nothing was found yet: it looks on
        ([GOOD] * 10 + [DULL] * 150, [MAYBE] * WINDOW, True),
        (([GOOD] + [DULL] * 9) * 16, [MAYBE] * WINDOW, False),  # a trickle of goals goes on
    ],
)
def test_a_site_is_over_when_goals_are_behind_and_none_ahead(
    fetched: list[float], waiting: list[float], over: bool
) -> None:
    assert _ends(fetched, waiting) is over


def test_what_was_fetched_in_vain_counts_as_no_goal() -> None:
    stop_rule = SiteStopRule(CALIBRATION, 0.02)
    looks = []
    for url in range(160):
        stop_rule.record_fetch(url)
        stop_rule.record_page(url if url < 10 else -1, GOOD)  # the others brought no page
        if stop_rule.is_due:
            looks.append(stop_rule.should_stop(np.full(WINDOW, DULL)))
    assert len(looks) == 16
    assert looks[-1]
    assert not any(looks[:10])


def test_a_calibration_is_the_steeper_the_more_a_model_tells() -> None:
    evidence = LikelihoodRatio(2.0, 2.0)(np.array([0.0, DULL, 0.5, GOOD, 1.0]))
    assert (np.diff(evidence) > 0.0).all()
    assert np.isfinite(evidence).all()
