"""Ways of ordering the frontier: one file each, behind one protocol, found by name.

A strategy scores the links of a page; an evidence rule makes one score of all links into a
URL. Neither touches the frontier or the store. A package of your own adds a strategy by an entry
point in the group ``focuscrawl.strategies``.
"""

from focuscrawl.strategies.evidence import Evidence, First, Maximum
from focuscrawl.strategies.protocol import JudgedPage, Strategy, StrategyContext
from focuscrawl.strategies.registry import find_strategy, strategy_names

__all__ = [
    "Evidence",
    "First",
    "JudgedPage",
    "Maximum",
    "Strategy",
    "StrategyContext",
    "find_strategy",
    "strategy_names",
]
