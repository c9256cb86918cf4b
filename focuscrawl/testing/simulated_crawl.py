"""What the loop of a crawl asks of a strategy, in memory; a strategy under test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage, StoredPage, Strategy, StrategyContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from focuscrawl.critic.protocol import Critic
    from focuscrawl.strategies import Expansion, ModelUpdate, Scores
    from focuscrawl.webs.web_protocol import Web

    Factory = Callable[[StrategyContext], Strategy]

FETCHES = 60
PRECISION = 1e-9


class FetchOutcome(NamedTuple):
    """A fetch as the store would keep it.

    Attributes
    ----------
    url : its number
    relevance : 0 for a duplicate
    duplicate_of : number of the earlier page with the same body
    page : as it was expanded; None if it was not
    """

    url: int
    relevance: float
    duplicate_of: int | None
    page: StoredPage | None


class SimulatedCrawl:
    """A crawl of a web in memory as a strategy sees it; lessons are learned in this thread.

    It fetches in the order of the real loop, without hosts, limits, redirects or a store. So it
    can be interrupted anywhere, and all that the strategy has returned can be examined. Arrays
    that the strategy gets cannot be written to.

    Parameters
    ----------
    strategy : a new one
    web, seeds, critic : what is crawled; seeds are URLs of the web
    lag : fetches from the start of a lesson until it is adopted; None: the strategy's own
    late : learn at the end of that time instead of at its start
    lessons : False: no lessons

    Attributes
    ----------
    urls : all that are known, by number
    queue : scores of the URLs that wait, by number; ``inf`` for seeds
    outcomes : of all fetches, in their order
    expansions : what the strategy returned for those fetched here, by number of the URL
    lessons : those adopted here
    """

    def __init__(
        self,
        strategy: Strategy,
        web: Web,
        seeds: Sequence[str],
        *,
        critic: Critic,
        lag: int | None = None,
        late: bool = False,
        lessons: bool = True,
    ) -> None:
        self.strategy, self.web, self.critic = strategy, web, critic
        self.lag = strategy.lag if lag is None else lag
        self.late = late
        self._learns = strategy.learns and lessons
        self.urls: list[str] = []
        self.queue: dict[int, float] = {}
        self.outcomes: list[FetchOutcome] = []
        self.expansions: dict[int, Expansion] = {}
        self.lessons: list[ModelUpdate] = []
        self._url_ids: dict[str, int] = {}
        self._found: dict[int, tuple[int, int | None]] = {}  # depth and referrer
        self._bodies: dict[bytes, int] = {}
        self._state: tuple[bytes, int] | None = None  # of the last lesson, and when it started
        self._lesson: ModelUpdate | None = None
        self._started_at: int | None = None
        self._seeds = list(seeds)
        for seed in self._seeds:
            (known,) = web.resolve([seed])
            if known is None:
                raise ValueError(f"{seed!r} is no URL of the web")
            number = self._url_id(known, 0, None)
            self.queue[number] = np.inf

    @property
    def order(self) -> list[str]:
        """The URLs fetched, in their order."""
        return [self.urls[each.url] for each in self.outcomes]

    @property
    def scores(self) -> dict[str, float]:
        """The scores of what waits, by URL."""
        return {self.urls[number]: score for number, score in self.queue.items()}

    def run(self, fetches: int) -> Self:
        """Fetch so many pages, or all if there are fewer."""
        for _ in range(fetches):
            waiting = [url for url, score in self.queue.items() if score > -np.inf]
            if not waiting:
                break
            self.fetch(min(waiting, key=lambda url: (-self.queue[url], url)))
            self._learn()
        return self

    def resumed(self, strategy: Strategy) -> SimulatedCrawl:
        """Return this crawl as it is resumed, with a new strategy, if it is interrupted now."""
        again = SimulatedCrawl(
            strategy, self.web, self._seeds, critic=self.critic, lag=self.lag, late=self.late
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
        """Fetch a URL that waits; let the strategy observe it, and expand its page."""
        del self.queue[number]
        answer = self.web.fetch(self.urls[number])
        assert answer is not None
        first = self._bodies.setdefault(answer.body, number)
        if first != number:
            self.strategy.observe(number, 0.0, first)
            self.outcomes.append(FetchOutcome(number, 0.0, first, None))
            return
        view = parse_page(answer.body, self.urls[number])
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
        """Start a lesson if one is due, and adopt the one that was started when it is time."""
        if not self._learns:
            return
        fetched = len(self.outcomes)
        if self._started_at is None and self.strategy.is_training_due():
            self._started_at = fetched
            self._lesson = None if self.late else self.strategy.learn()
        if self._started_at is not None and fetched >= self._started_at + self.lag:
            lesson = self.strategy.learn() if self._lesson is None else self._lesson
            self._started_at = self._lesson = None
            self._update_queue((lesson.urls, lesson.scores))
            self._update_queue(self.strategy.adopt(lesson))
            self._state = lesson.state, lesson.trained_at_seq
            self.lessons.append(lesson)

    def _update_queue(self, given: Scores) -> None:
        urls, scores = given
        done = {each.url for each in self.outcomes}
        for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
            if url not in done and self.queue.get(url) != np.inf:
                self.queue[url] = score


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class StrategyUnderTest:
    """A strategy under test, and what it crawls."""

    make: Factory
    critic: Critic
    web: Web
    seeds: list[str]

    def strategy(self) -> Strategy:
        """Create the strategy."""
        marked = zip(self.critic.classes, self.critic.marked, strict=True)
        topics = tuple(name for name, on in marked if on)
        strategy = self.make(StrategyContext(self.critic, 0, self.web, topics))
        assert isinstance(strategy, Strategy), f"{strategy!r} is no focuscrawl.strategies.Strategy"
        return strategy

    def start_crawl(self, **how: Any) -> SimulatedCrawl:
        """Start a crawl with a new strategy; `how` is passed to `SimulatedCrawl`."""
        return SimulatedCrawl(self.strategy(), self.web, self.seeds, critic=self.critic, **how)

    def run_crawl(self, **how: Any) -> SimulatedCrawl:
        """Crawl `FETCHES` pages."""
        return self.start_crawl(**how).run(FETCHES)

    @cached_property
    def shared_crawl(self) -> SimulatedCrawl:
        """A crawl for checks that do not change it."""
        return self.run_crawl()

    @cached_property
    def without_lessons(self) -> SimulatedCrawl:
        """A crawl without lessons, for checks that do not change it."""
        return self.run_crawl(lessons=False)


def assert_same_scores(left: Scores, right: Scores) -> None:
    """Check that the same URLs have the same scores."""
    for (urls, scores), name in ((left, "left"), (right, "right")):
        assert len(urls) == len(scores), name
    np.testing.assert_equal(by_url(left), by_url(right))


def by_url(given: Scores) -> dict[int, float]:
    """Return scores by URL."""
    urls, scores = given
    return dict(zip(urls.tolist(), scores.tolist(), strict=True))
