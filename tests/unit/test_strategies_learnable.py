"""The learnable crawler, and strategies beside what is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.critic import load_critic
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.errors import UserError
from focuscrawl.knowledge import Knowledge, add_crawl
from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage, StoredPage, StrategyContext, make_strategy
from focuscrawl.strategies.knowledge_strategy import CorrectedStrategy, initial_keywords

from .shelves import WordCritic
from .test_knowledge_update import crawl, fetch

if TYPE_CHECKING:
    from numpy.typing import NDArray

URLS = [f"http://h.example/{name}" for name in ("boats", "taxes", "new/boats", "new/other")]
ANCHORS = ["boats", "tax", "sailing boats", "else"]


@pytest.fixture
def knowledge(tmp_path: Path) -> Iterator[Knowledge]:
    boats = [
        fetch(f"http://h.example/new/boat{i}", anchors=("sailing boats",), texts=("Boats",))
        for i in range(9)
    ]
    others = [fetch(f"http://i.example/{i}", 0.0, texts=("Tax",)) for i in range(9)]
    add_crawl(
        tmp_path / "k.db",
        crawl(1, fetch(URLS[0], 0.8, anchors=("boats",)), fetch(URLS[1], 0.1), *boats, *others),
    )
    with closing(Knowledge(tmp_path / "k.db")) as known:
        yield known


def page(relevance: float) -> JudgedPage:
    html = "".join(f'<a href="{u}">{a}</a> ' for u, a in zip(URLS, ANCHORS, strict=True))
    view = parse_page(html.encode(), "http://h.example/")
    n = np.arange(len(URLS))
    return JudgedPage(view, 0, 1, 0, relevance, None, n, n + 1)


def test_a_first_crawl_goes_by_the_topics_name_and_the_page() -> None:
    context = StrategyContext(WordCritic(), 0, None, ("/Sailing/Boats",))
    strategy = make_strategy("learnable", context, {"alpha": 0.4, "beta": 0.3, "gamma": 0.3})
    scores = strategy.expand(page(0.5)).link_scores
    assert scores == pytest.approx([0.4 + 0.3, 0.3, 0.4 / np.sqrt(2) + 0.3, 0.3])


def test_keywords_of_a_first_crawl_are_named_or_are_a_name_that_says_something() -> None:
    weights = {"alpha": 1.0, "beta": 0.0, "gamma": 0.0}

    def scores(topic: str, **options: object) -> list[float]:
        context = StrategyContext(WordCritic(), 0, None, (topic,))
        strategy = make_strategy("learnable", context, {**weights, **options})
        found: list[float] = strategy.expand(page(0.5)).link_scores.tolist()
        return found

    boats = scores("/Sailing/Boats")
    assert boats[0] == 1.0
    assert scores("/Sailing/Boats/Other") == boats
    assert scores("/good", keywords=["boats"]) == boats
    assert scores("/good") == [0.0] * 4
    assert scores("/Tax", keywords=["boats"]) == boats


def start_page(number: int) -> JudgedPage:
    html = f"<title>Masts, part {number}</title><a href='http://h.example/m'>masts</a>"
    view = parse_page(html.encode(), f"http://h.example/{number}")
    n = np.arange(1)
    return JudgedPage(view, number, number, 0, 0.9, None, n, n + 10 + number)


def test_keywords_of_a_first_crawl_come_from_the_examples_of_the_critic() -> None:
    critic = load_critic("models/demo", "/Sports/Cycling")
    context = StrategyContext(critic, 0, None, ("/Sports/Cycling",))
    found = initial_keywords(context, ["examples"])
    assert {"saddle", "wheel", "gravel"} <= found.keys()
    assert not found.keys() & {"the", "and", "soprano", "price"}
    assert max(found.values()) == 1.0
    assert initial_keywords(context, ["topic"]) == {"cycling": 1.0}
    assert initial_keywords(context, []) == {}
    assert isinstance(critic, FocusedCritic)
    named = replace(critic, phrases=(("road", "racing"),))
    of_definition = initial_keywords(StrategyContext(named, 0, None, ("/good",)), ["topic"])
    assert of_definition == {"road": 1.0, "racing": 1.0}


def test_start_pages_say_what_the_words_of_the_topic_are_and_say_it_again_when_resumed() -> None:
    context = StrategyContext(WordCritic(), 0, None, ("/good",))
    options = {"alpha": 1.0, "beta": 0.0, "gamma": 0.0}
    strategy, resumed = (make_strategy("learnable", context, options) for _ in range(2))
    for number in (1, 2):
        page = start_page(number)
        expansion = strategy.expand(page)
        assert expansion.memo is not None
        scores = expansion.link_scores
        resumed.restore_page(
            StoredPage(page.url, number, 0.9, page.targets, scores, expansion.memo)
        )
    third = start_page(3)
    assert strategy.expand(replace(third, relevance=0.1)).link_scores[0] > 0.5
    assert resumed.expand(replace(third, relevance=0.1)).link_scores[0] > 0.5
    assert strategy.expand(replace(third, depth=1)).memo is None


def test_a_base_of_the_knowledge_may_be_left_out(knowledge: Knowledge) -> None:
    context = StrategyContext(WordCritic(), 0, None, ("/Tax",), knowledge)
    weights = {"alpha": 0.5, "beta": 0.5, "gamma": 0.0}

    def scores(*bases: str) -> list[float]:
        options = {**weights, "bases": bases, "first": ["topic"]}
        made = make_strategy("learnable", context, options)
        found: list[float] = made.expand(page(0.0)).link_scores.tolist()
        return found

    of_anchors = 0.5 * knowledge.keywords.similarity(ANCHORS)
    predicted = 0.5 * knowledge.predict(URLS, ANCHORS)
    assert scores("keywords", "prediction") == pytest.approx((of_anchors + predicted).tolist())
    assert scores("keywords") == pytest.approx(of_anchors.tolist())
    assert scores() == [0.0, 0.5, 0.0, 0.0]  # as a first crawl: tax, the topic's name


def test_a_page_may_be_held_against_the_keywords() -> None:
    context = StrategyContext(WordCritic(), 0, None, ("/Sailing/Boats",))
    options = {"alpha": 0.0, "beta": 0.0, "gamma": 1.0, "page": "keywords"}
    scores = make_strategy("learnable", context, options).expand(page(0.0)).link_scores
    # boats is one of the page's four words: boats, tax, sailing, else
    assert scores == pytest.approx([0.5] * 4)


def test_later_crawls_know_more(knowledge: Knowledge) -> None:
    context = StrategyContext(WordCritic(), 0, None, ("/Sailing/Boats",), knowledge)
    for weights, expected in (
        ((0.0, 1.0, 0.0), knowledge.predict(URLS, ANCHORS)),
        ((1.0, 0.0, 0.0), knowledge.keywords.similarity(ANCHORS)),
        ((0.0, 0.0, 1.0), np.full(4, 0.5)),
    ):
        options = dict(zip(("alpha", "beta", "gamma"), weights, strict=True))
        strategy = make_strategy("learnable", context, options)
        assert strategy.expand(page(0.5)).link_scores == pytest.approx(expected)
    known = make_strategy("learnable", context, {}).expand(page(0.5)).scores
    assert known[0] > known[1]
    assert known[2] > known[3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": 0.5}, "add up to 1"),
        ({"alpha": -0.1}, "alpha"),
        ({"beta": "much"}, "beta"),
        ({"page": "none"}, "page must be"),
        *(({"keywords": each}, "list of strings") for each in ("boats", 5, None, {"a": 1}, [3])),
        ({"bases": ["seeds"]}, "bases must be a list with values from keywords, prediction"),
        ({"bases": [[]]}, "list with values"),
        ({"first": 3}, "list with values"),
    ],
)
def test_options_are_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_strategy("learnable", StrategyContext(WordCritic(), 0, None), options)


def test_what_is_known_decides_and_the_learner_keeps_the_rest() -> None:
    known = {URLS[0]: 1.0, URLS[1]: 0.0}

    def ask(urls: Sequence[str]) -> NDArray[np.float64]:
        return np.array([known.get(url, np.nan) for url in urls])

    names = ["", *URLS]
    inner = make_strategy("apprentice", StrategyContext(WordCritic(), 0, None), {})
    alone = make_strategy("apprentice", StrategyContext(WordCritic(), 0, None), {})
    assert inner.learns
    informed = CorrectedStrategy(inner, ask, names, weight=0.9)
    assert informed.learns
    for each in (informed, alone):
        each.observe(0, 0.5, None)
    one, other = informed.expand(page(0.5)), alone.expand(page(0.5))
    expected = other.scores.copy()
    expected[:2] = 0.9 * np.array([1.0, 0.0]) + 0.1 * expected[:2]
    assert one.scores == pytest.approx(expected)
    assert (one.link_scores == other.link_scores).all()
    assert one.memo == other.memo
    urls, scores = informed.rescore()
    assert scores == pytest.approx(expected[np.searchsorted([1, 2, 3, 4], urls)])
