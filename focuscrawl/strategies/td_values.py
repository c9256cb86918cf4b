"""Temporal-difference values of links: the order of deep-deep."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.distiller.sites import registered_domain
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints
from focuscrawl.foundation.urls import host
from focuscrawl.strategies.link_history import LinkLog
from focuscrawl.strategies.link_values import Experience, Link, LinkVectors, ValueLearner, Values
from focuscrawl.strategies.messages import Expansion
from focuscrawl.strategies.option_checks import check_count, check_number
from focuscrawl.strategies.rescoring_strategy import RescoringStrategy

if TYPE_CHECKING:
    from focuscrawl.strategies.messages import JudgedPage, RecalledPage, Scores, StrategyContext

_NEXT = 100.0  # of what exploration has drawn: more than any value
_ATTEMPTS = 10  # at drawing a URL that was not fetched


class Waiting:
    """URLs that wait, by domain, to draw from at random."""

    def __init__(self) -> None:
        self._by_domain: dict[str, list[int]] = {}

    def add(self, domain: str, url: int) -> None:
        """Take in a URL."""
        self._by_domain.setdefault(domain, []).append(url)

    def draw(self, random: np.random.Generator, fetched: np.ndarray) -> int | None:
        """Draw a domain, then a URL of it; None if that finds only what was fetched."""
        for _ in range(_ATTEMPTS):
            if not self._by_domain:
                break
            domains = list(self._by_domain)
            domain = domains[random.integers(len(domains))]
            urls = self._by_domain[domain]
            at = int(random.integers(len(urls)))
            urls[at], urls[-1] = urls[-1], urls[at]
            url = urls.pop()
            if not urls:
                del self._by_domain[domain]
            if url >= len(fetched) or not fetched[url]:
                return url
        return None


class TdValues(RescoringStrategy[Values]):
    """Priority of v = the value of the first link into v, learned by temporal differences.

    The order of deep-deep (<https://github.com/TeamHG-Memex/deep-deep>, its spider for relevant
    pages with its defaults): Q-learning, see `ValueLearner`, where following a link is the action
    and R(v) the reward. A link is described by its anchor, its URL and whether it stays in its
    domain, see `LinkVectors`; the page it is on plays no part. After a share `explore` of pages
    the next fetch is drawn at random, first a domain, then a URL of it that waits. A fetch that
    brings no page teaches a reward of 0.

    deep-deep also draws the domain of every other fetch, by a softmax of the best values with
    a temperature of 0.1; here the best URL comes first, whatever its domain. It has four times as
    many features to hash to, reads the ``title`` of links, too, and forgets experience beyond
    100,000 fetches; here all of it stays in memory, with the features of every distinct link.

    Parameters
    ----------
    gamma : discount a fetch
    explore : share of fetches drawn at random
    sample : experiences learned from at each step
    switch : steps from one target model, and order of the frontier, to the next
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        gamma: float = 0.4,
        explore: float = 0.2,
        sample: int = 50,
        switch: int = 100,
    ) -> None:
        check_number("td-values: gamma", gamma, 0, 1)
        check_number("td-values: explore", explore, 0, 1)
        check_count("td-values: sample", sample, 1)
        check_count("td-values: switch", switch, 1)
        super().__init__("td-values", switch, 0.0, LinkLog())
        self._explore = explore
        self._vectors = LinkVectors()
        self._learner = ValueLearner(self._vectors, context.random_state, gamma, sample, switch)
        self._random = np.random.default_rng((context.random_state, 1))
        self._model = self._learner.target
        self._targets = [(0, self._model)]  # each with the fetches when it came
        self._followed: tuple[int, float] | None = None  # link and reward of the last fetch
        self._link = GrowingArray(np.int64, fill=-1)  # the first into each URL
        self._fetched = GrowingArray(np.bool_, fill=False)
        self._waiting = Waiting()
        self._drawn: set[int] = set()  # to be fetched before all others, or fetched
        self._drawn_before = self._drawn  # the last lesson began

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Take note of a fetch; it is learned from when its links are known, or none came."""
        self._learn(np.zeros(0, np.int64))
        super().observe(url, relevance, duplicate_of)
        self._fetched.grow(url + 1)
        known = url < len(self._link) and self._link.data[url] >= 0
        if known and not self._fetched.data[url]:
            self._followed = (int(self._link.data[url]), relevance)
        self._fetched.data[url] = True

    def lesson_due(self) -> bool:
        """Tell whether there is a new target."""
        due = self._targets[-1][0] > self._learned_at
        if due:
            self._extent = (self.log.fetches, self.log.pages)
            self._drawn_before = set(self._drawn)
        return due

    def rescore(self) -> Scores:
        """Score by the target of the last lesson again."""
        self._drawn_before = set(self._drawn)
        return super().rescore()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and draw what is to be fetched next now and then."""
        links = page.view.links
        urls = [links.urls[i] for i in page.links.tolist()]
        anchors = [" ".join(links.anchors[i].lower().split()) for i in page.links.tolist()]
        link_scores, scores = self._take_in(page, page.view.url, urls, anchors)
        memo = zlib.compress(json.dumps([page.view.url, urls, anchors]).encode())
        return Expansion(link_scores, *scores, memo=memo)

    def recall(self, page: RecalledPage) -> Scores:
        """Take in the links of an earlier run."""
        assert page.memo is not None
        return self._take_in(page, *json.loads(zlib.decompress(page.memo)))[1]

    def work_out(self, observed: int, pages: int) -> tuple[Values, Scores]:
        """Look up the target after so many fetches, and score by it all that was found."""
        model = next(model for at, model in reversed(self._targets) if at <= observed)
        urls = np.unique(self.log.links(pages)[1])
        return model, (urls, self._values_of(urls, model, self._drawn_before))

    def take_over(self, model: Values, pages: int) -> Scores:
        """Score by a new target from now on, the links read meanwhile first."""
        self._model = model
        used = max(i for i, (at, _) in enumerate(self._targets) if at <= self._learned_at)
        self._targets = self._targets[used:]
        later = [targets for _, targets in self.log.pages_since(pages)]
        urls = np.unique(np.concatenate([np.array([*self._drawn], np.int64), *later]))
        return urls, self._values_of(urls, model, self._drawn)

    def _take_in(
        self, page: JudgedPage | RecalledPage, source: str, urls: list[str], anchors: list[str]
    ) -> tuple[Floats, Scores]:
        """Return the scores of links, and those of URLs that are new or drawn."""
        targets, first, at = np.unique(page.targets, return_index=True, return_inverse=True)
        own = registered_domain(host(source))
        domains = [registered_domain(host(urls[i])) for i in first.tolist()]
        links = self._vectors.numbers(
            [
                Link(anchors[i], urls[i], domain == own)
                for i, domain in zip(first.tolist(), domains, strict=True)
            ]
        )
        self._learn(links)
        self.log.add_links(page.url, targets)
        self._link.grow(int(targets.max(initial=-1)) + 1)
        new = self._link.data[targets] < 0
        self._link.data[targets[new]] = links[new]
        for i in np.flatnonzero(new).tolist():
            self._waiting.add(domains[i], int(targets[i]))
        values = self._model.of(self._vectors.matrix(links))
        return values[at], self._explored(targets[new], values[new])

    def _learn(self, found: Ints) -> None:
        """Take the step of the last fetch, whose links are `found`."""
        if self._followed is not None:
            link, reward = self._followed
            self._followed = None
            if self._learner.learn(Experience(link, reward, found)):
                self._targets.append((self.log.fetches, self._learner.target))

    def _explored(self, urls: Ints, values: Floats) -> Scores:
        """Return scores of URLs, with one drawn at random before all others now and then."""
        if self._random.random() >= self._explore:
            return urls, values
        drawn = self._waiting.draw(self._random, self._fetched.data)
        if drawn is None:
            return urls, values
        self._drawn.add(drawn)
        others = urls != drawn
        return np.append(urls[others], drawn), np.append(values[others], _NEXT)

    def _values_of(self, urls: Ints, model: Values, drawn: set[int]) -> Floats:
        values = model.of(self._vectors.matrix(self._link.data[urls]))
        return np.where(np.isin(urls, [*drawn]), _NEXT, values)
