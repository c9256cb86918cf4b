"""Small webs, and the crawl's part of the loop that an apprentice is in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from focuscrawl.apprentice.feature_extraction import FeatureExtractor
from focuscrawl.apprentice.hashing import SparseRows
from focuscrawl.apprentice.link_features import url_key_table
from focuscrawl.apprentice.link_table import PageFeatures, pack_words
from focuscrawl.critic.bag_of_words import ClassCounts
from focuscrawl.critic.classifiers import NaiveBayes
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.page import parse_page

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.apprentice.apprentice import Apprentice
    from focuscrawl.apprentice.online_training import ApprenticeUpdate
    from focuscrawl.apprentice.options import Options

_SEED = 9.0  # comes before every score


class Web(Protocol):
    """Numbered pages with their relevance; `targets[u]` are the pages u links to."""

    relevance: NDArray[np.float64]
    targets: NDArray[np.int64]

    def features(self, u: int, new: NDArray[np.bool_]) -> PageFeatures: ...


class Toy:
    """A web of numbers: links whose feature is 1 lead to relevant pages."""

    def __init__(self, n: int = 400, out: int = 12, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.good = rng.random(n) < 0.4
        self.relevance = self.good.astype(np.float64)
        self.targets = rng.integers(0, n, (n, out))
        self.noise = rng.integers(10, 200, (n, out))
        self.urls = [f"http://h{i % 7}.example/d{i % 5}/page{i}.html" for i in range(n)]
        self.keys = url_key_table(self.urls)

    def features(self, u: int, new: NDArray[np.bool_]) -> PageFeatures:
        targets = self.targets[u].astype(np.int64)
        fresh = np.unique(targets[new])
        hint = np.where(self.good[targets], 1, 2)
        n, words = len(targets), np.column_stack([hint, self.noise[u]])
        return PageFeatures(
            relevance=self.relevance[u : u + 1],
            own_keys=self.keys[u : u + 1],
            page_indices=np.array([u % 3], np.int32),
            targets=targets,
            position=np.arange(n, dtype=np.int32),
            reading=np.zeros(n, np.float32),
            around=np.zeros(n, np.float32),
            links=SparseRows(words.ravel().astype(np.int32), np.arange(n + 1) * 2),
            new=fresh,
            urls=SparseRows((fresh % 50).astype(np.int32), np.arange(len(fresh) + 1)),
            url_keys=self.keys[fresh],
            vocabulary=pack_words([]),
            page_values=np.zeros(0, np.float32),
        )

    def visit(self, apprentice: Apprentice, urls: Iterable[int]) -> None:
        """Let an apprentice fetch pages in this order."""
        for u in urls:
            apprentice.observe(u, float(self.relevance[u]))
            apprentice.expand(u, self.features(u, apprentice.is_new(self.targets[u])))


def toy_critic() -> FocusedCritic:
    """A critic of boats, knots and reefs against taxes."""
    counts = ClassCounts(
        classes=("/Boats", "/Money"),
        words=("boats", "knots", "reef", "tax", "year"),
        counts=np.array([[9, 1], [7, 0], [5, 1], [0, 9], [1, 4]]),
        pages=np.array([3, 2]),
    )
    return FocusedCritic(NaiveBayes(counts), np.array([True, False]), (), "toy")


class Pages:
    """A web of pages that are read with the features that `options` ask for."""

    def __init__(self, options: Options, n: int = 70, out: int = 8, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        good = rng.random(n) < 0.4
        self.relevance = np.where(good, 0.9, 0.1)
        self.targets = rng.integers(0, n, (n, out))
        name = np.where(good, "knots", "tax").tolist()
        urls = [f"http://h{i % 4}.example/d{i % 3}/{name[i]}-{i}.html" for i in range(n)]
        self._views = []
        for u in range(n):
            items = [
                f"<li>{name[v]} no{v % 5} <a href={urls[v]}>see {('it', 'more')[v % 2]}</a>"
                for v in self.targets[u].tolist()
            ]
            body = f"<title>{name[u]}</title><h1>all {name[u]}</h1><ul>{''.join(items[:4])}</ul>"
            body += f"<h2>other things</h2><div><ol>{''.join(items[4:])}</ol></div>"
            self._views.append(parse_page(body.encode(), urls[u]))
        self._extractor = FeatureExtractor(toy_critic(), options)

    def features(self, u: int, new: NDArray[np.bool_]) -> PageFeatures:
        relevance = float(self.relevance[u])
        targets = self.targets[u]
        return self._extractor.extract(
            self._views[u],
            np.arange(len(targets)),
            targets,
            new,
            relevance=relevance,
            probabilities=np.array([relevance, 1.0 - relevance]),
        )


class Crawl:
    """The crawl's part of the loop, one request at a time.

    Parameters
    ----------
    lag : fetches from the beginning of a lesson until it is adopted
    slow : learn at the end of that time, not at its beginning
    """

    def __init__(
        self, web: Web, apprentice: Apprentice, *, lag: int = 0, slow: bool = False
    ) -> None:
        self.web, self.apprentice = web, apprentice
        self.lag, self.slow = lag, slow
        self.queue: dict[int, float] = {0: _SEED, 1: _SEED}
        self.order: list[int] = []
        self.memos: list[bytes] = []
        self.state: bytes | None = None
        self.lessons: list[ApprenticeUpdate] = []
        self._lesson: ApprenticeUpdate | None = None
        self._begun_at: int | None = None

    def run(self, fetches: int) -> Self:
        for _ in range(fetches):
            u = max(self.queue, key=lambda url: (self.queue[url], -url))
            self.apprentice.observe(u, float(self.web.relevance[u]))
            features = self.web.features(u, self.apprentice.is_new(self.web.targets[u]))
            self._visited(u, features.to_bytes())
            self.take(*self.apprentice.expand(u, features)[1:])
            self._learn()
        return self

    def resumed(self, apprentice: Apprentice) -> Crawl:
        """Return this crawl as one that was interrupted here goes on."""
        again = Crawl(self.web, apprentice, lag=self.lag, slow=self.slow)
        learned_at = 0 if self.state is None else apprentice.load(self.state)
        again.state = self.state
        for u, memo in zip(self.order, self.memos, strict=True):
            apprentice.observe(u, float(self.web.relevance[u]))
            again._visited(u, memo)
            _, urls, scores = apprentice.expand(u, PageFeatures.from_bytes(memo))
            seq = len(again.order)
            if seq > learned_at:
                again.take(urls, scores)
            if seq == learned_at:
                again.take(*apprentice.rescore())
            if seq >= learned_at:
                again._learn()
        return again

    def take(self, urls: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        done = set(self.order)
        for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
            if url not in done:
                self.queue[url] = score

    @property
    def harvest(self) -> float:
        return float((self.web.relevance[self.order] > 0.5).mean())

    def _visited(self, u: int, memo: bytes) -> None:
        self.queue.pop(u, None)
        self.order.append(u)
        self.memos.append(memo)

    def _learn(self) -> None:
        fetched = len(self.order)
        if self._begun_at is None and self.apprentice.is_training_due():
            self._begun_at = fetched
            self._lesson = None if self.slow else self.apprentice.learn()
        if self._begun_at is not None and fetched >= self._begun_at + self.lag:
            lesson = self.apprentice.learn() if self._lesson is None else self._lesson
            self._begun_at = self._lesson = None
            self.take(lesson.urls, lesson.scores)
            self.take(*self.apprentice.adopt(lesson))
            self.state = self.apprentice.state(lesson)
            self.lessons.append(lesson)
