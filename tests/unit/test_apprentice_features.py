from __future__ import annotations

import ast
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice import feature_extraction
from focuscrawl.apprentice.feature_extraction import FeatureExtractor, TextReader, WordReader
from focuscrawl.apprentice.hashing import SparseRows, WordHashes, bucket, pointers, ranges
from focuscrawl.apprentice.link_features import (
    PATTERNS,
    PREFIXES,
    address_features,
    address_keys,
    by_offset,
    table_of_keys,
    window,
)
from focuscrawl.apprentice.link_table import PageFacts
from focuscrawl.apprentice.options import GROUPS
from focuscrawl.critic.bag_of_words import ClassCounts
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.page import parse_page
from focuscrawl.page.words import tokenize

if TYPE_CHECKING:
    import pytest
    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Judgement

PAGE = b"""<html><head><title>Boats</title></head><body><h1>Sailing far</h1>
<p>Read of <a href="/knots/">many knots</a> and <a href="/knots/reef.html">reef</a> today.</p>
<p><a href="http://other.example/tax?year=1997">tax</a></p></body></html>"""


def toy_critic() -> FocusedCritic:
    counts = ClassCounts(
        classes=("/Boats", "/Money"),
        words=("boats", "knots", "reef", "tax", "year"),
        counts=np.array([[9, 1], [7, 0], [5, 1], [0, 9], [1, 4]]),
        pages=np.array([3, 2]),
    )
    return FocusedCritic(NaiveBayes(counts), np.array([True, False]), (), "toy")


def test_a_critic_that_reads_no_words_is_not_asked() -> None:
    class Slow:
        classes: tuple[str, ...] = ("/Boats", "/Money", "/Other")
        marked = np.array([True, False, False])
        examples: tuple[str, ...] = ()
        fingerprint = "slow"

        def judge(self, pages: object) -> Judgement:
            raise AssertionError(pages)

    reader = WordReader(Slow(), ask=False)
    evidence = reader.evidence(["knots", "tax"], np.array([0, 1]), 3)
    np.testing.assert_allclose(reader.log_odds(evidence), np.log(0.5), rtol=1e-6)


def read_toy(**options: object) -> PageFacts:
    view = parse_page(PAGE, "http://boats.example/index.html")
    reader = FeatureExtractor(WordReader(toy_critic()), **options)  # type: ignore[arg-type]
    n = len(view.links)
    targets = np.arange(1, n + 1)
    return reader.read(view, np.arange(n), targets, np.ones(n, bool), relevance=0.9)


def test_context_has_each_word_at_its_offset() -> None:
    words = ["title", "before", "far", "in", "side", "after"]
    leaves = np.array([0, 3, 3, 4, 5, 6], np.int32)
    hashes = WordHashes()
    link = np.array([4], np.int32), np.array([5], np.int32)
    rows = by_offset(window(hashes(words), leaves, *link, d_max=2), 20)
    offsets = [-1, -1, 0, 0, 1]  # "title" is 4 leaves away
    expected = [
        int(bucket(hashes([word]), d + (1 << 16), 20)[0])
        for word, d in zip(words[1:], offsets, strict=True)
    ]
    assert sorted(rows.indices.tolist()) == sorted(expected)


def test_a_word_repeated_in_a_leaf_counts_once_unless_asked_for() -> None:
    hashes = WordHashes()(["a", "a", "b"])
    leaf, link = np.array([0, 0, 0], np.int32), np.array([0], np.int32)
    once = window(hashes, leaf, link, link, d_max=1)
    all_of_them = window(hashes, leaf, link, link, d_max=1, repeats=True)
    assert (once.lengths.tolist(), all_of_them.lengths.tolist()) == ([2], [3])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=40))
def test_each_word_is_kept_once_a_leaf_where_it_came_first(tokens: list[tuple[int, int]]) -> None:
    tokens.sort(key=lambda token: token[0])  # in document order
    words = np.array([word for _, word in tokens], np.uint64)
    leaf = np.array([at for at, _ in tokens], np.int32)
    first = np.array([0], np.int32)
    near = window(words, leaf, first, first, d_max=3)
    assert list(zip(near.offset.tolist(), near.words.tolist(), strict=True)) == [
        *dict.fromkeys(tokens)
    ]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_context_of_a_link_does_not_depend_on_other_links(data: st.DataObject) -> None:
    n_tokens = data.draw(st.integers(0, 30))
    leaf = np.sort(
        np.array(
            data.draw(st.lists(st.integers(0, 12), min_size=n_tokens, max_size=n_tokens)), np.int32
        )
    )
    words = np.arange(n_tokens, dtype=np.uint64)
    left = np.array(data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=5)), np.int32)
    right = left + data.draw(st.integers(0, 4))
    cap = data.draw(st.sampled_from([None, 3]))

    def features(a: np.ndarray, b: np.ndarray) -> SparseRows:
        return by_offset(window(words, leaf, a, b, d_max=2, max_tokens=cap), 20)

    together = features(left, right)
    for i in range(len(left)):
        alone = features(left[i : i + 1], right[i : i + 1])
        assert together.take(np.array([i])).indices.tolist() == alone.indices.tolist()
        near = (leaf >= left[i] - 2) & (leaf <= right[i] + 2)
        if cap is None:
            assert len(alone.indices) == near.sum()
        else:
            assert len(alone.indices) <= 3 * cap


def test_ranges_lie_one_after_another() -> None:
    assert ranges(np.array([5, 0, 2]), np.array([2, 0, 3])).tolist() == [5, 6, 2, 3, 4]


