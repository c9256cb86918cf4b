"""Checks that every strategy and every critic must pass."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.urls import host
from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage
from focuscrawl.strategies.base import merge_scores
from focuscrawl.testing.simulated_crawl import (
    FETCHES,
    PRECISION,
    SimulatedCrawl,
    StrategyUnderTest,
    assert_same_scores,
    by_url,
)
from focuscrawl.testing.tiny_web import SEED, KeywordCritic, example_web

if TYPE_CHECKING:
    from focuscrawl.critic.protocol import Critic, Judgement
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.page import PageView
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
    """Return the name and function of each check, which raises `AssertionError` on failure.

    For pytest::

        @pytest.mark.parametrize(("name", "check"), strategy_checks(ShortPaths))
        def test_short_paths(name, check):
            check()

    Parameters
    ----------
    make : Callable[[StrategyContext], Strategy]
        A strategy class, or a `functools.partial` of the class that sets options. A strategy that
        learns must train within 60 fetches.
    critic, web, seeds : Critic, Web, Sequence[str]
        Critic, web and start URLs of the test crawls; by default a keyword critic and a web in
        memory with 60 pages.
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
    """Run all checks of `strategy_checks`, with the same parameters.

    Raises
    ------
    AssertionError
        A check fails; a note names the check.
    """
    run_checks(strategy_checks(make, critic=critic, web=web, seeds=seeds), make)


def run_checks(checks: Sequence[tuple[str, Callable[[], None]]], of: object) -> None:
    """Run checks one by one; the error of a failed check contains the name of the check."""
    for name, check in checks:
        try:
            check()
        except Exception as error:
            error.add_note(f"check {name} of {of!r}")
            raise


# -- results of expand -----------------------------------------------------------------------


def _options_have_defaults(trial: StrategyUnderTest) -> None:
    """Check that all parameters of the strategy except the context have defaults."""
    strategy = trial.make if isinstance(trial.make, type) else type(trial.strategy())
    options = [*inspect.signature(strategy).parameters.values()][1:]
    missing = [option.name for option in options if option.default is option.empty]
    assert not missing, f"options without a default: {missing}"


def _every_link_has_a_score(trial: StrategyUnderTest) -> None:
    """Check that `link_scores` is float64 (n,) with finite numbers or -inf."""
    crawl = trial.shared_crawl
    for number, expansion in crawl.expansions.items():
        page = next(each.page for each in crawl.outcomes if each.url == number)
        assert page is not None
        _are_scores(expansion.link_scores)
        assert expansion.link_scores.shape == page.targets.shape


def _every_url_is_scored_once(trial: StrategyUnderTest) -> None:
    """Check that `urls` are distinct int64 ids, and `scores` float64 numbers or -inf."""
    crawl = trial.shared_crawl
    for expansion in crawl.expansions.values():
        urls, scores = expansion.urls, expansion.scores
        _are_scores(scores)
        assert urls.dtype == np.int64
        assert urls.shape == scores.shape == (len(urls),)
        assert len(np.unique(urls)) == len(urls)
        assert ((urls >= 0) & (urls < len(crawl.urls))).all()
        assert expansion.memo is None or isinstance(expansion.memo, bytes)


def _are_scores(scores: Floats) -> None:
    assert scores.dtype == np.float64
    assert not np.isnan(scores).any()
    assert not np.isposinf(scores).any(), "inf is the score of seeds"


def _refused_links_give_no_score(trial: StrategyUnderTest) -> None:
    """Check that a URL has a score if and only if a link to the URL has a score above -inf."""
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
    """Check that the expansion of a page without followable links is empty."""
    none = np.zeros(0, np.int64)
    strategy = trial.strategy()
    view = parse_page(b"", trial.seeds[0])
    n_classes = len(trial.critic.classes)
    probabilities = np.full(n_classes, 1.0 / n_classes) if n_classes else None
    strategy.observe(0, 0.5, None)
    expansion = strategy.expand(JudgedPage(view, 0, 1, 0, 0.5, probabilities, none, none))
    assert len(expansion.link_scores) == 0
    assert np.isneginf(expansion.scores).all()


