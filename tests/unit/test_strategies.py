"""Strategies and evidence rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.errors import UserError
from focuscrawl.page import PageView, parse_page
from focuscrawl.strategies import (
    First,
    JudgedPage,
    Maximum,
    Strategy,
    StrategyContext,
    base,
    find_strategy,
    make_strategy,
    strategy_names,
)
from focuscrawl.testing import strategy_checks

from . import tea_pages

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Judgement


LINKS = st.lists(st.lists(st.tuples(st.integers(0, 12), st.floats(0, 1)), max_size=8), max_size=8)


#: lessons within the checks' 60 fetches, of those that learn
OFTEN: dict[str, dict[str, float]] = {
    **{
        name: {"every": 7, "growth": 0.0}
        for name in ("pagerank", "tfidf-centroid", "hubs", "online-logistic")
    },
    "td-values": {"switch": 7},
    **{
        name: {"batch": 7, "growth": 0.0}
        for name in ("apprentice", "intelligent", "context-graphs", "q-values")
    },
}


def every_strategy_and_check() -> Iterator[object]:
    """All but `paths`, which needs a model of paths: see the tests of foraging."""
    for name in strategy_names():
        if name != "paths":
            make: Any = partial(find_strategy(name), **OFTEN.get(name, {}))  # type: ignore[arg-type]
            for check, run in strategy_checks(make):
                yield pytest.param(run, id=f"{name}-{check}")


class Critic:
    """A black box of two classes: no strategy may ask it, judging is the crawl's business."""

    classes: tuple[str, ...] = ("/On", "/Off")
    examples: tuple[str, ...] = ()
    fingerprint = "c417"

    def __init__(self, *marked: bool) -> None:
        self.marked = np.array(marked, dtype=np.bool_)

    def judge(self, pages: object) -> Judgement:
        raise AssertionError(pages)


def made(name: str, random_state: int = 0) -> Strategy:
    context = StrategyContext(critic=Critic(True, False), random_state=random_state, web=None)
    return find_strategy(name)(context)


def judged(targets: list[int], relevance: float, *, on_topic: bool = True) -> JudgedPage:
    """A page with a link to each of `targets`."""
    anchors = "".join(f"<a href=/{target}>{target}</a>" for target in targets)
    view: PageView = parse_page(anchors.encode(), "http://a.example/")
    return JudgedPage(
        view=view,
        url=99,
        seq=1,
        depth=0,
        relevance=relevance,
        probabilities=np.array([0.6, 0.4] if on_topic else [0.4, 0.6]),
        links=np.arange(len(targets)),
        targets=np.array(targets, dtype=np.int64),
    )


def test_installed_strategies_are_found_by_name() -> None:
    names = {"apprentice", "best-first", "breadth-first", "hard-focus", "random"}
    assert names <= set(strategy_names())
    for name in names:
        assert find_strategy(name).__name__.lower().startswith(name.replace("-", ""))


def test_an_unknown_strategy_is_answered_with_a_name() -> None:
    with pytest.raises(UserError, match="did you mean best-first"):
        find_strategy("best_first")
    with pytest.raises(UserError, match=r"available: .*breadth-first"):
        find_strategy("xyz")


@pytest.mark.parametrize("check", [*every_strategy_and_check()])
def test_every_strategy_holds_to_every_check(check: Callable[[], None]) -> None:
    check()


def test_what_is_no_subclass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints([EntryPoint("own", "collections:Counter", base.GROUP)])
    monkeypatch.setattr(base, "entry_points", points.select)
    with pytest.raises(
        UserError,
        match=r"strategy own \(collections:Counter\) is not a subclass of focuscrawl.strategies",
    ):
        find_strategy("own")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("pagerank", "damping", 1.0),
        ("pagerank", "every", 0),
        ("pagerank", "growth", -0.1),
        ("hubs", "weight", 1.5),
        ("hubs", "every", 0),
        ("hubs", "growth", -1.0),
        ("tfidf-centroid", "every", 2.5),
        ("tfidf-centroid", "of_seeds", 1),
        ("fish-search", "width", -1),
        ("fish-search", "depth", True),
        ("fish-search", "breeding", "much"),
        ("fish-search", "breeding", float("inf")),
        ("shark-search", "gamma", 1.1),
        ("shark-search", "delta", float("nan")),
        ("shark-search", "depth", 10**19),
        ("shark-search", "context_words", 1.0),
        ("intelligent", "content", -1.0),
        ("intelligent", "content", float("inf")),
        ("intelligent", "batch", 0),
        ("context-graphs", "layers", 0),
        ("context-graphs", "threshold", 2.0),
        ("q-values", "gamma", 0.9),
        ("q-values", "bins", 1),
        ("url-keywords", "balanced", 1),
        ("online-logistic", "near", -1),
        ("td-values", "explore", 1.5),
        ("apprentice", "begin_with", 3),
    ],
)
def test_options_are_checked(name: str, option: str, value: object) -> None:
    context = StrategyContext(critic=Critic(True, False), random_state=0, web=None)
    with pytest.raises(UserError, match=f"strategy {name}: {option} must be ") as error:
        make_strategy(name, context, {option: value})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["pagerank", "tfidf-centroid"])
