"""Crawl strategies: each orders the frontier by scores of links and URLs.

Most strategies are subclasses of `LinkStrategy`, which scores each link, and combines the scores
of all links to a URL by a rule. Strategies do not access the frontier or the store. Other packages
can add a strategy by an entry point in the group ``focuscrawl.strategies``, and test the strategy
with `focuscrawl.testing`.
"""

from focuscrawl.strategies.base import (
    Expansion,
    JudgedPage,
    ModelUpdate,
    Scores,
    StoredPage,
    Strategy,
    StrategyContext,
    find_strategy,
    make_strategy,
    strategy_names,
)
from focuscrawl.strategies.baselines import Evidence, First, LinkStrategy, Maximum

__all__ = [
    "Evidence",
    "Expansion",
    "First",
    "JudgedPage",
    "LinkStrategy",
    "Maximum",
    "ModelUpdate",
    "Scores",
    "StoredPage",
    "Strategy",
    "StrategyContext",
    "find_strategy",
    "make_strategy",
    "strategy_names",
]
