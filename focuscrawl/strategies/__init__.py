"""Ways of ordering the frontier: one file each, behind one protocol, found by name.

A strategy scores links and the URLs they lead to; most do it with a score for each link and an
evidence rule that makes one score of all links into a URL (`LinkStrategy`). None touches the
frontier or the store. A package of your own adds a strategy by an entry
point in the group ``focuscrawl.strategies``.
"""

from focuscrawl.strategies.evidence import Evidence, First, Maximum
from focuscrawl.strategies.link_strategy import LinkStrategy
from focuscrawl.strategies.protocol import (
    Expansion,
    JudgedPage,
    LearningStrategy,
    Lesson,
    RecalledPage,
    Strategy,
    StrategyContext,
)
from focuscrawl.strategies.registry import find_strategy, make_strategy, strategy_names

__all__ = [
    "Evidence",
    "Expansion",
    "First",
    "JudgedPage",
    "LearningStrategy",
    "Lesson",
    "LinkStrategy",
    "Maximum",
    "RecalledPage",
    "Strategy",
    "StrategyContext",
    "find_strategy",
    "make_strategy",
    "strategy_names",
]