# -- repeated and resumed crawls -------------------------------------------------------------


def _crawls_can_be_repeated(trial: StrategyUnderTest) -> None:
    """Check that repeating a crawl gives the same order and bit-identical scores."""
    one, other = trial.shared_crawl, trial.run_crawl()
    assert one.order == other.order
    assert one.scores == other.scores
    for number, expansion in one.expansions.items():
        same = other.expansions[number]
        np.testing.assert_array_equal(expansion.link_scores, same.link_scores)
        assert expansion.memo == same.memo


def _restore_page_equals_expand(trial: StrategyUnderTest) -> None:
    """Check that `restore_page` returns the result of `expand`, before any training."""
    crawl = trial.without_training
    strategy = trial.strategy()
    for outcome in crawl.outcomes:
        strategy.observe(outcome.url, outcome.relevance, outcome.duplicate_of)
        page = outcome.page
        if page is not None and (len(page.targets) or page.memo is not None):
            expansion = crawl.expansions[outcome.url]
            assert_same_scores(strategy.restore_page(page), (expansion.urls, expansion.scores))


def _resumed_crawl_equals_uninterrupted_crawl(trial: StrategyUnderTest) -> None:
    """Check that resumed and uninterrupted crawls have the same scores and order."""
    for lag in {0, trial.strategy().lag}:
        whole, resumed = trial.start_crawl(lag=lag), dict[int, SimulatedCrawl]()
        for last, stop in pairwise((0, *_STOPS)):
            whole.run(stop - last)
            again = resumed[stop] = whole.resumed(trial.strategy())
            assert again.strategy.model_version == whole.strategy.model_version
            assert again.scores == whole.scores, f"after {stop} fetches, lag {lag}"
        whole.run(FETCHES - _STOPS[-1])
        for stop, again in resumed.items():
            again.run(FETCHES - stop)
            assert again.order == whole.order, f"interrupted after {stop} fetches, lag {lag}"
            assert again.scores == whole.scores


# -- training --------------------------------------------------------------------------------


def _learning_strategy_trains(trial: StrategyUnderTest) -> None:
    """Check that a strategy that `learns` trains models with versions 1, 2, ..., others none."""
    crawl = trial.shared_crawl
    strategy = crawl.strategy
    if not strategy.learns:
        assert strategy.model_version == 0
        assert not strategy.is_training_due()
        assert len(strategy.rescore()[0]) == 0
        return
    assert crawl.updates, f"no training within {len(crawl.outcomes)} fetches"
    assert [update.version for update in crawl.updates] == [*range(1, len(crawl.updates) + 1)]
    assert strategy.model_version == len(crawl.updates)
    before = 0
    for update in crawl.updates:
        assert before < update.trained_at_seq <= len(crawl.outcomes)
        before = update.trained_at_seq
        assert len(np.unique(update.urls)) == len(update.urls) == len(update.scores)
        assert not np.isnan(update.scores).any()
        assert isinstance(update.state, bytes)
        assert update.instances >= 0
        json.dumps(dict(update.metrics))


def _training_uses_only_earlier_pages(trial: StrategyUnderTest) -> None:
    """Check that pages judged during a training do not change the model."""
    if not trial.strategy().learns:
        return
    lag = max(trial.strategy().lag, 2)
    early = trial.run_crawl(lag=lag)
    late = trial.run_crawl(lag=lag, train_late=True)
    assert late.order == early.order
    assert late.scores == early.scores
    for one, other in zip(early.updates, late.updates, strict=True):
        assert (one.version, one.trained_at_seq) == (other.version, other.trained_at_seq)
        assert_same_scores((one.urls, one.scores), (other.urls, other.scores))


# -- crawls in rounds ------------------------------------------------------------------------


