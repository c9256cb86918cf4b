"""A simulated crawl in memory, reduced to the part that a strategy sees, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage, StoredPage, Strategy, StrategyContext

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.page import PageView
    from focuscrawl.strategies import Expansion, ModelUpdate, Scores
    from focuscrawl.webs.web_protocol import Web

    Factory = Callable[[StrategyContext], Strategy]

FETCHES = 60
PRECISION = 1e-9


class FetchOutcome(NamedTuple):
    """The outcome of a fetch in a simulated crawl, with the data that a store would contain."""

    url: int  # id
    relevance: float  # 0 for a duplicate
    duplicate_of: int | None  # id of the earlier page with the same body
    page: StoredPage | None  # None for a duplicate


class SimulatedCrawl:
    """Simulates a crawl of a web in memory, with training in the same thread.

    URLs are fetched in the order of a real crawl, but without host queues, limits, redirects or a
    store. So tests can interrupt the simulated crawl at any fetch and examine all results of the
    strategy. All arrays that the simulated crawl passes to the strategy are read-only.

    Parameters
    ----------
    strategy : Strategy
        A new strategy.
    web, seeds, critic : Web, Sequence[str], Critic
        Web to crawl, URLs of the web to start from, and critic.
    lag : int or None
        Fetches from the start of a training to the use of the model; the strategy's by default.
    train_late : bool
        Train when the model is used, not at the start.
    trains : bool
        False never trains the strategy.

    Attributes
    ----------
    urls : list[str]
        Known URLs, by id.
    queue : dict[int, float]
        Score of each queued URL, by id; ``inf`` for seeds.
    outcomes : list[FetchOutcome]
        All fetches in order.
    expansions : dict[int, Expansion]
        Results of `Strategy.expand` in this run, by id of the page's URL.
    updates : list[ModelUpdate]
        Models used in this run.
    """

    def __init__(
        self,
        strategy: Strategy,
        web: Web,
        seeds: Sequence[str],
        *,
        critic: Critic,
        lag: int | None = None,
        train_late: bool = False,
        trains: bool = True,
    ) -> None:
        self.strategy, self.web, self.critic = strategy, web, critic
        self.lag = strategy.lag if lag is None else lag
        self.train_late = train_late
        self._trains = strategy.learns and trains
        self.urls: list[str] = []
        self.queue: dict[int, float] = {}
        self.outcomes: list[FetchOutcome] = []
        self.expansions: dict[int, Expansion] = {}
        self.updates: list[ModelUpdate] = []
        self._url_ids: dict[str, int] = {}
        self._found: dict[int, tuple[int, int | None]] = {}  # depth and referrer
        self._bodies: dict[bytes, int] = {}
        self._state: tuple[bytes, int] | None = (
            None  # last model, and the fetches it is trained on
        )
        self._update: ModelUpdate | None = None
        self._started_at: int | None = None
        self._seeds = list(seeds)
        for seed in self._seeds:
            (known,) = web.resolve([seed])
            if known is None:
                raise ValueError(f"{seed!r} is not a URL of the web")
            number = self._url_id(known, 0, None)
            self.queue[number] = np.inf

    @property
    def order(self) -> list[str]:
        """All fetched URLs in the order of the fetches."""
        return [self.urls[each.url] for each in self.outcomes]

    @property
    def scores(self) -> dict[str, float]:
        """A dict from each queued URL to its current score."""
        return {self.urls[number]: score for number, score in self.queue.items()}

    def run(self, fetches: int) -> Self:
        """Fetch up to `fetches` pages."""
        for _ in range(fetches):
            queued = [url for url, score in self.queue.items() if score > -np.inf]
            if not queued:
                break
            self.fetch(min(queued, key=lambda url: (-self.queue[url], url)))
            self._learn()
        return self

    def resumed(self, strategy: Strategy) -> SimulatedCrawl:
        """Return a simulated crawl that resumes the current crawl with a new strategy object."""
        again = SimulatedCrawl(
            strategy,
            self.web,
            self._seeds,
            critic=self.critic,
            lag=self.lag,
            train_late=self.train_late,
        )
        again.urls, again._url_ids = self.urls.copy(), self._url_ids.copy()
        again._found, again._bodies = self._found.copy(), self._bodies.copy()
        again._state = self._state
        learned_at = 0
        if self._state is not None:
            state, started_at = self._state
            adopted_at = strategy.load(state)
            learned_at = started_at if adopted_at is None else adopted_at
        for seq, outcome in enumerate(self.outcomes, start=1):
            again.queue.pop(outcome.url, None)
            again.outcomes.append(outcome)
            strategy.observe(outcome.url, outcome.relevance, outcome.duplicate_of)
            page = outcome.page
            if page is not None and (len(page.targets) or page.memo is not None):
                scores = strategy.restore_page(page)
                if seq > learned_at:
                    again._update_queue(scores)
            if seq == learned_at:
                again._update_queue(strategy.rescore())
            if seq >= learned_at:
                again._learn()
        return again

    def fetch(self, number: int) -> None:
        """Fetch a queued URL, and pass the outcome and the page to the strategy."""
        del self.queue[number]
        answer = self.web.fetch(self.urls[number])
        assert answer is not None
        first = self._bodies.setdefault(answer.body, number)
        if first != number:
            self.strategy.observe(number, 0.0, first)
            self.outcomes.append(FetchOutcome(number, 0.0, first, None))
            return
        view = _parse_page(answer.body, self.urls[number])
        judged = self.critic.judge([view])
        relevance = float(judged.relevance[0])
        probabilities = None if judged.probabilities is None else judged.probabilities[0].copy()
        depth, referrer = self._found[number]
        resolved = self.web.resolve(view.links.urls)
        links = [i for i, url in enumerate(resolved) if url is not None]
        targets = [self._url_id(url, depth + 1, number) for url in resolved if url is not None]
        page = JudgedPage(
            view=view,
            url=number,
            seq=len(self.outcomes) + 1,
            depth=depth,
            relevance=relevance,
            probabilities=None if probabilities is None else _read_only(probabilities),
            links=_read_only(np.array(links, np.int64)),
            targets=_read_only(np.array(targets, np.int64)),
            referrer=referrer,
        )
        self.strategy.observe(number, relevance, None)
        expansion = self.strategy.expand(page)
        self.expansions[number] = expansion
        link_scores = np.array(expansion.link_scores, np.float64)
        recalled = StoredPage(
            number, page.seq, relevance, page.targets, _read_only(link_scores), expansion.memo
        )
        self.outcomes.append(FetchOutcome(number, relevance, None, recalled))
        self._update_queue((expansion.urls, expansion.scores))

    def _url_id(self, url: str, depth: int, referrer: int | None) -> int:
        if url not in self._url_ids:
            self._url_ids[url] = number = len(self.urls)
            self.urls.append(url)
            self._found[number] = depth, referrer
        return self._url_ids[url]

    def _learn(self) -> None:
        """Start a training if one is due, and use the new model after the lag."""
        if not self._trains:
            return
        fetched = len(self.outcomes)
        if self._started_at is None and self.strategy.is_training_due():
            self._started_at = fetched
            self._update = None if self.train_late else self.strategy.learn()
        if self._started_at is not None and fetched >= self._started_at + self.lag:
            update = self.strategy.learn() if self._update is None else self._update
            self._started_at = self._update = None
            self._update_queue((update.urls, update.scores))
            self._update_queue(self.strategy.adopt(update))
            self._state = update.state, update.trained_at_seq
            self.updates.append(update)

    def _update_queue(self, given: Scores) -> None:
        urls, scores = given
        done = {each.url for each in self.outcomes}
        for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
            if url not in done and self.queue.get(url) != np.inf:
                self.queue[url] = score


@lru_cache(maxsize=256)
def _parse_page(body: bytes, url: str) -> PageView:
    """Parse a page only once for all crawls, because strategies must not change pages."""
    return parse_page(body, url)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class StrategyUnderTest:
    """A strategy to be tested, with a critic and a web for test crawls."""

    make: Factory
    critic: Critic
    web: Web
    seeds: list[str]

    def strategy(self) -> Strategy:
        """Create the strategy."""
        marked = zip(self.critic.classes, self.critic.marked, strict=True)
        topics = tuple(name for name, on in marked if on)
        strategy = self.make(StrategyContext(self.critic, 0, self.web, topics))
        assert isinstance(strategy, Strategy), f"{strategy!r} is not a focuscrawl Strategy"
        return strategy

    def start_crawl(self, **how: Any) -> SimulatedCrawl:
        """Return a new simulated crawl with a new strategy object."""
        return SimulatedCrawl(self.strategy(), self.web, self.seeds, critic=self.critic, **how)

    def run_crawl(self, **how: Any) -> SimulatedCrawl:
        """Start a crawl, and fetch `FETCHES` pages."""
        return self.start_crawl(**how).run(FETCHES)

    @cached_property
    def shared_crawl(self) -> SimulatedCrawl:
        """A finished crawl, shared by all checks that do not change the crawl."""
        return self.run_crawl()

    @cached_property
    def without_training(self) -> SimulatedCrawl:
        """A finished crawl without training, shared by all checks that do not change the crawl."""
        return self.run_crawl(trains=False)


def assert_same_scores(left: Scores, right: Scores) -> None:
    """Assert that `left` and `right` contain the same URLs with the same scores."""
    for (urls, scores), name in ((left, "left"), (right, "right")):
        assert len(urls) == len(scores), name
    np.testing.assert_equal(by_url(left), by_url(right))


def by_url(given: Scores) -> dict[int, float]:
    """Return scores by URL."""
    urls, scores = given
    return dict(zip(urls.tolist(), scores.tolist(), strict=True))
