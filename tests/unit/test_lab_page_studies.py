"""Page studies on a web small enough to count by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.hashing import WordHashes
from focuscrawl.lab.page_studies.accuracy import accuracy_table
from focuscrawl.lab.page_studies.authorities import authority_table
from focuscrawl.lab.page_studies.instances import (
    D_MAX,
    Instances,
    Tokens,
    around,
    best_first,
    sample_instances,
)
from focuscrawl.lab.page_studies.offsets import (
    gain_table,
    mutual_information,
    rate_table,
    tag_table,
)
from focuscrawl.lab.page_studies.tags import leaf_tags
from focuscrawl.lab.whole_web import WholeWeb
from focuscrawl.page import parse_page
from focuscrawl.webs.protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGES = {
    "hub": "<p>good <a href='a'>jazz</a> <a href='b'>junk</a><p>more <a href='c'>jazz</a>",
    "a": "<a href='hub'>home</a> <a href='c'>jazz</a>",
    "b": "nothing",
    "c": "<a href='a'>jazz</a>",
    "copy": "",
}
URLS = [f"http://h/{name}" for name in PAGES]


class Shelf:
    """A web of `PAGES`."""

    name = fingerprint = "shelf"

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        return [url if url in URLS else None for url in urls]

    def fetch(self, url: str) -> Answer | None:
        body = PAGES[url.rpartition("/")[2]].encode()
        return Answer(url, 200, [("Content-Type", "text/html")], body)

    def urls(self) -> Iterator[str]:
        return iter(URLS)


@pytest.fixture
def whole() -> WholeWeb:
    """hub -> a, b, c; a -> hub, c, copy; c -> a; copy has the content of a."""
    return WholeWeb(
        urls=URLS,
        classes=["/Music/Jazz", "/Other"],
        probabilities=np.array([[0.6, 0.4], [1, 0], [0, 1], [0.9, 0.1], [1, 0]], np.float32),
        content=np.array([0, 1, 2, 3, 1]),
        bounds=np.array([0, 3, 6, 6, 7, 7]),
        targets=np.array([1, 2, 3, 0, 3, 4, 1]),
    )


def test_best_first_takes_the_links_of_the_best_page(whole: WholeWeb) -> None:
    relevance = whole.relevance("/Music/Jazz")
    # a, the first link of the hub, scores 1: what it links to comes before the hub's others
    assert best_first(whole, relevance, [0], 9) == [0, 1, 3, 4, 2]
    assert best_first(whole, relevance, [0], 2) == [0, 1]
    assert best_first(whole, relevance, [], 2) == []


def test_instances_are_links_with_both_ends_fetched(whole: WholeWeb) -> None:
    found = sample_instances(Shelf(), whole, "/Music/Jazz", ["http://h/hub"], fetches=3)
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [
        (0, 1),
        (0, 3),
        (1, 0),
        (1, 3),
        (3, 1),
    ]  # b was not fetched
    np.testing.assert_allclose(found.relevance, [1, 0.9, 0.6, 0.9, 1], atol=1e-6)
    assert found.high.all()
    jazz = WordHashes()(["jazz"])[0]
    first = slice(found.tokens.indptr[0], found.tokens.indptr[1])
    at = found.tokens.offsets[first][found.tokens.words[first] == jazz]
    assert at.tolist() == [0, 3]  # its own anchor, and that of c
    # a was fetched before c, and its link is 3 leaves before that of c on the hub
    assert [1, -3, 1] in found.cocited.tolist()
    assert all(row[0] != 0 for row in found.cocited.tolist())  # nothing came before a but the hub


def test_a_sample_is_bounded_and_repeatable(whole: WholeWeb) -> None:
    def sample(random_state: int) -> list[tuple[int, int]]:
        found = sample_instances(
            Shelf(), whole, "/Music/Jazz", ["http://h/hub"], most=3, random_state=random_state
        )
        return list(zip(found.source.tolist(), found.target.tolist(), strict=True))

    assert len(sample(0)) == 3
    assert sample(0) == sample(0)
    assert any(sample(0) != sample(i) for i in range(1, 5))


@settings(max_examples=40, deadline=None)
@given(
    leaves=st.lists(st.integers(0, 30), max_size=40).map(sorted),
    link=st.tuples(st.integers(0, 30), st.integers(0, 3)),
)
def test_words_around_a_link_by_their_distance(leaves: list[int], link: tuple[int, int]) -> None:
    left, right = link[0], link[0] + link[1]
    words = np.arange(len(leaves)).astype(np.uint64)
    found = around(words, np.array(leaves, np.int32), np.array([left]), np.array([right]))
    expected = [
        (i, min(leaf - left, 0) + max(leaf - right, 0))
        for i, leaf in enumerate(leaves)
        if left - D_MAX <= leaf <= right + D_MAX
    ]
    assert list(zip(found.words.tolist(), found.offsets.tolist(), strict=True)) == expected


def made_up(words: list[list[tuple[int, int]]], high: list[bool]) -> Instances:
    """Instances of given (word, offset) pairs; each link to a page of its own."""
    n = len(words)
    flat = [pair for each in words for pair in each]
    return Instances(
        source=np.zeros(n, np.int64),
        target=np.arange(n),
        relevance=np.array(high, np.float64),
        left=np.zeros(n, np.int64),
        right=np.zeros(n, np.int64),
        tokens=Tokens(
            np.array([word for word, _ in flat], np.uint64),
            np.array([offset for _, offset in flat], np.int64),
            np.cumsum([0, *map(len, words)]),
        ),
        cocited=np.zeros((0, 3), np.int64),
    )


def test_offsets_tell_what_words_alone_do_not(whole: WholeWeb) -> None:
    """The same two words on either side of every link; their order says where it leads."""
    words = [[(7, -1), (9, 0), (8, 1)] if i % 2 else [(8, -1), (9, 0), (7, 1)] for i in range(60)]
    table = accuracy_table(made_up(words, [bool(i % 2) for i in range(60)]), whole)
    average = table.set_index(["folds", "features", "d_max"])["average"]
    for folds in ("links", "pages"):
        assert average[folds, "offsets", 1] == 1.0
        assert average[folds, "text", 1] < 0.7
        assert average[folds, "offsets", 0] < 0.7
    assert set(table["features"]) == {
        "offsets",
        "text",
        "offsets + class names",
        "offsets + class prefixes",
        "offsets + co-citation",
    }
    assert (table["instances"] == 60).all()
    assert (table["high"] == 30).all()


def test_information_of_a_word_is_that_of_the_definition() -> None:
    # of 8 links, 4 high: a word in all high ones tells 1 bit; one in 2 and 2 tells nothing
    found = mutual_information(np.array([4, 4, 8]), np.array([4.0, 2.0, 4.0]), 8, 4)
    np.testing.assert_allclose(found, [1.0, 0.0, 0.0], atol=1e-12)
    # I = H(1/4) - (1/2) H(1/2) for a word in half of the links, one of the two high ones
    found = mutual_information(np.array([4]), np.array([2.0]), 8, 2)
    assert found[0] == pytest.approx(0.8112781 - 0.5)


def test_gain_and_rates_by_offset() -> None:
    words = [[(7, -2), (9, 1), (9, 1)] if i < 6 else [(9, 1)] for i in range(12)]
    instances = made_up(words, [i < 6 for i in range(12)])
    gain = gain_table(instances).set_index("offset")
    assert gain.loc[-2, "gain"] == pytest.approx(1.0)
    assert gain.loc[1, "gain"] == 0.0
    assert gain["terms"].sum() == 2
    rates = rate_table(instances).set_index("offset")["rate"]
    assert rates[-2] == pytest.approx(6 / 24)
    assert rates[1] == pytest.approx(18 / 24)


def test_tags_of_leaves() -> None:
    body = b"<title>t</title><p>one <b>two</b><br><img alt=x><a href=y>link</a> end"
    tags, texts = leaf_tags(body)
    assert tags.tolist() == ["title", "p", "b", "br", "img", "a", "p"]
    assert texts.tolist() == [True, True, True, False, False, True, True]
    assert leaf_tags(b"")[0].tolist() == []


ELEMENTS = ["p", "b", "td", "li", "script", "head", "body", "title", "noframes", "style"]
PARTS = ["<br>", "<img>", "<meta>", "<a href=x>", "</a>", "<!--c-->", "text", " "]
PARTS += [f"<{name}>" for name in ELEMENTS] + [f"</{name}>" for name in ELEMENTS]
MARKUP = st.lists(st.sampled_from(PARTS), max_size=25).map("".join)


@settings(max_examples=150, deadline=None)
@given(MARKUP)
def test_there_is_a_tag_for_every_leaf(markup: str) -> None:
    body = markup.encode()
    view = parse_page(body, "http://h/")
    tags, texts = leaf_tags(body)
    assert len(tags) == len(texts) == view.n_leaves
    assert set(view.token_leaf.tolist()) == set(np.flatnonzero(texts).tolist())


def test_tags_by_offset(whole: WholeWeb) -> None:
    found = sample_instances(Shelf(), whole, "/Music/Jazz", ["http://h/hub"], fetches=2)
    table = tag_table(Shelf(), whole, found).set_index(["offset", "tag"])
    assert table.loc[(0, "a"), "share"] == 1.0
    np.testing.assert_allclose(table.groupby("offset")["share"].sum(), 1.0)
    assert (table["empty"] == 0).all()


def test_authorities_are_distilled_from_the_crawl(whole: WholeWeb) -> None:
    table = authority_table(whole, "/Music/Jazz", ["http://h/hub"])
    # c: from hub and a; a: from hub and c (its copy is a itself); hub: from a; b is not relevant
    assert table["url"][0] == "http://h/c"  # the better hub of the two, a, links to it
    assert np.isclose((table["score"] ** 2).sum(), 1.0)
    assert dict(zip(table["url"], table["distance"], strict=True)) == {
        "http://h/a": 1,
        "http://h/c": 1,
        "http://h/hub": 0,
    }
    assert len(authority_table(whole, "/Music/Jazz", ["http://h/b"])) == 0
