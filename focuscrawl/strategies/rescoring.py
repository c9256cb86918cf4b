"""A base class of strategies that re-score the whole frontier, and a log of a crawl."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterator, Mapping
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
    from numpy.typing import NDArray

    from focuscrawl.apprentice.hashing import SparseRows
    from focuscrawl.strategies.base import Scores


@dataclass(frozen=True, slots=True)
class PathFeatures(PackedRecord):
    """Hashed words of a page and of its links, as features for strategies that learn.

    Attributes
    ----------
    targets : int64 (n_links,), URL ids of the targets of the links
    page : int32, hashed words of the page
    links : hashed words of each link
    """

    targets: Ints
    page: NDArray[np.int32]
    links: SparseRows

    TYPES: ClassVar[Mapping[str, str]] = {"targets": "<i8", "page": "<i4", "links": ROWS}


class LinkSnapshot(NamedTuple):
    """The links, pages and fetches of a crawl up to a given fetch.

    Attributes
    ----------
    relevance : float64 (n_urls,), relevance by URL id; NaN for unfetched URLs
    source, target : int64 (n_links,), URL ids of the ends of each link, in the order found
    page : int64 (n_links,), position in `pages` of the page of each link
    first : bool (n_links,), whether a link is the first link of its page to its target
    pages : int64 (n_pages,), URL ids of the pages with links, in the order fetched
    page_words, link_words : hashed words of each page and each link
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
        """The ids of unfetched URLs to which links are known, int64 (m,), ascending."""
        linked = np.zeros(len(self.relevance), bool)
        linked[self.target] = True
        return np.flatnonzero(linked & np.isnan(self.relevance))


class LinkLog:
    """An append-only log of the fetches, pages and links of a crawl."""

    def __init__(self) -> None:
        self._fetched = GrowingArray(np.int64)  # URL of each fetch
        self._outcome = GrowingArray(np.float64)  # relevance of each fetch
        self._source = GrowingArray(np.int64)
        self._target = GrowingArray(np.int64)
        self._page = GrowingArray(np.int64)  # position in `_pages` of the page of each link
        self._pages = GrowingArray(np.int64)

    @property
    def n_fetches(self) -> int:
        """Number of fetches."""
        return len(self._fetched)

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return len(self._pages)

    def observe(self, url: int, relevance: float) -> None:
        """Append a fetch."""
        self._outcome.extend([relevance])
        self._fetched.extend([url])

    def add_links(self, url: int, targets: Ints) -> None:
        """Append the page with the id `url` and its links."""
        self._source.extend(np.full(len(targets), url))
        self._target.extend(targets)
        self._page.extend(np.full(len(targets), len(self._pages)))
        self._pages.extend([url])

    def count_links(self, pages: int) -> int:
        """Return the number of links of the first `pages` pages."""
        return int(np.searchsorted(self._page.data, pages))

    def links(self, pages: int) -> tuple[Ints, Ints, Ints]:
        """Return source, target and page index of each link on the first `pages` pages."""
        n = self.count_links(pages)
        return self._source.data[:n], self._target.data[:n], self._page.data[:n]

    def pages_since(self, pages: int) -> Iterator[tuple[int, Ints]]:
        """Yield URL id and link target ids of each page after the first `pages` pages."""
        bounds = np.searchsorted(self._page.data, np.arange(pages, self.n_pages + 1)).tolist()
        for url, (start, end) in zip(
            self._pages.data[pages:].tolist(), pairwise(bounds), strict=True
        ):
            yield url, self._target.data[start:end]

    def relevance(self, observed: int, n_urls: int) -> Floats:
        """Return the relevance of each URL in the first `observed` fetches; NaN for other URLs."""
        relevance = np.full(n_urls, np.nan)
        fetched, outcome = self._fetched.data[:observed], self._outcome.data[:observed]
        inside = fetched < n_urls
        relevance[fetched[inside]] = outcome[inside]
        return relevance


