"""Queries made of keywords, candidates chosen from answers, lists of URLs."""

from __future__ import annotations

from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focuscrawl.critic.phrase_model import parse_phrases
from focuscrawl.errors import UserError
from focuscrawl.search import Candidate, choose_candidates, make_tuples, open_source
from focuscrawl.search.queries import propose_queries, read_titles

from .small_crawl import being_written

WORDS = st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=3)


def test_words_of_advertisements_on_all_pages_are_in_no_proposed_query(tmp_path: Path) -> None:
    with being_written(tmp_path / "crawl") as crawl:
        for n in range(12):
            crawl.fetch(f"http://a.example/{n}", 0.9, title="Peloton saddle spokes sponsored")
        for n in range(20):
            advertised = "sponsored" if n % 4 else ""
            crawl.fetch(f"http://b.example/{n}", 0.1, title=f"Recipes {advertised}")
        store = crawl.written()
        queries = propose_queries(read_titles(store))
    assert {word for each in queries for word in each.split()} == {"peloton", "saddle", "spokes"}


def test_few_phrases_are_combined_word_by_word() -> None:
    phrases = parse_phrases("road cycling, history of the bicycle, peloton")
    queries = make_tuples(phrases)
    assert len(queries) == 10 == len({frozenset(each.split()) for each in queries})
    assert {len(each.split()) for each in queries} == {3}
    words = {word for each in queries for word in each.split()}
    assert words <= {"road", "cycling", "history", "bicycle", "peloton"}  # no everyday words
    assert queries == make_tuples(phrases)
    assert queries != make_tuples(phrases, random_state=1)


def test_many_phrases_are_combined_as_phrases() -> None:
    queries = make_tuples(parse_phrases("road cycling, peloton, tubeless, time trial"))
    assert len(queries) == 4
    assert sum('"road cycling"' in each for each in queries) == 3
    assert make_tuples(parse_phrases("peloton")) == []
    assert make_tuples(parse_phrases("road cycling, peloton"), n=0) == []


@given(st.lists(WORDS, min_size=4, max_size=8), st.integers(1, 20), st.integers(1, 3))
def test_no_combination_is_asked_twice(phrases: list[list[str]], n: int, size: int) -> None:
    distinct = len({" ".join(each) for each in phrases})
    queries = make_tuples(phrases, n, size)
    assert len(set(queries)) == len(queries) == min(n, comb(distinct, size))


def test_few_of_a_site_are_chosen_those_found_most_often_first() -> None:
    def found(*urls: str) -> list[Candidate]:
        return [Candidate(url, "", "") for url in urls]

    a, b, c, other = (
        *("https://a.example.com/", "https://example.com/b", "https://www.example.com/c"),
        "https://example.net/",
    )
    answers = [found(a, b, "mailto:a@b.example"), found(f"{b}#top", other), found(c, b, c)]
    chosen, refused = choose_candidates(answers, per_site=2)
    assert [each.url for each in chosen] == [b, a, other]
    assert {each.url: why for each, why in refused} == {
        "mailto:a@b.example": "not an http(s) URL",
        c: "more than 2 of example.com",
    }


def test_a_list_of_urls_needs_no_query(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("# good ones\nhttps://a.example/\n\nhttps://b.example/\n")
    source = open_source(str(tmp_path / "urls.txt"), "focuscrawl")
    assert source.plan_queries(["road cycling"], ["road bicycle"]) == [""]
    urls = [each.url for each in source.search("", 1).candidates]
    assert urls == ["https://a.example/", "https://b.example/"]
    (tmp_path / "urls.txt").write_text("# none\n")
    with pytest.raises(UserError, match=r"urls\.txt has no URLs"):
        source.search("", 1)


def test_a_source_that_is_not_installed_is_named() -> None:
    with pytest.raises(UserError, match="no source 'searxgn': did you mean searxng"):
        open_source("searxgn", "focuscrawl")
    with pytest.raises(UserError, match=r"write common-crawl:example\.org"):
        open_source("common-crawl", "focuscrawl")
