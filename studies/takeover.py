"""The crawl of [A02] section 3.7: the apprentice takes over from the baseline half-way."""

from __future__ import annotations

import tempfile
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
    from collections.abc import Mapping

    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.strategies import JudgedPage, ModelUpdate
    from studies.topic_tasks import Task


_KEPT = ["seq", "url", "host", "relevance", "depth", "score", "outcome"]
_BINS = 10  # of the histograms of priorities
#: over what the baseline has brought: as many as when learning from a crawl that is over
_PASSES = 5
#: the paper's own apprentice: naive Bayes on counts of the words around each link
OF_PAPER = {
    "learner": "nb",
    "groups": ("context", "relevance"),
    "evidence": "first",
    "tunnel": False,
    "counts": True,
    "tokens": 0,
    "links_into": 0,
}


def take_over(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic best-first for half of the budget, then as the apprentice sees fit.

    Once with our apprentice, which learns on after the switch, and once with the paper's, which
    has learned by then.

    Returns
    -------
    ``fetches``, one row a fetch; ``after_switch`` tells the halves apart. ``priorities``, one row
    a tenth of [0, 1], named by where it begins (``score``): how many URLs of the frontier have
    such a score ``before`` and ``after`` the switch, R(u) and the apprentice's. ``paper_fetches``
    and ``paper_priorities``: the same with the paper's apprentice.
    """
    ours, theirs = _taken_over(task, {}), _taken_over(task, OF_PAPER, once=True)
    return ours | {f"paper_{name}": table for name, table in theirs.items()}


def _taken_over(
    task: Task, options: Mapping[str, Any], *, once: bool = False
) -> dict[str, pd.DataFrame]:
    """Crawl with an apprentice of these `options`; returns ``fetches`` and ``priorities``."""
    at = max(task.budget // 2, 1)
    web, critic = open_web(task.recording), load_critic(task.critic, task.topic)
    strategy = TakeoverStrategy(StrategyContext(critic, 0, web), at=at, once=once, **options)
    plan = CrawlConfig(
        topic=task.topic,
        budget=task.budget,
        web=task.recording,
        limits=False,
        near_duplicates=False,
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
    """Orders the frontier by R(u) while the apprentice looks on, then by what it has learned.

    Parameters
    ----------
    at : fetches of the baseline; after them the apprentice is trained, the whole frontier is
        scored by it, and it learns on as ever
    once : it does not
    options : see `ApprenticeStrategy`

    Attributes
    ----------
    before, after : float64 (n,), scores of the URLs waiting at the switch, by R(u) and by the
        apprentice; None until then
    """

    def __init__(
        self, context: StrategyContext, *, at: int, once: bool = False, **options: Any
    ) -> None:
        super().__init__(context, **options)
        self.lag = 0  # the lesson at the switch is several
        self._at = at
        self._once = once
        self._seen = 0
        self._baseline = Maximum()
        self._scores: dict[int, float] = {}
        self.before: Floats | None = None
        self.after: Floats | None = None

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Count the fetches, and have the apprentice look on."""
        self._seen += 1
        super().observe(url, relevance, duplicate_of)

    def expand(self, page: JudgedPage) -> Expansion:
        """Score by R(u), later as the apprentice does; it takes note of the links either way."""
        expansion = super().expand(page)
        if self.model_version:
            return expansion
        scores = np.full(len(page.targets), page.relevance)
        urls, best = self._baseline.add(page.targets, scores)
        self._scores.update(zip(urls.tolist(), best.tolist(), strict=True))
        return Expansion(scores, urls, best, memo=expansion.memo)

    def is_training_due(self) -> bool:
        """Tell whether it is time to switch, or a batch is complete after that."""
        if self._once and self.before is not None:
            return False
        return self._seen >= self._at and super().is_training_due()

    def learn(self) -> ModelUpdate:
        """Learn; at the switch until there is not much more to be learned."""
        if self.before is None:
            for _ in range(_PASSES - 1):
                # nobody is scoring meanwhile: a replay waits for lessons
                self._apprentice.adopt(self._apprentice.learn())
            lesson = super().learn()
            self.before = np.array([self._scores.get(url, 0.0) for url in lesson.urls.tolist()])
            self.after = lesson.scores.copy()
            return lesson
        return super().learn()
