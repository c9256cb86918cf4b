"""The orders of other crawlers, worked out on paper where their formulas allow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.errors import UserError
from focuscrawl.lab.strategies.online_logistic import OnlineRegression, word_weights
from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage, Strategy, StrategyContext, make_strategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.critic.protocol import Judgement


class Critic:
    """Has the topic's name, and is not to be asked anything."""

    classes: tuple[str, ...] = ("/Drinks/Green_Tea", "/Other")
    examples: tuple[str, ...] = ()
    fingerprint = "7ea"
    marked = np.array([True, False])

    def judge(self, pages: object) -> Judgement:
        raise AssertionError(pages)


def make(name: str, **options: object) -> Strategy:
    return make_strategy(name, StrategyContext(Critic(), random_state=0, web=None), options)


def page(
    url: int, targets: Sequence[int], relevance: float, html: str, *, depth: int = 0
) -> JudgedPage:
    return JudgedPage(
        view=parse_page(html.encode(), f"http://a.example/{url}"),
        url=url,
        seq=url + 1,
        depth=depth,
        relevance=relevance,
        probabilities=None,
        links=np.arange(len(targets)),
        targets=np.array(targets, np.int64),
    )


def scores(strategy: Strategy, each: JudgedPage) -> dict[int, float]:
    strategy.observe(each.url, each.relevance, None)
    found = strategy.expand(each)
    return dict(zip(found.urls.tolist(), found.scores.tolist(), strict=True))


# -- keywords in URLs ----------------------------------------------------------------------


def test_keywords_count_where_the_url_contains_them() -> None:
    html = (
        "<a href=/GREEN%54ea>x</a><a href=/evergreen>x</a>"
        "<a href=//green.example/x>x</a><a href=/coffee>green tea</a>"
    )
    found = scores(make("url-keywords"), page(0, [1, 2, 3, 4], 0.9, html))
    assert found == pytest.approx({1: 1.0, 2: 0.5, 3: 0.5, 4: 0.0}, abs=1e-5)


def test_of_urls_with_equal_keywords_the_nearer_comes_first() -> None:
    strategy = make("url-keywords")
    near = scores(strategy, page(0, [1], 0.1, "<a href=/tea/1>x</a>"))
    far = scores(strategy, page(1, [2], 0.9, "<a href=/tea/2>x</a>", depth=1))
    assert 0.0 < near[1] - far[2] < 1e-3


def test_balanced_is_the_mean_of_four_scorers() -> None:
    html = "<a href=/a/2022/tea.html>x</a><a href=/b>x</a>"
    found = scores(make("url-keywords", balanced=True), page(0, [1, 2], 0.9, html))
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
    found = scores(make("online-logistic", near=2), page(0, [1, 2], 0.4, html))
    # anchor, line, page and phrase; URL, line and page; a click down
    assert found == pytest.approx(
        {1: 0.9 * (2.0 + 1.0 + 0.5 * 0.4 + 0.5), 2: 0.9 * (1.5 / 2 + 1.0 / 2 + 0.5 * 0.4)}
    )


def test_the_best_of_several_links_speaks_for_a_url() -> None:
    strategy = make("online-logistic")
    first = scores(strategy, page(0, [5], 0.0, "<a href=/5>green tea</a>"))
    assert scores(strategy, page(1, [5], 0.9, "<a href=/5>more</a>")) == first


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
    strategy = make("online-logistic", every=1, growth=0.0)
    html = "".join(f"<a href=/{i}>green tea</a>" for i in range(1, 40)) + "<a href=/tea>x</a>"
    scores(strategy, page(0, list(range(1, 41)), 0.9, html))
    for url in range(1, 30):  # anchors that promise what is not there
        strategy.observe(url, 0.0, None)
    assert strategy.lesson_due()
    lesson = strategy.learn()
    now = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    assert now[35] < 0.9 * (2.0 + 0.5 * 0.9 + 0.5) / 2


# -- temporal differences ------------------------------------------------------------------


def test_values_are_learned_of_anchors_and_of_what_lies_behind() -> None:
    strategy = make("td-values", explore=0.0, switch=60)
    html = "".join(
        f"<a href=/{i}>{('green tea', 'the shop', 'news')[i % 3]}</a>" for i in range(3, 93)
    )
    first = scores(strategy, page(0, list(range(3, 93)), 0.0, html))
    assert set(first.values()) == {0.05}  # nothing is known yet
    for url in range(3, 63):  # a shop is not tea, but has links to it; news have none
        behind = "<a href=/9>green tea</a>" if url % 3 == 1 else ""
        scores(strategy, page(url, [9] if behind else [], float(url % 3 == 0), behind))
    assert strategy.lesson_due()
    lesson = strategy.learn()
    strategy.adopt(lesson)
    assert not strategy.lesson_due()
    now = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    assert now[90] > 0.5 > now[92]
    assert now[90] > now[91]


def test_exploration_draws_what_waits() -> None:
    strategy = make("td-values", explore=1.0)
    first = scores(
        strategy, page(0, [1, 2, 3], 0.9, "<a href=/1></a><a href=/2></a><a href=/3></a>")
    )
    drawn = [url for url, score in first.items() if score > 1.0]
    assert len(drawn) == 1
    second = scores(strategy, page(drawn[0], [], 0.0, ""))
    (again,) = second
    assert again != drawn[0]
    assert again in first


def test_options_of_peers_are_checked() -> None:
    wrong: dict[str, dict[str, object]] = {
        "url-keywords": {"balanced": 1},
        "online-logistic": {"near": -1},
        "td-values": {"explore": 1.5},
    }
    for name, options in wrong.items():
        with pytest.raises(UserError, match=f"strategy {name}: {next(iter(options))} must be"):
            make(name, **options)
