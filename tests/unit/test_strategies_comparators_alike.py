"""What holds for every comparator: resumed crawls, rarer lessons, options that are checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longer import long

from focuscrawl.errors import UserError
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


from .tea_pages import Critic, make, page, scores, words

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
    """Take up a crawl as `focuscrawl.crawl.state` does."""
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
        ("intelligent", "content", float("inf")),
        ("fish-search", "breeding", float("inf")),
        ("shark-search", "depth", 10**19),
        ("apprentice", "begin_with", 3),
        ("shark-search", "context_words", 1.0),
    ],
)
def test_options_are_checked(name: str, option: str, value: object) -> None:
    context = StrategyContext(critic=Critic(), random_state=0, web=None)
    with pytest.raises(UserError, match=f"strategy {name}: {option} must be .* not "):
        make_strategy(name, context, {option: value})