def _links_can_be_restored_in_another_process(trial: StrategyUnderTest) -> None:
    """Check that links restored in parts, with other URL ids, give URLs the same scores."""
    crawl = trial.without_training
    if not crawl.strategy.in_rounds:
        return
    there = trial.strategy()
    number = np.argsort(np.random.default_rng(0).random(len(crawl.urls)))  # new id of each URL
    for outcome in crawl.outcomes:
        there.observe_earlier_fetch(int(number[outcome.url]), outcome.relevance)
        page = outcome.page
        if page is None or not len(page.targets):
            continue
        parts = _parts(crawl.strategy, page, [host(url) for url in crawl.urls])
        renumbered = [
            replace(part, url=int(number[part.url]), targets=number[part.targets])
            for part in parts
        ]
        urls, scores = there.restore_pages(renumbered)
        assert len(np.unique(urls)) == len(urls)
        expansion = crawl.expansions[outcome.url]
        here = by_url((number[expansion.urls], expansion.scores))
        for url, score in by_url((urls, scores)).items():
            if url in here:
                assert abs(score - here[url]) <= PRECISION
        assert set(here) <= set(urls.tolist())


def _parts(strategy: Strategy, page: StoredPage, hosts: list[str]) -> list[StoredPage]:
    """Split a page into one part for each host of its links."""
    names = np.array([hosts[target] for target in page.targets.tolist()])
    _, part = np.unique(names, return_inverse=True)
    groups = [np.flatnonzero(part == each) for each in range(part.max() + 1)]
    (memos,) = strategy.split_memos([page.memo], [part])
    return [
        replace(page, targets=page.targets[group], link_scores=page.link_scores[group], memo=memo)
        for group, memo in zip(groups, memos, strict=True)
    ]


def _restore_pages_equals_restore_page(trial: StrategyUnderTest) -> None:
    """Check that `restore_pages` returns the scores of `restore_page`, each URL once."""
    crawl = trial.without_training
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
    """Check that a pool of judged links trains a model that other processes can use."""
    strategy = trial.run_crawl(trains=False).strategy
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
    others = [trial.run_crawl(trains=False).strategy for _ in range(2)]
    found: list[dict[int, float]] = []
    for other in others:
        update = other.load_trained(5, state)
        assert update.version == 5
        found.append(by_url((update.urls, update.scores)))
        other.adopt(update)
        assert other.model_version == 5
    assert found[0] == found[1]
    assert not np.isnan([*found[0].values()]).any()


_CHECKS: Sequence[Callable[[StrategyUnderTest], None]] = (
    _options_have_defaults,
    _every_link_has_a_score,
    _every_url_is_scored_once,
    _refused_links_give_no_score,
    _page_without_links_is_accepted,
    _crawls_can_be_repeated,
    _restore_page_equals_expand,
    _resumed_crawl_equals_uninterrupted_crawl,
    _learning_strategy_trains,
    _training_uses_only_earlier_pages,
    _links_can_be_restored_in_another_process,
    _restore_pages_equals_restore_page,
    _one_process_can_train_for_all,
)


_PRECISION = 1e-9
_STRANGE = (
    "",
    "   ",
    "<title></title>",
    "<p>7",
    "<p>\u6f22\u5b57 \u0645\u0631\u062d\u0628\u0627 \U0001f375",
    "<p>" + "tea " * 5000,
    "<p>" + "\u00e9" * 300,
    "<a href=x></a>" * 50,
    "<p>a\x00b\x1f",
)


def critic_checks(
    critic: Critic, *, pages: Sequence[PageView] = ()
) -> list[tuple[str, Callable[[], None]]]:
    """Return a name and a function for each check of a critic.

    For pytest::

        @pytest.mark.parametrize(("name", "check"), critic_checks(MyCritic()))
        def test_my_critic(name, check):
            check()

    Parameters
    ----------
    critic : Critic
        Critic with its topics. For a plain callable, pass
        ``focuscrawl.critic.protocol.load_custom("module:callable", ["/Topic"])``.
    pages : Sequence[PageView]
        Pages to judge in addition to those of a small web and some malformed pages.
    """
    web = example_web()
    answers = [web.fetch(url) for url in web.urls()]
    ordinary = [parse_page(each.body, each.url) for each in answers[:12] if each is not None]
    strange = [
        parse_page(html.encode(), f"http://strange.example/{i}") for i, html in enumerate(_STRANGE)
    ]
    judged = [*pages, *ordinary, *strange]

    def run(check: Callable[[Critic, Sequence[PageView]], None]) -> None:
        check(critic, copy.deepcopy(judged))  # so a critic that changes pages fails one check only

    return [(check.__name__.removeprefix("_"), partial(run, check)) for check in _CRITIC_CHECKS]


