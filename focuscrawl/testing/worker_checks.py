"""What strategies must hold to that several workers on one crawl can share."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.urls import host
from focuscrawl.strategies.base import latest
from focuscrawl.testing.trial import PRECISION, by_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.strategies import RecalledPage, Strategy
    from focuscrawl.testing.trial import Trial


def links_can_be_told_to_another_worker(trial: Trial) -> None:
    """Check that links in parts, and otherwise numbered, give URLs the same scores."""
    crawl = trial.crawled(lessons=False)
    if not crawl.strategy.shareable:
        return
    there = trial.strategy()
    number = np.argsort(np.random.default_rng(0).random(len(crawl.urls)))  # of each URL there
    for outcome in crawl.outcomes:
        there.hear(int(number[outcome.url]), outcome.relevance)
        page = outcome.page
        if page is None or not len(page.targets):
            continue
        parts = _parts(crawl.strategy, page, [host(url) for url in crawl.urls])
        told = [
            replace(part, url=int(number[part.url]), targets=number[part.targets])
            for part in parts
        ]
        urls, scores = there.recall_all(told)
        assert len(np.unique(urls)) == len(urls)
        expansion = crawl.expansions[outcome.url]
        here = by_url((number[expansion.urls], expansion.scores))
        for url, score in by_url((urls, scores)).items():
            if url in here:
                assert abs(score - here[url]) <= PRECISION
        assert set(here) <= set(urls.tolist())


def _parts(strategy: Strategy, page: RecalledPage, hosts: list[str]) -> list[RecalledPage]:
    """Cut a page up as for workers that have a host each."""
    names = np.array([hosts[target] for target in page.targets.tolist()])
    groups = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    memos = strategy.parts(page.memo, groups)
    return [
        replace(page, targets=page.targets[group], link_scores=page.link_scores[group], memo=memo)
        for group, memo in zip(groups, memos, strict=True)
    ]


def recall_all_is_recall_of_each(trial: Trial) -> None:
    """Check that `recall_all` scores the URLs that `recall` of each page does, each once."""
    crawl = trial.crawled(lessons=False)
    if not crawl.strategy.shareable:
        return
    pages = [each.page for each in crawl.outcomes if each.page is not None]
    pages = [page for page in pages if len(page.targets)]
    together, one_by_one = trial.strategy(), trial.strategy()
    for outcome in crawl.outcomes:
        together.hear(outcome.url, outcome.relevance)
        one_by_one.hear(outcome.url, outcome.relevance)
    left = together.recall_all(pages)
    right = latest([one_by_one.recall(page) for page in pages])
    assert len(np.unique(left[0])) == len(left[0])
    assert set(left[0].tolist()) == set(right[0].tolist())


def one_worker_trains_for_all(trial: Trial) -> None:
    """Check that what one worker hands in can be trained on, and taken up by others."""
    crawl = trial.crawled(lessons=False)
    strategy = crawl.strategy
    if not (strategy.learns and strategy.shareable):
        return
    assert strategy.period(0) > 0
    trainer, handed = trial.crawled().strategy, strategy.hand_in()
    assert handed is not None
    data, fetches = handed
    assert 0 < fetches <= len(crawl.outcomes)
    assert strategy.hand_in() is None, "nothing came since"
    pool = trainer.pool()
    pool.add(7, data)
    assert len(pool) > 0
    state, instances, metrics = trainer.train(pool)
    assert instances > 0
    json.dumps(metrics)
    others = [trial.crawled(lessons=False).strategy for _ in range(2)]
    found: list[dict[int, float]] = []
    for other in others:
        lesson = other.take_up(5, state, 60)
        assert lesson.version == 5
        found.append(by_url((lesson.urls, lesson.scores)))
        other.adopt(lesson)
        assert other.model_version == 5
    assert found[0] == found[1]
    assert not np.isnan([*found[0].values()]).any()


WORKER_CHECKS: Sequence[Callable[[Trial], None]] = (
    links_can_be_told_to_another_worker,
    recall_all_is_recall_of_each,
    one_worker_trains_for_all,
)