class LinkHistory(LinkLog):
    """A log of a crawl (`LinkLog`) that also has the words of pages and links."""

    def __init__(self) -> None:
        super().__init__()
        self._relevance = GrowingArray(np.float64, fill=np.nan)  # by URL
        self._first = GrowingArray(np.bool_)
        self._page_words = RowStore()
        self._link_words = RowStore()
        self.relevant = 0

    def observe(self, url: int, relevance: float) -> None:
        """Append a fetch."""
        super().observe(url, relevance)
        self._relevance.grow(url + 1)
        self._relevance.data[url] = relevance
        self.relevant += relevance > 0.5

    def add(self, url: int, features: PathFeatures) -> int:
        """Append the page with the URL id `url`; return the index of its first link in the log."""
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
        """Return a snapshot with the first `observed` fetches and the first `pages` pages."""
        _, target, _ = self.links(pages)
        urls = (self._fetched.data[:observed], self._pages.data[:pages], target)
        n_urls = max(int(each.max(initial=-1)) for each in urls) + 1
        return self._snapshot(len(target), pages, self.relevance(observed, n_urls))

    def latest_snapshot(self) -> LinkSnapshot:
        """Return a snapshot of the whole log, which is valid until the log grows."""
        return self._snapshot(len(self._target), len(self._pages), self._relevance.data)

    def _snapshot(self, n_links: int, pages: int, relevance: Floats) -> LinkSnapshot:
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
    """Base class of strategies whose model depends only on a log of the crawl.

    A resumed crawl restores the pages in the log and trains the model again, so the store needs no
    copy of the model. A subclass must log only pages that a resumed crawl restores: pages with
    links, and pages for which `expand` returns a memo (stored bytes).

    Parameters
    ----------
    name : name of the strategy, for error messages
    every, growth : fetches between two trainings: minimum, and share of all fetches
    log : an empty log

    Attributes
    ----------
    log : the fetches and pages of the crawl
    is_resuming : True in a resumed crawl until `rescore`; the crawl ignores earlier scores
    """

    learns = True
    #: name of the option `every` for users
    period_option: ClassVar[str] = "every"

    def __init__(self, name: str, every: int, growth: float, log: LinkLog) -> None:
        check_count(f"{name}: {self.period_option}", every, 1)
        check_number(f"{name}: growth", growth, 0)
        self.every = every
        self.growth = growth
        self.log = log
        self._learned_at = 0  # fetches at the start of the last training
        self._extent = (0, 0)  # fetches and pages that the next training uses
        self.is_resuming = False

    @abstractmethod
    def fit_model(self, observed: int, pages: int) -> tuple[Model, Scores]:
        """Return a model of the first `pages` pages, and the scores of the pages' link targets.

        The method `fit_model` runs in a background thread and must not modify the strategy.

        Parameters
        ----------
        observed : number of fetches at the start of the training
        """

    @abstractmethod
    def use_model(self, model: Model, pages: int) -> Scores:
        """Replace the model by `model`, which was trained on the first `pages` pages.

        Returns
        -------
        The URLs, with their scores, whose scores differ from those of `fit_model` because of
        later pages.
        """

    def describe(self, model: Model, pages: int) -> tuple[int, Mapping[str, float]]:
        """Return the number of training instances of a model, and its metrics."""
        return pages, {}

    def interval(self) -> float:
        """Return the current number of fetches between two trainings."""
        return max(self.every, self.growth * self.log.n_fetches)

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Append a fetch to the log; a duplicate page counts as an irrelevant page."""
        self.log.observe(url, relevance)

    def is_training_due(self) -> bool:
        """Return whether to start a training."""
        due = self.log.n_fetches - self._learned_at >= self.interval()
        if due:
            # not in `learn`, which may run while another page is being added
            self._extent = (self.log.n_fetches, self.log.n_pages)
        return due

    def learn(self) -> ModelUpdate:
        """Train a new model from the log."""
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
        """Replace the current model by the model of `update`."""
        self.model_version = update.version
        self._learned_at = update.trained_at_seq
        return self.use_model(*update.model)

    def load(self, state: bytes) -> None:
        """Load the numbers of fetches and pages that the last training used."""
        self.model_version, self._learned_at, pages = _STATE.unpack(state)
        self._extent = (self._learned_at, pages)
        self.is_resuming = True

    def rescore(self) -> Scores:
        """Repeat the last training, after all pages that the training used were restored."""
        self.is_resuming = False
        observed, pages = self._extent
        # `pages` can be larger if a page was fetched again immediately afterwards
        pages = min(pages, self.log.n_pages)
        model, scores = self.fit_model(observed, pages)
        return merge_scores([scores, self.use_model(model, pages)])