def test_addresses_share_what_they_have_in_common() -> None:
    a, b, c = (
        table_of_keys([url])[0]
        for url in (
            "http://x.example/talk/slide01.html",
            "http://x.example/talk/slide17.html",
            "http://y.example/talk/slide01.html",
        )
    )
    assert a[:2].tolist() == b[:2].tolist()
    assert a[2:PREFIXES].any() == False  # noqa: E712 - a numpy bool
    assert a[0] != c[0]
    assert a[1] != c[1]  # a directory is one of its host
    assert a[PREFIXES : PREFIXES + PATTERNS].tolist() == b[PREFIXES : PREFIXES + PATTERNS].tolist()
    assert a[-1] != b[-1]


def test_twins_differ_in_index_page_slash_or_query() -> None:
    plain = address_keys("http://x.example/a/")
    assert address_keys("http://x.example/a/index.html")[-2:] == plain[-2:]
    assert address_keys("http://x.example/a")[-2:] == plain[-2:]
    asked = address_keys("http://x.example/a?C=N;O=D")
    assert asked[-1] == plain[-1]
    assert asked[-2] != plain[-2]


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=30))
def test_any_url_has_keys_and_features(path: str) -> None:
    urls = [f"http://x.example/{path}", "http://x.example/"]
    keys = table_of_keys(urls)
    assert keys.shape[0] == 2
    rows = address_features(urls, keys, WordHashes(), bits=18)
    assert len(rows) == 2
    assert rows.indices.min() >= 0
    assert rows.indices.max() < 1 << 18


def test_words_put_together_are_what_naive_bayes_says_of_the_text() -> None:
    critic = toy_critic()
    words = ["reef", "knots", "unheard"]
    reader = WordReader(critic)
    odds = reader.log_odds(reader.evidence(words, np.zeros(3, np.int32), 1))
    whole = critic.judge_bags([{"reef": 1, "knots": 1}]).relevance[0]
    assert np.isclose(odds[0], np.log(whole / (1 - whole)), atol=1e-4)


def test_words_that_were_forgotten_are_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, owner = WordReader(toy_critic()), np.zeros(2, np.int32)
    texts = [["reef", "knots"], ["tax", "year"], ["knots", "unheard"]]
    first = [reader.evidence(words, owner, 1) for words in texts]
    monkeypatch.setattr(feature_extraction, "_REMEMBERED_WORDS", 1)
    for words, evidence in zip(texts, first, strict=True):
        assert np.array_equal(reader.evidence(words, owner, 1), evidence)
    assert len(reader._number) == 2


def test_texts_are_read_the_same_again() -> None:
    reader = TextReader(WordReader(toy_critic()), tokenize)
    first = reader.read(["reef", "tax year", ""])
    assert np.array_equal(reader.read(["", "new knots", "tax year"])[[0, 2]], first[[2, 1]])
    assert not first[2].any()


def test_facts_of_a_page() -> None:
    facts = read_toy()
    assert len(facts.links) == len(facts.urls) == len(facts.targets) == 3
    assert facts.reading[0] > 0 > facts.reading[2]  # knots, tax
    assert facts.url_keys[0, 0] == facts.own_keys[0, 0] != facts.url_keys[2, 0]


def test_groups_can_be_switched_off() -> None:
    facts = read_toy(groups=("url",))
    assert not len(facts.links.indices)
    assert not len(facts.page_indices)
    assert len(facts.urls.indices)


def test_facts_survive_the_store() -> None:
    facts = read_toy()
    again = PageFacts.from_bytes(facts.to_bytes())
    assert again.to_bytes() == facts.to_bytes()
    assert np.array_equal(again.links.indices, facts.links.indices)


def test_facts_are_packed_without_the_parser_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read_toy()
    packed = facts.to_bytes()  # from here on types are known

    def parse(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")  # with several threads

    monkeypatch.setattr(ast, "literal_eval", parse)
    assert PageFacts.from_bytes(packed).to_bytes() == packed


def test_pointers() -> None:
    assert pointers(np.array([2, 0, 1])).tolist() == [0, 2, 2, 3]


_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x2028, 0x2029, 0xFEFF]
_ESCAPED = st.lists(
    st.one_of(
        st.sampled_from(_CONTROLS).map(lambda point: quote(chr(point))),
        st.sampled_from(["%00", "knots", "tax", "/", "%ED%A0%80", "%FF", "é", "漢"]),
    ),
    max_size=6,
).map("".join)
_SHOWN = st.lists(
    st.one_of(st.sampled_from(_CONTROLS).map(chr), st.sampled_from(["knots", "tax", " ", "漢"])),
    max_size=6,
).map("".join)


@settings(max_examples=80)
@given(st.lists(st.tuples(_ESCAPED, _SHOWN, _SHOWN), min_size=1, max_size=5), _SHOWN)
def test_what_is_known_of_a_link_comes_from_that_link_alone(
    links: list[tuple[str, str, str]], title: str
) -> None:
    """Whatever control characters are in the addresses, anchors and titles of a page."""
    items = [f'<h2>{above}</h2><a href="/x{path}">{anchor}</a>' for path, anchor, above in links]
    body = f"<title>{title}</title><p>{''.join(items)}"
    view = parse_page(body.encode(), "http://boats.example/")
    assert len(view.links) == len(links)

    def read(links: NDArray[np.int64]) -> PageFacts:
        reader = FeatureExtractor(WordReader(toy_critic()), groups=set(GROUPS))
        new = np.ones(len(links), bool)
        return reader.read(view, links, links, new, relevance=0.9)

    whole = read(np.arange(len(links)))
    for i in range(len(links)):
        alone = read(np.array([i]))
        assert whole.reading[i] == alone.reading[0]
        assert whole.around[i] == alone.around[0]
        for rows, row in ((whole.links, alone.links), (whole.urls, alone.urls)):
            np.testing.assert_array_equal(rows.part(i, i + 1).indices, row.indices)
