"""Features of links, pages and addresses, and the names of hashed features."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.feature_extraction import (
    FeatureExtractor,
    TextEvidence,
    WordEvidence,
    name_features,
)
from focuscrawl.apprentice.hashing import SparseRows, hash_features, multi_arange
from focuscrawl.apprentice.link_features import (
    HASH_BITS,
    HASH_SIZE,
    MAX_TOKENS,
    OFFSET_SALT,
    PATTERNS,
    PREFIXES,
    RELATION_FEATURES,
    RELATIONS,
    cocitation,
    offset_features,
    site_features,
    url_features,
    url_key_table,
    url_set_keys,
    window,
)
from focuscrawl.apprentice.link_table import PageFeatures, unpack_words
from focuscrawl.apprentice.options import EVIDENCE, GROUPS, LEARNERS, Options
from focuscrawl.page import parse_page, words
from focuscrawl.page.words import tokenize, word_hashes
from focuscrawl.report.why import Reasons

from .toy_crawl import Crawl, Pages, toy_critic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Judgement

HERE = "http://boats.example/sea/index.html"
THERE = "http://boats.example/sea/far/reef%20knots.php?n=1"
PAGE = f"""<title>All boats</title><h1>Sailing <i>far</i></h1><div><p>read of
<b><a href="{THERE}">many <i>knots</i></a></b> today</p></div><h2>Money</h2><p>and tax
<a href="http://other.example/"><img alt="a picture"></a></p>"""


def read(
    options: Options, page: str = PAGE, links: NDArray[np.int64] | None = None
) -> PageFeatures:
    view = parse_page(page.encode(), HERE)
    chosen = np.arange(len(view.links)) if links is None else links
    return FeatureExtractor(toy_critic(), options).extract(
        view,
        chosen,
        chosen + 1,
        np.ones(len(chosen), bool),
        relevance=1.0,
        probabilities=np.array([0.95, 0.05]),
    )


# -- words by DOM offset ---------------------------------------------------------------------


def features(rows: SparseRows, number: int) -> Counter[int]:
    return Counter(rows.take(np.array([number])).indices.tolist())


def hashed(pairs: list[tuple[str, int]]) -> Counter[int]:
    return Counter(
        int(hash_features(word_hashes([word]), OFFSET_SALT + d, HASH_BITS)[0]) for word, d in pairs
    )


def test_of_a_long_leaf_the_nearest_words_are_looked_at() -> None:
    text = " ".join(f"w{i}" for i in range(MAX_TOKENS + 5))
    page = f"<p>{text}<p><a href=x>link</a><p>more more"
    view = parse_page(page.encode(), "http://site.example/")
    left, right = view.links.left, view.links.right
    near = window(view.words.indices, view.token_leaf, left, right, d_max=1)
    nearest = [(f"w{i}", -1) for i in range(5, MAX_TOKENS + 5)]
    assert features(offset_features(near, view.words.hashes), 0) == hashed(
        [*nearest, ("link", 0), ("more", 1)]
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=40))
def test_each_word_is_kept_once_a_leaf_where_it_came_first(tokens: list[tuple[int, int]]) -> None:
    tokens.sort(key=lambda token: token[0])  # in document order
    words = np.array([word for _, word in tokens], np.int32)
    leaf = np.array([at for at, _ in tokens], np.int32)
    first = np.array([0], np.int32)
    near = window(words, leaf, first, first, d_max=3)
    found = zip(near.offset.tolist(), words[near.tokens].tolist(), strict=True)
    assert [*found] == [*dict.fromkeys(tokens)]
    assert near.tokens.tolist() == sorted(map(tokens.index, {*tokens}))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), max_size=30).map(sorted),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=5),
    st.integers(0, 4),
    st.sampled_from([None, 3]),
)
def test_words_have_their_offset_from_each_link(
    leaves: list[int], links: list[tuple[int, int]], d_max: int, most: int | None
) -> None:
    """Offsets count from the first leaf of a link before it, from its last leaf after it."""
    leaf = np.array(leaves, np.int32)
    left, width = np.array(links, np.int32).T
    words, right = np.arange(len(leaf), dtype=np.int32), left + width
    near = window(words, leaf, left, right, d_max=d_max, max_tokens=most)
    expected: list[list[tuple[int, int]]] = []
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        offset = [(word, at - min(max(at, a), b)) for word, at in enumerate(leaves)]
        before = [each for each in offset if -d_max <= each[1] < 0]
        inside = [each for each in offset if each[1] == 0]
        after = [each for each in offset if 0 < each[1] <= d_max]
        if most is not None:
            before, inside, after = before[-most:], inside[:most], after[:most]
        expected.append([*before, *inside, *after])
    assert near.lengths.tolist() == [len(each) for each in expected]
    found = zip(near.tokens.tolist(), near.offset.tolist(), strict=True)
    assert list(found) == [pair for each in expected for pair in each]


def test_ranges_lie_one_after_another() -> None:
    assert multi_arange(np.array([5, 0, 2]), np.array([2, 0, 3])).tolist() == [5, 6, 2, 3, 4]


# -- addresses ---------------------------------------------------------------------------------


def test_addresses_share_what_they_have_in_common() -> None:
    a, b, c = url_key_table(
        [
            "http://x.example/talk/slide01.html",
            "http://x.example/talk/slide17.html",
            "http://y.example/talk/slide01.html",
        ]
    )
    assert a[:2].tolist() == b[:2].tolist()
    assert not a[2:PREFIXES].any()
    assert a[0] != c[0]
    assert a[1] != c[1]  # a directory is one of its host
    assert a[PREFIXES : PREFIXES + PATTERNS].tolist() == b[PREFIXES : PREFIXES + PATTERNS].tolist()
    assert a[-1] != b[-1]


def test_twins_differ_in_index_page_slash_or_query() -> None:
    plain = url_set_keys("http://x.example/a/")
    assert url_set_keys("http://x.example/a/index.html")[-2:] == plain[-2:]
    assert url_set_keys("http://x.example/a")[-2:] == plain[-2:]
    asked = url_set_keys("http://x.example/a?C=N;O=D")
    assert asked[-1] == plain[-1]
    assert asked[-2] != plain[-2]


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=30))
def test_any_url_has_keys_and_features(path: str) -> None:
    urls = [f"http://x.example/{path}", "http://x.example/"]
    rows = url_features(urls, url_key_table(urls))
    assert len(rows) == 2
    assert 0 <= rows.indices.min() <= rows.indices.max() < 1 << 18


@pytest.mark.parametrize(
    ("target", "relation"),
    [
        ("http://other.example/a/b/", "another host"),
        ("http://www.h.example/a/b/x.html", "another host"),
        ("http://h.example:8080/a/b/x.html", "another host"),
        ("http://h.example/a/b/x.html?to=/y/z/", "same directory"),
        ("https://h.example/a/b/", "same directory"),
        ("http://h.example/a/b/c/d/x.html", "directory below"),
        ("http://h.example/a/b", "directory above"),
        ("http://h.example/?a/b/", "directory above"),
        ("http://h.example/a/bc/", "same host"),
    ],
)
def test_relations_of_hosts_and_directories(target: str, relation: str) -> None:
    here = "http://h.example/a/b/page.html?q=/x/"
    rows = site_features(here, [target, here])
    names = RELATION_FEATURES.tolist()
    assert rows.lengths.tolist() == [1, 1]
    found = [RELATIONS[names.index(feature)] for feature in rows.indices]
    assert found == [relation, "same directory"]
    assert len(site_features(here, [])) == 0


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
    page = np.cumsum([turn for turn, _, _ in drawn]).astype(np.int64)
    position = np.zeros(len(drawn), np.int32)
    for i, (turn, apart, _) in enumerate(drawn):  # links of a page follow each other
        position[i] = apart if turn or not i else position[i - 1] + apart
    y = np.array([np.nan if r is None else r for _, _, r in drawn])
    width = 2 * d_max + 1
    expected = np.zeros((len(drawn), 2 * width))
    for i in range(len(drawn)):
        for j in range(len(drawn)):
            offset = int(position[j] - position[i])
            if i != j and page[i] == page[j] and abs(offset) <= d_max and np.isfinite(y[j]):
                expected[i, (0 if y[j] > 0.5 else width) + d_max + offset] = 1.0
    assert np.array_equal(cocitation(page, position, y, d_max), expected)


# -- what the critic says of words -------------------------------------------------------------


def test_a_critic_that_reads_no_words_is_not_asked() -> None:
    class Slow:
        classes: tuple[str, ...] = ("/Boats", "/Money", "/Other")
        marked = np.array([True, False, False])
        examples: tuple[str, ...] = ()
        fingerprint = "slow"

        def judge(self, pages: object) -> Judgement:
            raise AssertionError(pages)

    reader = WordEvidence(Slow(), use_critic=False)
    evidence = reader.evidence(["knots", "tax"], np.array([0, 1]), 3)
    np.testing.assert_allclose(reader.log_odds(evidence), np.log(0.5), rtol=1e-6)


def test_words_put_together_are_what_naive_bayes_says_of_the_text() -> None:
    critic = toy_critic()
    reader = WordEvidence(critic)
    odds = reader.log_odds(reader.evidence(["reef", "knots", "unheard"], np.zeros(3, np.int32), 1))
    whole = critic.judge_bags([{"reef": 1, "knots": 1}]).relevance[0]
    assert np.isclose(odds[0], np.log(whole / (1 - whole)), atol=1e-4)


def test_words_and_texts_are_read_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, owner = WordEvidence(toy_critic()), np.zeros(2, np.int32)
    anchors = TextEvidence(reader, tokenize)
    first = anchors.read(["reef", "tax year", ""])
    assert np.array_equal(anchors.read(["", "new knots", "tax year"])[[0, 2]], first[[2, 1]])
    assert not first[2].any()
    texts = [["reef", "knots"], ["tax", "year"], ["knots", "unheard"]]
    known = [reader.evidence(text, owner, 1) for text in texts]
    monkeypatch.setattr(words, "_MAX_WORDS", 1)
    reader = WordEvidence(toy_critic())  # forgets all again and again
    for text, evidence in zip(texts, known, strict=True):
        assert np.array_equal(reader.evidence(text, owner, 1), evidence)


# -- facts of a page ---------------------------------------------------------------------------


def test_facts_of_a_page_survive_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    features = read(Options())
    assert len(features.links) == len(features.urls) == len(features.targets) == 2
    assert features.reading[0] > 0 > features.around[1]  # knots, tax
    assert features.url_keys[0, 0] == features.own_keys[0, 0] != features.url_keys[1, 0]
    packed = features.to_bytes()  # from here on types are known

    def parse(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")  # with several threads

    monkeypatch.setattr(ast, "literal_eval", parse)  # NumPy's parser of types
    again = PageFeatures.from_bytes(packed)
    assert again.to_bytes() == packed
    assert np.array_equal(again.links.indices, features.links.indices)


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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_ESCAPED, _SHOWN, _SHOWN), min_size=1, max_size=5), _SHOWN)
def test_what_is_known_of_a_link_comes_from_that_link_alone(
    links: list[tuple[str, str, str]], title: str
) -> None:
    """Whatever control characters are in the addresses, anchors and titles of a page."""
    items = [f'<h2>{above}</h2><a href="/x{path}">{anchor}</a>' for path, anchor, above in links]
    page, options = f"<title>{title}</title><p>{''.join(items)}", Options(groups=tuple(GROUPS))
    whole = read(options, page)
    assert len(whole.targets) == len(links)
    for i in range(len(links)):
        alone = read(options, page, np.array([i]))
        assert whole.reading[i] == alone.reading[0]
        assert whole.around[i] == alone.around[0]
        for rows, row in ((whole.links, alone.links), (whole.urls, alone.urls)):
            np.testing.assert_array_equal(rows.row_slice(i, i + 1).indices, row.indices)


# -- names of features -------------------------------------------------------------------------

NAMES = {
    "context": {
        *("'many' in the link", "'knots' in the link", "'today' 1 after", "'read' 1 before"),
        *("'of' 1 before", "'far' 2 before", "'money' 2 after"),
    },
    "anchor": {"'many' in the anchor", "'knots' in the anchor"},
    "section": {"'sailing' in the heading above", "'far' in the heading above"},
    "site": {"link to directory below"},
    "title": {"'all' in the page's title", "'boats' in the page's title"},
    "headings": {"'sailing' in a heading", "'far' in a heading", "'money' in a heading"},
    "classes": {"on a page of /", "on a page of /Boats"},
    "probabilities": {f"probability of /{name} of a linking page" for name in ("Boats", "Money")},
    "url": {
        *("'reef' in the URL", "'knots' in the URL", "'php' in the URL", "'n' in the URL"),
        *("'1' in the URL", "'sea' in the URL", "'far' in the URL"),
        *("on boats.example", "on boats.example/sea", "on boats.example/sea/far"),
        "on boats.example/sea/far/reef%20knots.php",
    },
}


def names_of(link: int, url: str, groups: tuple[str, ...], page: str = PAGE) -> set[str]:
    """Return the names of the features of a link, each of which has one."""
    options, at = Options(groups=groups, d_max=2), np.array([link])
    features = read(options, page)
    of_link, of_url = features.links.take(at).indices, features.urls.take(at).indices
    numbers = np.concatenate([of_link, of_url + HASH_SIZE, features.page_indices + 2 * HASH_SIZE])
    words, classes = unpack_words(features.vocabulary), toy_critic().classes
    names = name_features(numbers, url=url, words=words, classes=classes, options=options)
    assert names.keys() == set(numbers.tolist())
    assert len(set(names.values())) == len(names)
    return set(names.values())


@pytest.mark.parametrize("groups", [*((name,) for name in GROUPS), tuple(GROUPS)])
def test_every_feature_has_its_name(groups: tuple[str, ...]) -> None:
    expected = {name for group in groups for name in NAMES.get(group, ())}
    assert names_of(0, THERE, groups) == expected


def test_names_of_images_and_of_deep_places() -> None:
    assert names_of(1, "http://other.example/", ("anchor", "site")) == {
        *("'a' in the anchor", "'picture' in the anchor", "link to another host"),
    }
    url = f"http://h.example/{'/'.join('abcdefghijk')}/x.html?q"
    named = names_of(0, url, ("url",), f"<a href={url}>x</a>")
    places = {name for name in named if name.startswith("on ")}
    assert len(places) == 9
    assert max(places, key=len) == "on h.example/a/b/c/d/e/f/g/h"


@pytest.mark.parametrize("numbers", [np.array([3, HASH_SIZE + 3]), np.zeros(0, int)])
def test_what_nobody_has_said_has_no_name(numbers: NDArray[np.int64]) -> None:
    assert name_features(numbers, url=HERE, words=["a"], classes=[], options=Options()) == {}


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_weights_of_features_add_up_to_what_words_say(learner: str, evidence: str) -> None:
    options = Options(batch=10, learner=learner, evidence=evidence, groups=tuple(GROUPS))
    crawl = Crawl(Pages(options), Apprentice(options)).run(30)
    scorer = crawl.apprentice.scorer
    said = 0.0
    for url in [u for u in crawl.queue if scorer.evidence.has_links(u)]:
        numbers, weights = scorer.features(url)
        assert len(numbers) == len(set(numbers.tolist())) == len(weights)
        explained = scorer.explain(url)
        words = explained["links (words)"] + explained["address (words)"]
        assert weights.sum() == pytest.approx(words, abs=1e-4)
        address = (numbers >= HASH_SIZE) & (numbers < 2 * HASH_SIZE)
        assert weights[address].sum() == pytest.approx(explained["address (words)"], abs=1e-9)
        score = scorer.learner.response(np.array([sum(explained.values())]))
        assert score[0] == pytest.approx(crawl.queue[url], abs=1e-6)
        said += abs(words)
    assert said > 0.1


def test_reasons_are_printed_strongest_first_and_the_negligible_not_at_all() -> None:
    weights = {"best_relevance": 0.5, "prefix": 1.25, "pattern": -0.75, "links": 0.01}
    words = {f"'w{i}' in the link": 0.1 * i for i in range(-7, 8)}
    assert Reasons({**weights, "intercept": -2.0}, words, 0.2689).lines() == [
        ("for", "pages in the same directory +1.25, best page that links to it +0.50"),
        ("against", "pages with similar URLs -0.75"),
        ("words for", ", ".join(f"'w{i}' in the link +0.{i}0" for i in (7, 6, 5, 4, 3))),
        ("words against", ", ".join(f"'w-{i}' in the link -0.{i}0" for i in (7, 6, 5, 4, 3))),
        ("total", "-0.99, which is a score of 0.269"),
    ]
    bare = Reasons({"intercept": -1.0}, {}, 0.25).lines()
    assert bare == [("total", "-1.00, which is a score of 0.250")]
