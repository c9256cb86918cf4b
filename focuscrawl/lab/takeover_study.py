"""The crawl of [A02] section 3.7: the apprentice takes over from the baseline half-way."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.crawl import Crawl, CrawlFolder, CrawlPlan
from focuscrawl.crawl.assembly import parts_of
from focuscrawl.crawl.restore import restore
from focuscrawl.critic import load_critic
from focuscrawl.frontier import Frontier
from focuscrawl.lab.replay import replay
from focuscrawl.lab.takeover_strategy import TakeoverStrategy
from focuscrawl.report.measures import load_pages
from focuscrawl.strategies import StrategyContext
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.lab.topic_tasks import Task

_KEPT = ["seq", "url", "host", "relevance", "depth", "score", "outcome"]
_BINS = 10  # of the histograms of priorities


def take_over(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic best-first for half of the budget, then as the apprentice sees fit.

    Returns
    -------
    ``fetches``, one row a fetch; ``after_switch`` tells the halves apart. ``priorities``, one row
    a tenth of [0, 1], named by where it begins (``score``): how many URLs of the frontier have
    such a score ``before`` and ``after`` the switch, R(u) and the apprentice's.
    """
    at = max(task.budget // 2, 1)
    web, critic = open_web(task.recording), load_critic(task.critic, task.topic)
    strategy = TakeoverStrategy(StrategyContext(critic, 0, web), at=at)
    plan = CrawlPlan(
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
            plan=plan,
        )
        crawl.parts = parts_of(crawl)
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
