"""Checks of what every strategy has to guarantee."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.urls import host
from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage
from focuscrawl.strategies.base import merge_scores
from focuscrawl.testing.simulated_crawl import (
    FETCHES,
    PRECISION,
    StrategyUnderTest,
    assert_same_scores,
    by_url,
)
from focuscrawl.testing.tiny_web import SEED, KeywordCritic, example_web

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.strategies import StoredPage, Strategy
    from focuscrawl.testing.simulated_crawl import Factory
    from focuscrawl.webs.web_protocol import Web


_STOPS = (1, 2, 13, 31, 59)  # fetches after which crawls are interrupted


def strategy_checks(
    make: Factory,
    *,
    critic: Critic | None = None,
    web: Web | None = None,
    seeds: Sequence[str] = (),
) -> list[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and the check: it raises `AssertionError`.

    For pytest::

        @pytest.mark.parametrize(("name", "check"), strategy_checks(ShortPaths))
        def test_short_paths(name, check):
            check()

    Parameters
    ----------
    make : creates a strategy from a `StrategyContext`: its class, or a `functools.partial` of it
        that sets options. Strategies that learn should have lessons within 60 fetches
    critic, web, seeds : what is crawled; by default a web in memory of 60 pages, and a critic of
        one word
    """
    trial = StrategyUnderTest(
        make,
        critic or KeywordCritic("tea", reads_words=True),
        web or example_web(),
        list(seeds) or [SEED],
    )
    return [(check.__name__.removeprefix("_"), partial(check, trial)) for check in _CHECKS]


def check_strategy(
    make: Factory,
    *,
    critic: Critic | None = None,
    web: Web | None = None,
    seeds: Sequence[str] = (),
) -> None:
    """Run all `strategy_checks`, which have the same parameters.

    Raises
    ------
    AssertionError
        The first check that fails, named in a note.
    """
    run_checks(strategy_checks(make, critic=critic, web=web, seeds=seeds), make)


def run_checks(checks: Sequence[tuple[str, Callable[[], None]]], of: object) -> None:
    """Run checks one after another; add the name of one that fails as a note."""
    for name, check in checks:
        try:
            check()
        except Exception as error:
            error.add_note(f"check {name} of {of!r}")
            raise


# -- what it returns -----------------------------------------------------------------------


def _options_have_defaults(trial: StrategyUnderTest) -> None:
    """Check that all parameters of the class but the context have a default."""
    made = trial.make if isinstance(trial.make, type) else type(trial.strategy())
    options = [*inspect.signature(made).parameters.values()][1:]
    missing = [option.name for option in options if option.default is option.empty]
    assert not missing, f"options without a default: {missing}"


def _every_link_has_a_score(trial: StrategyUnderTest) -> None:
    """Check that `link_scores` is float64 (n,), each a number or -inf."""
    crawl = trial.shared_crawl
    for number, expansion in crawl.expansions.items():
        page = next(each.page for each in crawl.outcomes if each.url == number)
        assert page is not None
        _are_scores(expansion.link_scores)
        assert expansion.link_scores.shape == page.targets.shape


def _every_url_is_scored_once(trial: StrategyUnderTest) -> None:
    """Check that `urls` are distinct, int64 (m,); `scores` float64 (m,), a number or -inf."""
    crawl = trial.shared_crawl
    for expansion in crawl.expansions.values():
        urls, scores = expansion.urls, expansion.scores
        _are_scores(scores)
        assert urls.dtype == np.int64
        assert urls.shape == scores.shape == (len(urls),)
        assert len(np.unique(urls)) == len(urls)
        assert ((urls >= 0) & (urls < len(crawl.urls))).all()
        assert expansion.memo is None or isinstance(expansion.memo, bytes)


def _are_scores(scores: NDArray[np.float64]) -> None:
    assert scores.dtype == np.float64
    assert not np.isnan(scores).any()
    assert not np.isposinf(scores).any(), "inf is the score of seeds"


def _refused_links_give_no_score(trial: StrategyUnderTest) -> None:
    """Check that a URL has a score once a link to it has, none while all of them have -inf."""
    crawl = trial.shared_crawl
    followed: set[int] = set()
    scored: set[int] = set()
    for outcome in crawl.outcomes:
        if outcome.page is None:
            continue
        finite = np.isfinite(outcome.page.link_scores)
        followed |= set(outcome.page.targets[finite].tolist())
        scored |= set(crawl.expansions[outcome.url].urls.tolist())
        refused = set(outcome.page.targets[~finite].tolist()) - followed
        assert followed <= scored | {each.url for each in crawl.outcomes}
        new = by_url((crawl.expansions[outcome.url].urls, crawl.expansions[outcome.url].scores))
        assert not any(np.isfinite(new.get(url, -np.inf)) for url in refused)


