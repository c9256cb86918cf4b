"""Tests for users' own strategies and critics, and a web in memory for test crawls.

The functions `strategy_checks` and `critic_checks` return the checks that every strategy and every
critic must pass. The class `TinyWeb` holds pages in memory, and the function `crawl` crawls a
`TinyWeb` as a real crawl does. The class `SimulatedCrawl` runs only the part of a crawl that a
strategy sees. Checks are plain callables that raise `AssertionError` and do not need pytest.
"""

from focuscrawl.testing.checks import (
    check_critic,
    check_strategy,
    critic_checks,
    strategy_checks,
)
from focuscrawl.testing.simulated_crawl import SimulatedCrawl
from focuscrawl.testing.tiny_web import KeywordCritic, TinyWeb, crawl, new_crawl, step

__all__ = [
    "KeywordCritic",
    "SimulatedCrawl",
    "TinyWeb",
    "check_critic",
    "check_strategy",
    "crawl",
    "critic_checks",
    "new_crawl",
    "step",
    "strategy_checks",
]
