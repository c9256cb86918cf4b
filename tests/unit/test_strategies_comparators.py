"""Comparators one by one, on graphs small enough to work out on paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.lab.strategies.online_logistic import OnlineRegression, word_weights
from focuscrawl.strategies import StoredPage

from .tea_pages import DeafCritic, GreenTeaCritic, make, page, scores, teach, visit, words

GREEN_TEA = GreenTeaCritic()


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


def test_shark_search_asks_no_critic_that_cannot_read() -> None:
    strategy = make("shark-search", DeafCritic())
    html = "<a href=/1>tea</a> and <a href=/2>tax</a>"
    first, second = strategy.expand(page(0, [1, 2], 0.8, html=html)).link_scores.tolist()
    assert first == second


# -- TF-IDF centroid -----------------------------------------------------------------------


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


def test_the_centroid_may_be_that_of_the_start_pages() -> None:
    first, second = (make("tfidf-centroid", every=3, of_seeds=True) for _ in range(2))
    texts = ["green leaf page", "income form page", "green pot page"]
    for url, (text, relevance) in enumerate(zip(texts, (0.1, 0.9, 0.9), strict=True)):
        first.observe(url, relevance, None)
        judged = page(url, [url + 10], relevance, html=words(text, url + 10), depth=min(url, 1))
        expanded = first.expand(judged)
        kept = StoredPage(
            url, url + 1, relevance, judged.targets, expanded.link_scores, expanded.memo
        )
        second.restore_page(kept)
        second.observe(url, relevance, None)
    green, rare = np.log(1.5), np.log(3.0)
    cosine = green**2 / (green**2 + rare**2)
    found = teach(first)
    # only the first page, a seed off the topic, is in the centroid
    assert found == pytest.approx({10: 1.0, 11: 0.0, 12: cosine})
    assert teach(second) == found


# -- keywords in URLs ----------------------------------------------------------------------


def test_keywords_count_where_the_url_contains_them() -> None:
    html = (
        "<a href=/GREEN%54ea>x</a><a href=/evergreen>x</a>"
        "<a href=//green.example/x>x</a><a href=/coffee>green tea</a>"
    )
    found = visit(make("url-keywords", GREEN_TEA), page(0, [1, 2, 3, 4], 0.9, html=html))
    assert found == pytest.approx({1: 1.0, 2: 0.5, 3: 0.5, 4: 0.0}, abs=1e-5)


def test_of_urls_with_equal_keywords_the_nearer_comes_first() -> None:
    strategy = make("url-keywords", GREEN_TEA)
    near = visit(strategy, page(0, [1], 0.1, html="<a href=/tea/1>x</a>", depth=0))
    far = visit(strategy, page(1, [2], 0.9, html="<a href=/tea/2>x</a>"))
    assert 0.0 < near[1] - far[2] < 1e-3


def test_balanced_is_the_mean_of_four_scorers() -> None:
    html = "<a href=/a/2022/tea.html>x</a><a href=/b>x</a>"
    found = visit(make("url-keywords", GREEN_TEA, balanced=True), page(0, [1, 2], 0.9, html=html))
    # keywords, folders (three, and one), ending, date
    first = (0.5 + 0.7 * 1.0 + 0.8 * 1.0 + 0.9 * 0.8) / 4
    second = (0.0 + 0.7 / 3 + 0.0 + 0.9 * 0.5) / 4
    assert found == pytest.approx({1: first, 2: second}, abs=1e-5)


# -- online logistic regression ------------------------------------------------------------


def test_five_matches_add_up() -> None:
    html = (
        "<p><a href=/x>green tea</a></p><p>" + "far " * 20 + "</p>"
        "<p>tea: <a href=/tea>here</a></p>"
    )
    found = visit(
        make("online-logistic", GREEN_TEA, near=2), page(0, [1, 2], 0.4, depth=0, html=html)
    )
    # anchor, line, page and phrase; URL, line and page; a click down
    assert found == pytest.approx(
        {1: 0.9 * (2.0 + 1.0 + 0.5 * 0.4 + 0.5), 2: 0.9 * (1.5 / 2 + 1.0 / 2 + 0.5 * 0.4)}
    )


def test_the_best_of_several_links_speaks_for_a_url() -> None:
    strategy = make("online-logistic", GREEN_TEA)
    first = visit(strategy, page(0, [5], 0.0, html="<a href=/5>green tea</a>"))
    assert visit(strategy, page(1, [5], 0.9, html="<a href=/5>more</a>")) == first


def test_a_step_of_the_regression() -> None:
    regression = OnlineRegression()
    x = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    for _ in range(60):
        regression.learn(x, relevant=False)
    p = 1.0 / (1.0 + np.exp(-2.0))
    once = OnlineRegression()
    once.learn(x, relevant=False)
    moved = 2.0 - p / (0.25 + p * (1.0 - p))
    uncertain = 1.645 / np.sqrt(0.25 + p * (1.0 - p))
    assert once.used[0] == 2.0  # it has moved by less than its uncertainty
    assert 2.0 - moved < uncertain
    assert regression.used.tolist() == [0.0, 1.5, 1.0, 0.5, 0.5]  # never below 0


def test_words_of_all_pages_weigh_little() -> None:
    assert word_weights(np.array([2.0, 0.0]), 2).tolist() == [1.0, 1.0]
    weights = word_weights(np.array([9.0, 1.0, 0.0]), 9)
    assert weights == pytest.approx([0.15, np.log(10 / 1.5) / np.log(10.0), 1.0])


def test_what_was_followed_changes_the_order() -> None:
    strategy = make("online-logistic", GREEN_TEA, every=1, growth=0.0)
    html = "".join(f"<a href=/{i}>green tea</a>" for i in range(1, 40)) + "<a href=/tea>x</a>"
    visit(strategy, page(0, list(range(1, 41)), 0.9, html=html))
    for url in range(1, 30):  # anchors that promise what is not there
        strategy.observe(url, 0.0, None)
    assert strategy.is_training_due()
    lesson = strategy.learn()
    now = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    assert now[35] < 0.9 * (2.0 + 0.5 * 0.9 + 0.5) / 2


# -- temporal differences ------------------------------------------------------------------


def test_values_are_learned_of_anchors_and_of_what_lies_behind() -> None:
    strategy = make("td-values", GREEN_TEA, explore=0.0, switch=60)
    html = "".join(
        f"<a href=/{i}>{('green tea', 'the shop', 'news')[i % 3]}</a>" for i in range(3, 93)
    )
    first = visit(strategy, page(0, list(range(3, 93)), 0.0, html=html))
    assert set(first.values()) == {0.05}  # nothing is known yet
    for url in range(3, 63):  # a shop is not tea, but has links to it; news have none
        behind = "<a href=/9>green tea</a>" if url % 3 == 1 else ""
        visit(strategy, page(url, [9] if behind else [], float(url % 3 == 0), html=behind))
    assert strategy.is_training_due()
    lesson = strategy.learn()
    strategy.adopt(lesson)
    assert not strategy.is_training_due()
    now = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    assert now[90] > 0.5 > now[92]
    assert now[90] > now[91]


def test_exploration_draws_what_waits() -> None:
    strategy = make("td-values", GREEN_TEA, explore=1.0)
    first = visit(strategy, page(0, [1, 2, 3], html=words("", 1, 2, 3)))
    drawn = [url for url, score in first.items() if score > 1.0]
    assert len(drawn) == 1
    second = visit(strategy, page(drawn[0], [], 0.0))
    (again,) = second
    assert again != drawn[0]
    assert again in first
