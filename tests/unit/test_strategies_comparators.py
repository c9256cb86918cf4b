"""The simple comparators, on graphs small enough to work out on paper."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longer import long

from focuscrawl.critic.protocol import Judgement
from focuscrawl.errors import UserError
from focuscrawl.page import parse_page
from focuscrawl.strategies import (
    JudgedPage,
    Lesson,
    RecalledPage,
    Strategy,
    StrategyContext,
    make_strategy,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.page import PageView
    from focuscrawl.strategies import Expansion

NAMES = [
    *["pagerank", "tfidf-centroid", "shark-search", "td-values"],
    *["in-degree", "fish-search", "hubs", "online-logistic", "url-keywords"],
]
EVERY = ["pagerank", "tfidf-centroid", "hubs", "online-logistic"]
#: lessons after every second fetch, where there are any
OPTIONS: dict[str, dict[str, float]] = {
    **{key: {"every": 2, "growth": 0.0} for key in EVERY},
    "td-values": {"switch": 2},
    "fish-search": {"width": 1, "depth": 1},
    "shark-search": {"depth": 1},
}


class Critic:
    """Reads words: each "tea" is evidence for the topic, each "tax" against it."""

    classes: tuple[str, ...] = ("/Tea", "/Other")
    examples: tuple[str, ...] = ()
    fingerprint = "7ea"
    marked = np.array([True, False])
    reads_words = True

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        words = [Counter(page.tokens) for page in pages]
        odds = np.array([4.0 * (count["tea"] - count["tax"]) for count in words])
        relevance = 1.0 / (1.0 + np.exp(-odds))
        return Judgement(relevance, np.column_stack([relevance, 1.0 - relevance]))


class DeafCritic(Critic):
    reads_words = False

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        raise AssertionError(pages)


def make(name: str, **options: float) -> Strategy:
    context = StrategyContext(critic=Critic(), random_state=0, web=None)
    return make_strategy(name, context, options)


def page(
    url: int, targets: Sequence[int], relevance: float = 0.9, *, depth: int = 1, html: str = ""
) -> JudgedPage:
    """A page with links to `targets`, unless `html` has them."""
    links = "".join(f"<p><a href=/{target}>to {target}</a></p>" for target in targets)
    view = parse_page((html or links).encode(), f"http://a.example/{url}")
    return JudgedPage(
        view=view,
        url=url,
        seq=1,
        depth=depth,
        relevance=relevance,
        probabilities=np.array([relevance, 1.0 - relevance]),
        links=np.arange(len(targets)),
        targets=np.array(targets, dtype=np.int64),
    )


def scores(expansion: Expansion) -> dict[int, float]:
    return dict(zip(expansion.urls.tolist(), expansion.scores.tolist(), strict=True))


def teach(strategy: Strategy) -> dict[int, float]:
    """Have a lesson learned and adopted; return the scores it brought."""
    assert strategy.learns
    assert strategy.lesson_due()
    lesson = strategy.learn()
    found = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    urls, new = strategy.adopt(lesson)
    return found | dict(zip(urls.tolist(), new.tolist(), strict=True))


# -- in-degree -----------------------------------------------------------------------------


def test_in_degree_counts_pages_that_link() -> None:
    strategy = make("in-degree")
    assert scores(strategy.expand(page(0, [1, 2, 2]))) == {1: 1.0, 2: 1.0}
    assert scores(strategy.expand(page(1, [2, 3]))) == {2: 2.0, 3: 1.0}
    # a page does not speak for itself
    assert scores(strategy.expand(page(3, [3, 2]))) == {2: 3.0}


# -- PageRank ------------------------------------------------------------------------------


def test_pagerank_of_a_new_link_is_its_share() -> None:
    strategy = make("pagerank", damping=0.5)
    # rank of 0: 1/2, half of it to each: 1/2 + 1/2 * 1/4
    first = strategy.expand(page(0, [1, 2, 2]))
    assert scores(first) == {1: 0.625, 2: 0.625}
    assert first.link_scores.tolist() == [0.125] * 3
    # rank of 1: 5/8, half of it to each: 2 has 1/2 + 1/2 (1/4 + 5/16), 3 has 1/2 + 1/2 * 5/16
    assert scores(strategy.expand(page(1, [2, 3]))) == {2: 0.78125, 3: 0.65625}


def test_pagerank_goes_round_in_a_lesson() -> None:
    strategy = make("pagerank", damping=0.5, every=2)
    for url, targets in ((0, [1, 2]), (1, [0, 3])):
        strategy.observe(url, 0.1, None)
        before = scores(strategy.expand(page(url, targets, 0.1)))
    assert before[3] == 0.65625
    # r = 1/2 + 1/2 r/2 for 0 and 1, whose only fetched parents are each other: r = 2/3
    assert teach(strategy) == pytest.approx({0: 2 / 3, 1: 2 / 3, 2: 2 / 3, 3: 2 / 3}, abs=1e-5)
    strategy.observe(2, 0.1, None)
    # 2 has 2/3 and one link: 1/2 + 1/2 (1/3 + 2/3)
    assert scores(strategy.expand(page(2, [3]))) == pytest.approx({3: 1.0}, abs=1e-5)


GRAPHS = st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(GRAPHS, st.floats(0.1, 0.95))
def test_pagerank_solves_its_equation(graph: list[list[int]], damping: float) -> None:
    strategy = make("pagerank", damping=damping, every=1)
    flow = np.zeros((10, 10))
    for url, targets in enumerate(graph):
        strategy.observe(url, 0.5, None)
        strategy.expand(page(url, targets))
        children = set(targets) - {url}
        for child in children:
            flow[child, url] = 1.0 / len(children)
    ranks = np.linalg.solve(np.eye(10) - damping * flow, np.full(10, 1.0 - damping))
    for url, score in teach(strategy).items():
        assert score == pytest.approx(ranks[url], abs=1e-4)


# -- Fish-Search ---------------------------------------------------------------------------


def test_fish_search_takes_the_first_children_first() -> None:
    strategy = make("fish-search", width=2)
    # 1.5 times as many of a relevant page; 5 twice is one child
    relevant = strategy.expand(page(0, [5, 5, 4, 3, 2], 0.9))
    assert relevant.link_scores.tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]
    assert scores(relevant) == {5: 1.0, 4: 1.0, 3: 1.0, 2: 0.0}
    other = strategy.expand(page(1, [5, 6, 7], 0.5))
    assert other.link_scores.tolist() == [0.5, 0.5, 0.0]
    assert scores(other) == {6: 0.5, 7: 0.0}  # 5 keeps the better one


def test_a_fish_dies_without_food() -> None:
    strategy = make("fish-search", depth=2)
    assert scores(strategy.expand(page(0, [1], 0.1, depth=0))) == {1: 0.5}
    assert scores(strategy.expand(page(1, [2], 0.1))) == {2: 0.5}
    starved = strategy.expand(page(2, [3, 4], 0.1))
    assert np.isneginf(starved.link_scores).all()
    assert scores(starved) == {}


def test_food_gives_a_fish_new_strength() -> None:
    strategy = make("fish-search", depth=1)
    strategy.expand(page(0, [1], 0.1, depth=0))  # 1 has no strength left
    strategy.expand(page(5, [1], 0.9))  # but a better parent, too
    assert scores(strategy.expand(page(1, [2], 0.1))) == {2: 0.5}
    assert scores(strategy.expand(page(2, [3], 0.9))) == {3: 1.0}  # relevant where the way ends
    assert scores(strategy.expand(page(3, [4], 0.1))) == {4: 0.5}
    assert scores(strategy.expand(page(4, [6], 0.1))) == {}


def test_where_a_redirect_ends_a_way_begins() -> None:
    strategy = make("fish-search", depth=1)
    assert scores(strategy.expand(page(7, [8], 0.1))) == {8: 0.5}


# -- Shark-Search --------------------------------------------------------------------------


def test_shark_search_reads_anchors_and_their_context() -> None:
    strategy = make("shark-search", beta=0.8, gamma=0.0, context_words=1)
    html = (
        "<a href=/1>tea</a><p>one two three</p>"
        "<p>tea</p><a href=/2>here</a><p>four five six</p>"
        "<a href=/3>tax</a><p>and <a href=/4>x</a>"
    )
    sure = 1.0 / (1.0 + np.exp(-4.0))
    anchor = [sure, 0.5, 1.0 - sure, 0.5]
    around = [1.0, sure, 1.0 - sure, 0.5]  # 1: the anchor speaks for the topic already
    got = strategy.expand(page(0, [1, 2, 3, 4], 0.0, html=html)).link_scores
    assert got == pytest.approx([0.8 * a + 0.2 * c for a, c in zip(anchor, around, strict=True)])


def test_shark_search_inherits_from_relevant_ancestors() -> None:
    strategy = make("shark-search", gamma=1.0, delta=0.5)
    assert scores(strategy.expand(page(0, [1], 0.1, depth=0))) == {1: 0.0}
    assert scores(strategy.expand(page(1, [2], 0.8))) == {2: 0.4}
    assert scores(strategy.expand(page(2, [3, 4], 0.3))) == {3: 0.2, 4: 0.2}
    assert scores(strategy.expand(page(3, [5], 0.0))) == {5: 0.1}
    assert scores(strategy.expand(page(9, [4, 5], 0.6))) == {4: 0.3, 5: 0.3}
    assert scores(strategy.expand(page(5, [6], 0.4))) == {6: 0.15}  # the best of its parents


def test_shark_search_gives_up_as_fish_search_does() -> None:
    strategy = make("shark-search", depth=1)
    strategy.expand(page(0, [1], 0.1, depth=0))
    assert np.isneginf(strategy.expand(page(1, [2], 0.1)).link_scores).all()


def test_shark_search_asks_no_critic_that_cannot_read() -> None:
    context = StrategyContext(critic=DeafCritic(), random_state=0, web=None)
    strategy = make_strategy("shark-search", context, {})
    html = "<a href=/1>tea</a> and <a href=/2>tax</a>"
    first, second = strategy.expand(page(0, [1, 2], 0.8, html=html)).link_scores.tolist()
    assert first == second


# -- TF-IDF centroid -----------------------------------------------------------------------


def words(text: str, *targets: int) -> str:
    return f"<p>{text}</p>" + "".join(f"<a href=/{target}></a>" for target in targets)


def test_the_centroid_is_that_of_relevant_pages() -> None:
    strategy = make("tfidf-centroid", every=3)
    texts = ["green leaf page", "income form page", "green pot page"]
    for url, (text, relevance) in enumerate(zip(texts, (0.9, 0.1, 0.2), strict=True)):
        strategy.observe(url, relevance, None)
        html = words(text, url + 10)
        before = strategy.expand(page(url, [url + 10], relevance, html=html))
        assert before.scores.tolist() == [0.0]  # nothing is known of the topic yet
    # "page" is everywhere and weighs nothing, "green" log 3/2, every other word log 3
    green, rare = np.log(1.5), np.log(3.0)
    cosine = green**2 / (green**2 + rare**2)
    assert teach(strategy) == pytest.approx({10: 1.0, 11: 0.0, 12: cosine})
    strategy.observe(3, 0.9, None)
    html = words("green green page", 11, 12)
    late = strategy.expand(page(3, [11, 12], 0.9, html=html))
    # the length of a page does not matter, only its direction
    assert scores(late) == pytest.approx(dict.fromkeys((11, 12), green / np.hypot(green, rare)))


def test_the_best_page_decides_and_a_new_centroid_decides_anew() -> None:
    strategy = make("tfidf-centroid", every=2, growth=0.0)
    for url, (text, relevance) in enumerate([("green leaf", 0.9), ("income form", 0.1)]):
        strategy.observe(url, relevance, None)
        strategy.expand(page(url, [9], relevance, html=words(text, 9)))
    assert teach(strategy)[9] == pytest.approx(1.0)
    for url in (2, 3):
        strategy.observe(url, 0.9, None)
        strategy.expand(page(url, [8], 0.9, html=words("income tax", 8)))
    after = teach(strategy)
    assert after[8] > 0.8 > after[9]


# -- all of them ---------------------------------------------------------------------------


@dataclass
class Kept:
    """What the store keeps of a crawl, and the scores its frontier ends with."""

    pages: list[tuple[RecalledPage, bool]] = field(default_factory=list)
    lesson: Lesson | None = None
    scores: dict[int, float] = field(default_factory=dict)

    def put(self, urls: np.ndarray, new: np.ndarray) -> None:
        self.scores |= dict(zip(urls.tolist(), new.tolist(), strict=True))


def go_on(strategy: Strategy, kept: Kept, pages: Sequence[JudgedPage], lag: int) -> None:
    """Crawl `pages`; a lesson takes `lag` fetches. One under way at the end is lost."""
    lesson, ready = None, 0
    for each in pages:
        if lesson is not None and ready == 0:
            assert strategy.learns
            kept.put(lesson.urls, lesson.scores)
            kept.put(*strategy.adopt(lesson))
            kept.lesson, lesson = lesson, None
        ready = max(ready - 1, 0)
        strategy.observe(each.url, each.relevance, None)
        expansion = strategy.expand(each)
        kept.put(expansion.urls, expansion.scores)
        recalled = RecalledPage(
            url=each.url,
            seq=each.seq,
            relevance=each.relevance,
            targets=each.targets,
            link_scores=expansion.link_scores,
            memo=expansion.memo,
        )
        kept.pages.append((recalled, len(each.targets) > 0 or expansion.memo is not None))
        if lesson is None and strategy.learns and strategy.lesson_due():
            lesson, ready = strategy.learn(), lag


def resumed(strategy: Strategy, kept: Kept) -> Kept:
    """Take up a crawl as `focuscrawl.crawl.restore` does."""
    again = Kept(pages=list(kept.pages), lesson=kept.lesson)
    learned_at = 0
    if strategy.learns and kept.lesson is not None:
        strategy.load(kept.lesson.state)
        learned_at = kept.lesson.trained_at_seq
    for seq, (recalled, has_links) in enumerate(kept.pages, start=1):
        strategy.observe(recalled.url, recalled.relevance, None)
        if has_links:
            again.put(*strategy.recall(recalled))
        if seq == learned_at and strategy.learns:
            again.put(*strategy.rescore())
    return again


TEXTS = st.lists(st.sampled_from(["tea", "tax", "leaf", "form", "a"]), max_size=6)
CRAWLS = st.lists(
    st.tuples(st.lists(st.integers(0, 14), max_size=5), st.floats(0, 1), TEXTS),
    min_size=1,
    max_size=10,
)


@pytest.mark.parametrize("name", [*NAMES[:4], *long(*NAMES[4:])])
@settings(max_examples=40, deadline=None)
@given(crawl=CRAWLS, at=st.integers(0, 10), lag=st.integers(0, 2))
def test_a_resumed_crawl_has_the_scores_of_one_never_interrupted(
    name: str, crawl: list[tuple[list[int], float, list[str]]], at: int, lag: int
) -> None:
    pages = [
        page(url, targets, r, depth=min(url, 1), html=words(" ".join(text), *targets))
        for url, (targets, r, text) in enumerate(crawl)
    ]
    strategy, before = make(name, **OPTIONS.get(name, {})), Kept()
    go_on(strategy, before, pages[:at], lag)
    other = make(name, **OPTIONS.get(name, {}))
    after = resumed(other, before)
    assert after.scores == before.scores
    # and goes on alike; a lesson that was under way is held again, when it is due
    if strategy.learns and other.learns:
        assert strategy.model_version == other.model_version
        assert strategy.lesson_due() == other.lesson_due()
    for each in pages[at:]:
        left, right = strategy.expand(each), other.expand(each)
        np.testing.assert_array_equal(left.link_scores, right.link_scores)
        assert scores(left) == scores(right)


@pytest.mark.parametrize("name", ["pagerank", "tfidf-centroid"])
def test_lessons_grow_rarer_with_the_crawl(name: str) -> None:
    strategy = make(name, every=2, growth=0.5)
    assert strategy.learns
    held = []
    for seq in range(1, 31):
        strategy.observe(seq, 0.9, None)
        strategy.expand(page(seq, [seq + 1]))
        if strategy.lesson_due():
            strategy.adopt(strategy.learn())
            held.append(seq)
    assert held == [2, 4, 8, 16]
    assert strategy.model_version == 4


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("pagerank", "damping", 1.0),
        ("pagerank", "every", 0),
        ("pagerank", "growth", -0.1),
        ("tfidf-centroid", "every", 2.5),
        ("fish-search", "width", -1),
        ("fish-search", "depth", True),
        ("fish-search", "breeding", "much"),
        ("shark-search", "gamma", 1.1),
        ("shark-search", "delta", float("nan")),
        ("shark-search", "context_words", 1.0),
    ],
)
def test_options_are_checked(name: str, option: str, value: object) -> None:
    context = StrategyContext(critic=Critic(), random_state=0, web=None)
    with pytest.raises(UserError, match=f"strategy {name}: {option} must be .* not "):
        make_strategy(name, context, {option: value})
