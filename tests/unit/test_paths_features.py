"""What is observed of pages and links on a path: places, forms, words, and their numbers."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.page import parse_page
from focuscrawl.paths.path_features import (
    FeatureVocabulary,
    PathReader,
    ReadingLimits,
    parts_of,
    relation,
    word_shape,
)


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
    assert relation(parts_of(url), parts_of(seen_from)) == said


def test_forms_of_urls_and_anchors() -> None:
    home = {"place:~", "place:~home", "place:ends/", "place:index"}
    assert home <= set(parts_of("http://a.example/~ann/").facts)
    assert "place:ends.html" in parts_of("http://a.example/x/cs101.HTML").facts
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
    reader = PathReader(ReadingLimits(), forgets=False)
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