def _page_without_links_is_accepted(trial: StrategyUnderTest) -> None:
    """Check that the expansion of a page without links to follow is empty."""
    none = np.zeros(0, np.int64)
    strategy = trial.strategy()
    view = parse_page(b"", trial.seeds[0])
    n_classes = len(trial.critic.classes)
    probabilities = np.full(n_classes, 1.0 / n_classes) if n_classes else None
    strategy.observe(0, 0.5, None)
    expansion = strategy.expand(JudgedPage(view, 0, 1, 0, 0.5, probabilities, none, none))
    assert len(expansion.link_scores) == 0
    assert np.isneginf(expansion.scores).all()


def _worth_is_a_share(trial: StrategyUnderTest) -> None:
    """Check that `page_value` of every fetched page is in [0, 1]."""
    crawl = trial.shared_crawl
    for outcome in crawl.outcomes:
        assert 0.0 <= crawl.strategy.page_value(outcome.url, outcome.relevance) <= 1.0


# -- the same again ------------------------------------------------------------------------


def _crawls_can_be_repeated(trial: StrategyUnderTest) -> None:
    """Check that the same crawl again has the same order, and the same scores to the bit."""
    one, other = trial.run_crawl(), trial.run_crawl()
    assert one.order == other.order
    assert one.scores == other.scores
    for number, expansion in one.expansions.items():
        same = other.expansions[number]
        np.testing.assert_array_equal(expansion.link_scores, same.link_scores)
        assert expansion.memo == same.memo


def _recall_is_like_expand(trial: StrategyUnderTest) -> None:
    """Check that `restore_page` returns what `expand` did, before any lesson."""
    crawl = trial.without_lessons
    strategy = trial.strategy()
    for outcome in crawl.outcomes:
        strategy.observe(outcome.url, outcome.relevance, outcome.duplicate_of)
        page = outcome.page
        if page is not None and (len(page.targets) or page.memo is not None):
            expansion = crawl.expansions[outcome.url]
            assert_same_scores(strategy.restore_page(page), (expansion.urls, expansion.scores))


def _resumed_crawl_equals_uninterrupted_crawl(trial: StrategyUnderTest) -> None:
    """Check that a resumed crawl has the same scores and order as one that is not interrupted."""
    for lag in {0, trial.strategy().lag}:
        whole = trial.run_crawl(lag=lag)
        for stop in _STOPS:
            first = trial.start_crawl(lag=lag).run(stop)
            again = first.resumed(trial.strategy())
            assert again.strategy.model_version == first.strategy.model_version
            assert again.scores == first.scores, f"after {stop} fetches, lag {lag}"
            again.run(FETCHES - stop)
            assert again.order == whole.order, f"interrupted after {stop} fetches, lag {lag}"
            assert again.scores == whole.scores


# -- lessons -------------------------------------------------------------------------------


def _learning_strategy_has_lessons(trial: StrategyUnderTest) -> None:
    """Check that one that `learns` has lessons, numbered from 1, and another has none."""
    crawl = trial.run_crawl()
    strategy = crawl.strategy
    if not strategy.learns:
        assert strategy.model_version == 0
        assert not strategy.is_training_due()
        assert len(strategy.rescore()[0]) == 0
        return
    assert crawl.lessons, f"no lesson within {len(crawl.outcomes)} fetches"
    assert [lesson.version for lesson in crawl.lessons] == [*range(1, len(crawl.lessons) + 1)]
    assert strategy.model_version == len(crawl.lessons)
    before = 0
    for lesson in crawl.lessons:
        assert before < lesson.trained_at_seq <= len(crawl.outcomes)
        before = lesson.trained_at_seq
        assert len(np.unique(lesson.urls)) == len(lesson.urls) == len(lesson.scores)
        assert not np.isnan(lesson.scores).any()
        assert isinstance(lesson.state, bytes)
        assert lesson.instances >= 0
        json.dumps(dict(lesson.metrics))


