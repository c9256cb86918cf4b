"""The base of strategies that re-score the whole frontier, and the history they look at."""

from __future__ import annotations

import struct
from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from focuscrawl.apprentice.hashing import ROWS, PackedRecord
from focuscrawl.apprentice.link_table import RowStore
from focuscrawl.foundation.arrays import Bools, Floats, GrowingArray, Ints
from focuscrawl.strategies.base import (
    ModelUpdate,
    Strategy,
    check_count,
    check_number,
    merge_scores,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from focuscrawl.apprentice.hashing import SparseRows
    from focuscrawl.strategies.base import Scores


@dataclass(frozen=True, slots=True)
class PathFeatures(PackedRecord):
    """What a learner of paths keeps of a page with n links.

    Attributes
    ----------
    targets : int64 (n,), numbers of the URLs the links lead to
    page : int32, hashed words of the page
    links : hashed words of each link
    """

    targets: Ints
    page: NDArray[np.int32]
    links: SparseRows

    TYPES: ClassVar[Mapping[str, str]] = {"targets": "<i8", "page": "<i4", "links": ROWS}


class LinkSnapshot(NamedTuple):
    """A crawl up to some moment; views, but for what can change.

    Attributes
    ----------
    relevance : float64 by URL, what a fetch has shown, NaN before
    source, target : int64 (n_links,), URLs at the ends of each link, in the order found
    page : int64 (n_links,), which of `pages` each link is on
    first : bool (n_links,), no earlier link of its page leads there
    pages : int64 (n_pages,), URLs of the pages with links, in the order fetched
    page_words, link_words : hashed words of each page and link
    """

    relevance: Floats
    source: Ints
    target: Ints
    page: Ints
    first: Bools
    pages: Ints
    page_words: SparseRows
    link_words: SparseRows

    @property
    def queued(self) -> Ints:
        """The URLs that have links and were not fetched, int64 (m,), ascending."""
        linked = np.zeros(len(self.relevance), bool)
        linked[self.target] = True
        return np.flatnonzero(linked & np.isnan(self.relevance))


class LinkLog:
    """Fetches, pages and links in the order they came; what was taken in never moves."""

    def __init__(self) -> None:
        self._fetched = GrowingArray(np.int64)  # URL of each fetch
        self._outcome = GrowingArray(np.float64)  # and its relevance
        self._source = GrowingArray(np.int64)
        self._target = GrowingArray(np.int64)
        self._page = GrowingArray(np.int64)  # which of `_pages` each link is on
        self._pages = GrowingArray(np.int64)

    @property
    def n_fetches(self) -> int:
        """Fetches observed."""
        return len(self._fetched)

    @property
    def n_pages(self) -> int:
        """Pages taken in."""
        return len(self._pages)

    def observe(self, url: int, relevance: float) -> None:
        """Take in the outcome of a fetch."""
        self._outcome.extend([relevance])
        self._fetched.extend([url])

    def add_links(self, url: int, targets: Ints) -> None:
        """Take in a page numbered `url`, and the URLs it links to."""
        self._source.extend(np.full(len(targets), url))
        self._target.extend(targets)
        self._page.extend(np.full(len(targets), len(self._pages)))
        self._pages.extend([url])

    def count_links(self, pages: int) -> int:
        """Return how many links the first `pages` pages have."""
        return int(np.searchsorted(self._page.data, pages))

    def links(self, pages: int) -> tuple[Ints, Ints, Ints]:
        """Return source and target of the links of the first `pages` pages, and whose they are."""
        n = self.count_links(pages)
        return self._source.data[:n], self._target.data[:n], self._page.data[:n]

    def pages_since(self, pages: int) -> Iterator[tuple[int, Ints]]:
        """Iterate over the pages after the first `pages`: URL, and URLs linked to."""
        bounds = np.searchsorted(self._page.data, np.arange(pages, self.n_pages + 1)).tolist()
        for url, (start, end) in zip(
            self._pages.data[pages:].tolist(), pairwise(bounds), strict=True
        ):
            yield url, self._target.data[start:end]

    def relevance(self, observed: int, n_urls: int) -> Floats:
        """Return R of the first `observed` fetches by URL below `n_urls`, NaN of other URLs."""
        known = np.full(n_urls, np.nan)
        fetched, outcome = self._fetched.data[:observed], self._outcome.data[:observed]
        there = fetched < n_urls
        known[fetched[there]] = outcome[there]
        return known


class LinkHistory(LinkLog):
    """A `LinkLog` with the words of pages and links, for strategies that learn of paths."""

    def __init__(self) -> None:
        super().__init__()
        self._relevance = GrowingArray(np.float64, fill=np.nan)  # by URL
        self._first = GrowingArray(np.bool_)
        self._page_words = RowStore()
        self._link_words = RowStore()
        self.relevant = 0

    def observe(self, url: int, relevance: float) -> None:
        """Take in the outcome of a fetch."""
        super().observe(url, relevance)
        self._relevance.grow(url + 1)
        self._relevance.data[url] = relevance
        self.relevant += relevance > 0.5

    def add(self, url: int, features: PathFeatures) -> int:
        """Take in a page numbered `url`; return the number of its first link."""
        start = len(self._target)
        self._relevance.grow(int(features.targets.max(initial=url)) + 1)
        first = np.zeros(len(features.targets), bool)
        first[np.unique(features.targets, return_index=True)[1]] = True
        self._first.extend(first)
        self._link_words.extend(features.links)
        self._page_words.append(features.page)
        self.add_links(url, features.targets)
        return start

    def snapshot_at(self, observed: int, pages: int) -> LinkSnapshot:
        """Return what was known after so many fetches and pages; more may come meanwhile."""
        _, target, _ = self.links(pages)
        urls = (self._fetched.data[:observed], self._pages.data[:pages], target)
        n_urls = max(int(each.max(initial=-1)) for each in urls) + 1
        return self._until(len(target), pages, self.relevance(observed, n_urls))

    def latest_snapshot(self) -> LinkSnapshot:
        """Return all of it, for as long as nothing more is taken in."""
        return self._until(len(self._target), len(self._pages), self._relevance.data)

    def _until(self, n_links: int, pages: int, relevance: Floats) -> LinkSnapshot:
        return LinkSnapshot(
            relevance=relevance,
            source=self._source.data[:n_links],
            target=self._target.data[:n_links],
            page=self._page.data[:n_links],
            first=self._first.data[:n_links],
            pages=self._pages.data[:pages],
            page_words=self._page_words.rows(pages),
            link_words=self._link_words.rows(n_links),
        )


Model = TypeVar("Model")

_STATE = struct.Struct("<qqq")


class RescoringStrategy(Strategy, Generic[Model]):
    """A strategy whose model is a function of the pages taken in before the lesson.

    A resumed crawl needs no copy of the model: it takes in the same pages and works it out again.
    So a subclass must take in a page only if the crawl will recall it: one with links, or one for
    which `expand` returns a memo.

    Parameters
    ----------
    name : of the strategy, for messages
    every, growth : fetches from one lesson to the next, at least and as a share of all fetches
    log : empty

    Attributes
    ----------
    log : the fetches, and the pages taken in
    before_lesson : True in a resumed crawl until the last lesson is repeated: scores do not
        matter until then
    """

    learns = True
    #: how users name the option `every`
    period_option: ClassVar[str] = "every"

    def __init__(self, name: str, every: int, growth: float, log: LinkLog) -> None:
        check_count(f"{name}: {self.period_option}", every, 1)
        check_number(f"{name}: growth", growth, 0)
        self.every = every
        self.growth = growth
        self.log = log
        self._learned_at = 0  # fetches observed when the last lesson started
        self._extent = (0, 0)  # fetches and pages that the lesson under way is about
        self.is_resuming = False

    @abstractmethod
    def fit_model(self, observed: int, pages: int) -> tuple[Model, Scores]:
        """Make the model of the first `pages` pages, and the scores of all URLs they link to.

        Runs in another thread while pages are taken in, and changes nothing.

        Parameters
        ----------
        observed : fetches when the lesson started
        """

    @abstractmethod
    def use_model(self, model: Model, pages: int) -> Scores:
        """Score by `model`, which was made of the first `pages` pages, from now on.

        Returns
        -------
        URLs whose scores differ from what `fit_model` has returned, because of later pages
        """

    def describe(self, model: Model, pages: int) -> tuple[int, Mapping[str, float]]:
        """Return the number of instances of a lesson, and its metrics."""
        return pages, {}

    def interval(self) -> float:
        """Return how many fetches come between two lessons by now."""
        return max(self.every, self.growth * self.log.n_fetches)

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take in the outcome of a fetch; a duplicate is a fetch wasted like any other."""
        self.log.observe(url, relevance)

    def is_training_due(self) -> bool:
        """Tell whether to start a lesson, about what is known now."""
        due = self.log.n_fetches - self._learned_at >= self.interval()
        if due:
            # not in `learn`, which may run while another page is half taken in
            self._extent = (self.log.n_fetches, self.log.n_pages)
        return due

    def learn(self) -> ModelUpdate:
        """Work everything out anew."""
        observed, pages = self._extent
        model, (urls, scores) = self.fit_model(observed, pages)
        version = self.model_version + 1
        instances, metrics = self.describe(model, pages)
        return ModelUpdate(
            version=version,
            trained_at_seq=observed,
            instances=instances,
            metrics=metrics,
            state=_STATE.pack(version, observed, pages),
            urls=urls,
            scores=scores,
            model=(model, pages),
        )

    def adopt(self, update: ModelUpdate) -> Scores:
        """Score with the lesson's model from now on."""
        self.model_version = update.version
        self._learned_at = update.trained_at_seq
        return self.use_model(*update.model)

    def load(self, state: bytes) -> None:
        """Load the time of the last lesson; `rescore` repeats it."""
        self.model_version, self._learned_at, pages = _STATE.unpack(state)
        self._extent = (self._learned_at, pages)
        self.is_resuming = True

    def rescore(self) -> Scores:
        """Repeat the last lesson, when all its pages have been recalled."""
        self.is_resuming = False
        observed, pages = self._extent
        pages = min(
            pages, self.log.n_pages
        )  # there are more, if one was fetched again right after
        model, scores = self.fit_model(observed, pages)
        return merge_scores([scores, self.use_model(model, pages)])
