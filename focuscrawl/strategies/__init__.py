"""Ways of ordering the frontier: one file each, behind one base, found by name.

A `Strategy` scores links and the URLs they lead to; most do it with a score for each link and an
evidence rule that makes one score of all links into a URL (`LinkStrategy`). None touches the
frontier or the store. A package of your own adds a strategy by an entry
point in the group ``focuscrawl.strategies``; `focuscrawl.testing` checks it.
"""

from focuscrawl.strategies.base import (
    Expansion,
    JudgedPage,
    ModelUpdate,
    Scores,
    StoredPage,
    Strategy,
    StrategyContext,
)
from focuscrawl.strategies.baselines import Evidence, First, LinkStrategy, Maximum
from focuscrawl.strategies.registry import find_strategy, make_strategy, strategy_names

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
