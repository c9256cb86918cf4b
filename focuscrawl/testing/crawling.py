"""The real loop over a web in memory, in this process and without Scrapy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from focuscrawl.crawl import Crawl, CrawlFolder, CrawlPlan
from focuscrawl.crawl.assembly import parts_of
from focuscrawl.crawl.replay import NOW, answer_of, visit
from focuscrawl.crawl.restore import restore
from focuscrawl.frontier import Frontier
from focuscrawl.strategies import StrategyContext, make_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from focuscrawl.crawl import Visit
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.strategies import Strategy
    from focuscrawl.webs.protocol import Web


def new_crawl(
    folder: Path,
    web: Web | None,
    seeds: Sequence[str],
    *,
    critic: Critic,
    strategy: str | Callable[[StrategyContext], Strategy] = "best-first",
    **plan: Any,
) -> Crawl:
    """Open a crawl of `web`, new or resumed, to be gone through with `step`.

    Parameters
    ----------
    folder : where the crawl is kept
    web : None: a live crawl, whose pages somebody else fetches
    seeds : normalised URLs
    strategy : name of an installed one, or what makes one
    plan : further attributes of `focuscrawl.crawl.CrawlPlan`: ``budget=10``
    """
    name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", "own")
    given = CrawlPlan(**{"topic": critic.classes[0], "closed": True, "strategy": name, **plan})
    context = StrategyContext(critic, given.random_state, web, given.topics)
    kept = CrawlFolder(folder)
    crawl = Crawl(
        critic=critic,
        strategy=strategy(context)
        if callable(strategy)
        else make_strategy(strategy, context, given.options),
        frontier=Frontier(given.per_host, given.delay),
        store=kept.open_store({"strategy": name}, {}),
        folder=kept,
        web=web,
        plan=given,
    )
    crawl.parts = parts_of(crawl)
    restore(crawl)
    crawl.start(list(seeds))
    return crawl


def step(crawl: Crawl) -> Visit | None:
    """Fetch and judge the next page; None if nothing is left, or the budget is spent."""
    while True:
        fetch = crawl.next(NOW)
        if fetch is not None:
            return visit(crawl, fetch, answer_of(crawl, fetch))
        if not crawl.pausing:
            return None
        time.sleep(crawl.pause)  # for a lesson, or the store


def crawl(
    folder: Path,
    web: Web,
    seeds: Sequence[str],
    *,
    critic: Critic,
    strategy: str | Callable[[StrategyContext], Strategy] = "best-first",
    **plan: Any,
) -> list[Visit]:
    """Crawl `web` until nothing is left or the budget is spent; return what was fetched.

    Parameters as for `new_crawl`. A second call with the same folder goes on with the crawl.
    """
    opened = new_crawl(folder, web, seeds, critic=critic, strategy=strategy, **plan)
    visits = list(iter(lambda: step(opened), None))
    opened.close(opened.stop_reason or "frontier_empty")
    return visits