def check_critic(critic: Critic, *, pages: Sequence[PageView] = ()) -> None:
    """Run all checks of `critic_checks`, with the same parameters.

    Raises
    ------
    AssertionError
        A check fails; a note names the check.
    """
    run_checks(critic_checks(critic, pages=pages), critic)


def _attributes_have_their_types(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check the types of `classes`, `marked`, `examples` and `fingerprint`."""
    assert isinstance(critic.classes, tuple)
    assert all(isinstance(name, str) and name for name in critic.classes)
    assert len(set(critic.classes)) == len(critic.classes)
    marked = np.asarray(critic.marked)
    assert marked.dtype == np.bool_
    assert marked.shape == (len(critic.classes),)
    assert isinstance(critic.examples, tuple)
    assert isinstance(critic.fingerprint, str)
    assert critic.fingerprint


def _relevance_is_a_probability(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that `relevance` is float64 (n,) in [0, 1] for any page."""
    relevance = critic.judge(pages).relevance
    assert relevance.dtype == np.float64
    assert relevance.shape == (len(pages),)
    assert ((relevance >= 0.0) & (relevance <= 1.0)).all()  # fails for NaN


def _probabilities_sum_to_one(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that `probabilities`, if any, are float64 (n, n_classes) that sum to 1."""
    probabilities = critic.judge(pages).probabilities
    if probabilities is None:
        return
    assert critic.classes, "the critic has probabilities but no classes"
    assert probabilities.dtype == np.float64
    assert probabilities.shape == (len(pages), len(critic.classes))
    assert (probabilities >= 0.0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)


def _batch_and_order_do_not_matter(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that a page has the same judgement alone, in a batch, and in any order."""
    together = critic.judge(pages)
    backwards = critic.judge([*reversed(pages)])
    _same(together, backwards, np.arange(len(pages))[::-1])
    for i, page in enumerate(pages):
        _same(together, critic.judge([page]), np.array([i]))


def _empty_batch_is_accepted(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that an empty batch of pages has an empty judgement."""
    judgement = critic.judge([])
    assert judgement.relevance.shape == (0,)
    assert judgement.probabilities is None or len(judgement.probabilities) == 0


def _judgements_can_be_repeated(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that judging the same pages again gives bit-identical results."""
    one, other = critic.judge(pages), critic.judge(pages)
    np.testing.assert_array_equal(one.relevance, other.relevance)
    if one.probabilities is not None and other.probabilities is not None:
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


def _pages_are_not_modified(critic: Critic, pages: Sequence[PageView]) -> None:
    """Check that judging does not modify the pages, which other components also read."""
    mine = copy.deepcopy([*pages])
    critic.judge(mine)
    for page, before in zip(mine, pages, strict=True):
        for of in ("tokens", "title", "headings"):
            assert getattr(page, of) == getattr(before, of)
        assert page.links.urls == before.links.urls
        assert page.links.anchors == before.links.anchors
        np.testing.assert_array_equal(page.token_leaf, before.token_leaf)


def _same(together: Judgement, other: Judgement, at: Ints) -> None:
    """Assert that `other` equals the judgements of `together` at the indices `at`."""
    np.testing.assert_allclose(other.relevance, together.relevance[at], atol=_PRECISION)
    assert (together.probabilities is None) == (other.probabilities is None)
    if together.probabilities is not None and other.probabilities is not None:
        expected = together.probabilities[at]
        np.testing.assert_allclose(other.probabilities, expected, atol=_PRECISION)


_CRITIC_CHECKS: Sequence[Callable[[Critic, Sequence[PageView]], None]] = (
    _attributes_have_their_types,
    _relevance_is_a_probability,
    _probabilities_sum_to_one,
    _batch_and_order_do_not_matter,
    _empty_batch_is_accepted,
    _judgements_can_be_repeated,
    _pages_are_not_modified,
)
