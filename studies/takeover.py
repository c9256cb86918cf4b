"""Crawls in which the apprentice takes over from the baseline half-way [A02 section 3.7]."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from focuscrawl.crawl import Crawl, CrawlConfig, CrawlFolder
from focuscrawl.crawl.assembly import build_parts
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.state import restore
from focuscrawl.critic import load_critic
from focuscrawl.frontier import Frontier
from focuscrawl.report.measures import load_pages
from focuscrawl.strategies import Expansion, Maximum, StrategyContext
from focuscrawl.strategies.apprentice_strategy import ApprenticeStrategy
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies import JudgedPage, ModelUpdate
    from studies.topic_tasks import Task


_KEPT = ["seq", "url", "host", "relevance", "depth", "score", "outcome"]
_BINS = 10  # bins of the histograms of priorities
#: passes over the baseline's fetches, as many as in training on a finished crawl
_PASSES = 5
#: the paper's apprentice: naive Bayes on counts of the words around each link
OF_PAPER = {
    "learner": "nb",
    "buckets": "equal",
    "groups": ("context", "relevance"),
    "evidence": "first",
    "tunnel": False,
    "graded": False,
    "counts": True,
    "tokens": 0,
    "links_into": 0,
}


def take_over(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic best-first for half of the budget, then by the apprentice.

    One crawl uses the default apprentice, which continues training after the switch. Another crawl
    uses the paper's apprentice, trained only at the switch.

    Returns
    -------
    dict[str, pd.DataFrame]
        ``fetches`` has a row for each fetch; ``after_switch`` marks the second half.
        ``priorities`` has the histogram of the frontier's scores ``before`` (R(u)) and ``after``
        the switch (the apprentice's), by the lower end of each bin (``score``). ``paper_fetches``
        and ``paper_priorities`` are those of the paper's apprentice.
    """
    ours, theirs = _taken_over(task, {}), _taken_over(task, OF_PAPER, once=True)
    return ours | {f"paper_{name}": table for name, table in theirs.items()}


def _taken_over(
    task: Task, options: Mapping[str, Any], *, once: bool = False
) -> dict[str, pd.DataFrame]:
    """Crawl with an apprentice; return ``fetches`` and ``priorities``."""
    at = max(task.budget // 2, 1)
    web, critic = open_web(task.recording), load_critic(task.critic, task.topic)
    strategy = TakeoverStrategy(StrategyContext(critic, 0, web), at=at, once=once, **options)
    plan = CrawlConfig(
        topic=task.topic,
        budget=task.budget,
        web=task.recording,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = CrawlFolder(Path(name))
        crawl = Crawl(
            critic=critic,
            strategy=strategy,
            frontier=Frontier(plan.per_host, plan.delay),
            store=folder.open_store({"topic": task.topic}, {}),
            folder=folder,
            web=web,
            config=plan,
        )
        crawl.parts = build_parts(crawl)
        restore(crawl)
        crawl.start(task.seeds)
        replay(crawl)
        pages = load_pages(name).reset_index()[_KEPT]
    none = np.zeros(0)
    counts = {
        name: np.histogram(none if scores is None else scores, _BINS, (0.0, 1.0))[0]
        for name, scores in (("before", strategy.before), ("after", strategy.after))
    }
    return {
        "fetches": pages.assign(after_switch=pages["seq"] > at),
        "priorities": pd.DataFrame({"score": np.arange(_BINS) / _BINS, **counts}),
    }


class TakeoverStrategy(ApprenticeStrategy):
    """Orders the frontier by R(u) before the switch, and by the apprentice's scores after it.

    Parameters
    ----------
    at : int
        Fetches before the switch. At the switch the apprentice is trained and scores the whole
        frontier.
    once : bool
        Train only at the switch.
    options : Any
        See `ApprenticeStrategy`.

    Attributes
    ----------
    before, after : NDArray[np.float64] or None
        Scores of the queued URLs at the switch by R(u) and by the apprentice; None before.
    """

    def __init__(
        self, context: StrategyContext, *, at: int, once: bool = False, **options: Any
    ) -> None:
        super().__init__(context, **options)
        self.lag = 0  # the training at the switch takes several passes
        self._at = at
        self._once = once
        self._seen = 0
        self._baseline = Maximum()
        self._scores: dict[int, float] = {}
        self.before: Floats | None = None
        self.after: Floats | None = None

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Count fetches, and record them for the apprentice."""
        self._seen += 1
        super().observe(url, relevance, duplicate_of)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score by R(u) before the switch, then by the apprentice; record the links."""
        expansion = super().expand(page)
        if self.model_version:
            return expansion
        scores = np.full(len(page.targets), page.relevance)
        urls, best = self._baseline.add(page.targets, scores)
        self._scores.update(zip(urls.tolist(), best.tolist(), strict=True))
        return Expansion(scores, urls, best, memo=expansion.memo)

    def is_training_due(self) -> bool:
        """Tell whether to switch, or whether a training is due after the switch."""
        if self._once and self.before is not None:
            return False
        return self._seen >= self._at and super().is_training_due()

    def learn(self) -> ModelUpdate:
        """Train; at the switch repeat until the model has nearly converged."""
        if self.before is None:
            for _ in range(_PASSES - 1):
                # no links are scored meanwhile, since a replay waits for the training
                self._apprentice.adopt(self._apprentice.learn())
            lesson = super().learn()
            self.before = np.array([self._scores.get(url, 0.0) for url in lesson.urls.tolist()])
            self.after = lesson.scores.copy()
            return lesson
        return super().learn()
