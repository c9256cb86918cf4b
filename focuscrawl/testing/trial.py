"""A strategy on trial, for the checks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.strategies import Strategy, StrategyContext
from focuscrawl.testing.rehearsal import Rehearsal

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.strategies import Scores
    from focuscrawl.webs.protocol import Web

    Factory = Callable[[StrategyContext], Strategy]

FETCHES = 60
PRECISION = 1e-9


class Trial:
    """A strategy on trial, and what it crawls."""

    def __init__(self, make: Factory, critic: Critic, web: Web, seeds: list[str]) -> None:
        self.make, self.critic, self.web, self.seeds = make, critic, web, seeds

    def strategy(self, random_state: int = 0) -> Strategy:
        """Make the strategy."""
        topics = tuple(
            name for name, on in zip(self.critic.classes, self.critic.marked, strict=True) if on
        )
        strategy = self.make(StrategyContext(self.critic, random_state, self.web, topics))
        assert isinstance(strategy, Strategy), f"{strategy!r} is no focuscrawl.strategies.Strategy"
        return strategy

    def begin(self, **how: Any) -> Rehearsal:
        """Begin a crawl with a strategy of its own."""
        return Rehearsal(self.strategy(), self.web, self.seeds, critic=self.critic, **how)

    def crawled(self, **how: Any) -> Rehearsal:
        """Crawl as many pages as a trial takes."""
        return self.begin(**how).run(FETCHES)


def same_scores(left: Scores, right: Scores) -> None:
    """Check that the same URLs have the same scores."""
    for (urls, scores), name in ((left, "left"), (right, "right")):
        assert len(urls) == len(scores), name
    np.testing.assert_equal(by_url(left), by_url(right))


def by_url(given: Scores) -> dict[int, float]:
    """Return scores by URL."""
    urls, scores = given
    return dict(zip(urls.tolist(), scores.tolist(), strict=True))
