"""Tests for users' own strategies and critics, and a web in memory to crawl in tests.

`strategy_checks` and `critic_checks` check what every strategy and every critic has to guarantee.
`TinyWeb` is a few pages in memory, which `crawl` crawls with the real loop; `Rehearsal` is the
part of the loop that a strategy sees. pytest is not needed: checks are plain callables that raise
`AssertionError`.
"""

from focuscrawl.testing.critic_checks import check_critic, critic_checks
from focuscrawl.testing.rehearsal import Rehearsal
from focuscrawl.testing.strategy_checks import check_strategy, strategy_checks
from focuscrawl.testing.tiny_web import KeywordCritic, TinyWeb, crawl, new_crawl, step

__all__ = [
    "KeywordCritic",
    "Rehearsal",
    "TinyWeb",
    "check_critic",
    "check_strategy",
    "crawl",
    "critic_checks",
    "new_crawl",
    "step",
    "strategy_checks",
]