def _lesson_uses_only_earlier_pages(trial: StrategyUnderTest) -> None:
    """Check that pages judged while a lesson is learned do not change it."""
    lag = max(trial.strategy().lag, 2)
    early = trial.run_crawl(lag=lag)
    late = trial.run_crawl(lag=lag, late=True)
    assert late.order == early.order
    assert late.scores == early.scores
    for one, other in zip(early.lessons, late.lessons, strict=True):
        assert (one.version, one.trained_at_seq) == (other.version, other.trained_at_seq)
        assert_same_scores((one.urls, one.scores), (other.urls, other.scores))


# -- in rounds -----------------------------------------------------------------------------


def _links_can_be_recalled_in_another_process(trial: StrategyUnderTest) -> None:
    """Check that links in parts, and otherwise numbered, give URLs the same scores."""
    crawl = trial.without_lessons
    if not crawl.strategy.in_rounds:
        return
    there = trial.strategy()
    number = np.argsort(np.random.default_rng(0).random(len(crawl.urls)))  # of each URL there
    for outcome in crawl.outcomes:
        there.observe_earlier_fetch(int(number[outcome.url]), outcome.relevance)
        page = outcome.page
        if page is None or not len(page.targets):
            continue
        parts = _parts(crawl.strategy, page, [host(url) for url in crawl.urls])
        told = [
            replace(part, url=int(number[part.url]), targets=number[part.targets])
            for part in parts
        ]
        urls, scores = there.restore_pages(told)
        assert len(np.unique(urls)) == len(urls)
        expansion = crawl.expansions[outcome.url]
        here = by_url((number[expansion.urls], expansion.scores))
        for url, score in by_url((urls, scores)).items():
            if url in here:
                assert abs(score - here[url]) <= PRECISION
        assert set(here) <= set(urls.tolist())


def _parts(strategy: Strategy, page: StoredPage, hosts: list[str]) -> list[StoredPage]:
    """Cut a page up as for buckets of a host each."""
    names = np.array([hosts[target] for target in page.targets.tolist()])
    groups = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    memos = strategy.split_memo(page.memo, groups)
    return [
        replace(page, targets=page.targets[group], link_scores=page.link_scores[group], memo=memo)
        for group, memo in zip(groups, memos, strict=True)
    ]


def _recall_all_is_recall_of_each(trial: StrategyUnderTest) -> None:
    """Check that `restore_pages` returns the scores of `restore_page`, each URL once."""
    crawl = trial.without_lessons
    if not crawl.strategy.in_rounds:
        return
    pages = [each.page for each in crawl.outcomes if each.page is not None]
    pages = [page for page in pages if len(page.targets)]
    together, one_by_one = trial.strategy(), trial.strategy()
    for outcome in crawl.outcomes:
        together.observe_earlier_fetch(outcome.url, outcome.relevance)
        one_by_one.observe_earlier_fetch(outcome.url, outcome.relevance)
    left = together.restore_pages(pages)
    right = merge_scores([one_by_one.restore_page(page) for page in pages])
    assert len(np.unique(left[0])) == len(left[0])
    assert set(left[0].tolist()) == set(right[0].tolist())


def _one_process_can_train_for_all(trial: StrategyUnderTest) -> None:
    """Check that what was judged can be trained on, and the lesson taken up, elsewhere."""
    strategy = trial.run_crawl(lessons=False).strategy
    if not (strategy.learns and strategy.in_rounds):
        return
    judged = strategy.export_judged()
    assert judged is not None
    trainer = trial.run_crawl().strategy
    pool = trainer.new_pool()
    pool.add(judged)
    assert len(pool) > 0
    state, instances, metrics = trainer.train_on_pool(pool)
    assert instances > 0
    json.dumps(metrics)
    others = [trial.run_crawl(lessons=False).strategy for _ in range(2)]
    found: list[dict[int, float]] = []
    for other in others:
        lesson = other.load_trained(5, state)
        assert lesson.version == 5
        found.append(by_url((lesson.urls, lesson.scores)))
        other.adopt(lesson)
        assert other.model_version == 5
    assert found[0] == found[1]
    assert not np.isnan([*found[0].values()]).any()


_CHECKS: Sequence[Callable[[StrategyUnderTest], None]] = (
    _options_have_defaults,
    _every_link_has_a_score,
    _every_url_is_scored_once,
    _refused_links_give_no_score,
    _page_without_links_is_accepted,
    _worth_is_a_share,
    _crawls_can_be_repeated,
    _recall_is_like_expand,
    _resumed_crawl_equals_uninterrupted_crawl,
    _learning_strategy_has_lessons,
    _lesson_uses_only_earlier_pages,
    _links_can_be_recalled_in_another_process,
    _recall_all_is_recall_of_each,
    _one_process_can_train_for_all,
)