def test_lessons_grow_rarer_with_the_crawl(name: str) -> None:
    strategy = tea_pages.make(name, every=2, growth=0.5)
    held = []
    for seq in range(1, 31):
        tea_pages.visit(strategy, tea_pages.page(seq, [seq + 1]))
        if strategy.is_training_due():
            strategy.adopt(strategy.learn())
            held.append(seq)
    assert held == [2, 4, 8, 16]
    assert strategy.model_version == 4


def test_best_first_keeps_the_greatest_relevance() -> None:
    strategy = made("best-first")
    assert strategy.expand(judged([1, 2], 0.3)).scores.tolist() == [0.3, 0.3]
    raised = strategy.expand(judged([2, 3], 0.9))
    assert dict(zip(raised.urls.tolist(), raised.scores.tolist(), strict=True)) == {2: 0.9, 3: 0.9}
    assert len(strategy.expand(judged([1, 2, 3], 0.1)).urls) == 0


def test_best_first_may_put_what_was_tried_behind_the_rest() -> None:
    context = StrategyContext(critic=Critic(True, False), random_state=0, web=None)
    strategy = make_strategy("best-first", context, {"tries": True})
    strategy.expand(judged([1, 2, 3], 0.3))
    once = strategy.score_after_failure(1, 0.3)
    twice = strategy.score_after_failure(2, strategy.score_after_failure(2, 0.3))
    assert 0.0 > once > twice
    # a better page that links to them does not bring them forward
    raised = strategy.expand(judged([1, 2, 3], 1.0))
    assert raised.urls.tolist() == [1, 2, 3]
    assert 0.0 > raised.scores[0] > once
    assert raised.scores[0] > raised.scores[1] > twice
    assert raised.scores[2] == 1.0
    assert made("best-first").score_after_failure(1, 0.3) == 0.3
    with pytest.raises(UserError, match="tries must be true or false"):
        make_strategy("best-first", context, {"tries": 1})


def test_hard_focus_refuses_the_links_of_a_page_off_the_topic() -> None:
    strategy = made("hard-focus")
    refused = strategy.expand(judged([1, 2], 0.4, on_topic=False))
    assert np.isneginf(refused.link_scores).all()
    assert len(refused.urls) == 0
    assert strategy.expand(judged([1, 2], 0.6)).scores.tolist() == [0.6, 0.6]


def test_hard_focus_needs_classes() -> None:
    with pytest.raises(UserError, match="classes"):
        find_strategy("hard-focus")(StrategyContext(critic=Critic(), random_state=0, web=None))


def test_random_depends_on_the_random_state_alone() -> None:
    page = judged(list(range(2000)), 0.5)
    scores = made("random", 1).expand(page).link_scores
    np.testing.assert_array_equal(scores, made("random", 1).expand(page).link_scores)
    other = made("random", 2).expand(page).link_scores
    assert abs(np.corrcoef(scores, other)[0, 1]) < 0.1
    assert ((scores >= 0) & (scores < 1)).all()
    assert np.histogram(scores, bins=10, range=(0, 1))[0].min() > 120  # uniform: 200 expected
    assert abs(np.corrcoef(scores[1:], scores[:-1])[0, 1]) < 0.1


@settings(max_examples=60, deadline=None)
@given(LINKS)
def test_evidence_is_the_maximum_or_the_first_however_links_come_in(
    pages: list[list[tuple[int, float]]],
) -> None:
    maximum, first = Maximum(), First()
    best: dict[int, float] = {}
    earliest: dict[int, float] = {}
    for links in pages:
        targets = np.array([target for target, _ in links], dtype=np.int64)
        given = np.array([score for _, score in links])
        before, known = dict(best), dict(earliest)
        for target, score in links:
            best[target] = max(score, best.get(target, -np.inf))
            earliest.setdefault(target, score)
        urls, scores = maximum.add(targets, given)
        changed = {url: best[url] for url in best if best[url] != before.get(url)}
        assert list(zip(urls.tolist(), scores.tolist(), strict=True)) == sorted(changed.items())
        urls, scores = first.add(targets, given)
        new = {url: earliest[url] for url in earliest.keys() - known.keys()}
        assert list(zip(urls.tolist(), scores.tolist(), strict=True)) == sorted(new.items())
