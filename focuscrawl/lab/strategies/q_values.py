"""Strategies that learn link scores by reinforcement: Q-values and temporal differences."""

from __future__ import annotations

import heapq
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDRegressor

from focuscrawl.apprentice.hashing import SparseRows, hstack, multi_arange, row_pointers
from focuscrawl.apprentice.link_table import RowStore
from focuscrawl.distiller import registered_domain
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints, sum_by_group
from focuscrawl.foundation.urls import host
from focuscrawl.lab.strategies.batch_learners import (
    FAR,
    BatchLearner,
    FittedModel,
    HashedNaiveBayes,
    PageWordReader,
    click_distances,
)
from focuscrawl.strategies.base import Expansion, check_count, check_number
from focuscrawl.strategies.rescoring import LinkLog, PathFeatures, RescoringStrategy

if TYPE_CHECKING:
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext
    from focuscrawl.strategies.rescoring import LinkSnapshot


HORIZON = 6  # number of fetches ahead; all later rewards add at most 1/64
_LINKS = 8  # maximum number of training links per URL
_BITS = 18  # size of the feature spaces of anchors and of URLs, as a power of 2
_WIDTH = (2 << _BITS) + 1  # the last feature is whether a link stays in its domain
_UNKNOWN = 0.05  # value before the first training
_EXPLORATION_SCORE = 100.0  # of URLs drawn for exploration: above any value
_ATTEMPTS = 10  # maximum number of draws of a URL that is not fetched yet


def discounted_rewards(
    source: Ints, target: Ints, relevance: Floats, wanted: Ints, *, gamma: float
) -> Floats:
    """Return for each URL the discounted reward of an ideal crawl that starts at the URL.

    An ideal crawler fetches a given URL first. Then it always fetches the known URL with the
    fewest clicks to a relevant page. The reward of the fetch with the number t = 0, 1, ... is
    gamma^t times the relevance of the page, or 0 if the relevance is at most 1/2. The ideal
    crawler is the optimal spider of Rennie and McCallum 1999, except that distances are not
    recomputed after a relevant page is fetched. So the ideal crawler may follow a path to a
    relevant page that is already fetched.

    Parameters
    ----------
    source, target : NDArray[np.int64] of shape (n_links,)
        URLs at both ends of each link.
    relevance : NDArray[np.float64] of shape (n_urls,)
        Relevance of fetched URLs; NaN for other URLs.
    wanted : NDArray[np.int64] of shape (n,)
        Fetched URLs to evaluate.
    gamma : float
        Discount per fetch, at most 1/2.
    """
    reward = np.where(relevance > 0.5, relevance, 0.0)
    away = click_distances(source, target, reward > 0, limit=HORIZON)
    begin, children = _nearest(source, target, away, reward)
    discount = (gamma ** np.arange(HORIZON + 1)).tolist()
    known = _KnownGraph(reward.tolist(), away.tolist(), begin.tolist(), children.tolist())
    promising = np.flatnonzero(away[wanted] < FAR)
    values = np.zeros(len(wanted))
    values[promising] = [
        _discounted_walk(url, discount, known) for url in wanted[promising].tolist()
    ]
    return values


def _nearest(source: Ints, target: Ints, away: Ints, reward: Floats) -> tuple[Ints, Ints]:
    """Return the targets of each page nearest to a relevant page, at most `HORIZON` + 1 a page."""
    n = len(reward)
    near = np.flatnonzero(away[target] < FAR)
    pairs = np.unique(source[near] * n + target[near])
    source, target = pairs // n, pairs % n
    order = np.lexsort((target, -reward[target], away[target], source))
    source, target = source[order], target[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    kept = rank <= HORIZON
    return row_pointers(np.bincount(source[kept], minlength=n)), target[kept]


class _KnownGraph(NamedTuple):
    """Rewards, distances and links (see `_nearest`) by page, as lists for a walk in Python."""

    reward: list[float]
    away: list[int]
    begin: list[int]
    children: list[int]


def _discounted_walk(url: int, discount: list[float], known: _KnownGraph) -> float:
    """Return the discounted sum of the rewards of an ideal crawl from `url`."""
    reward, away, begin, children = known
    total = 0.0
    queue, met = [(0, 0.0, url)], {url}
    for weight in discount:
        if not queue:
            break
        _, _, page = heapq.heappop(queue)
        total += weight * reward[page]
        for child in children[begin[page] : begin[page + 1]]:
            if child not in met:
                met.add(child)
                heapq.heappush(queue, (away[child], -reward[child], child))
    return total


class QValues(BatchLearner):
    """The priority of a URL v is the discounted reward predicted from the words of a link to v.

    The source is Rennie and McCallum, Using reinforcement learning to spider the Web efficiently,
    ICML 1999. The function `discounted_rewards` computes the value of a followed link to v from
    the pages found through v. The values of links are divided into bins (ranges of values). Naive
    Bayes predicts the bin of a new link from the words of the anchor, the words nearby, the URL
    and the page. The score of a link is the mean of the values of all bins, weighted by the
    posterior probabilities of the bins. If several links lead to a URL, the URL gets the best
    score of these links.

    Rennie and McCallum train on sites that are crawled completely in advance. The strategy
    `QValues` trains on the crawl so far. After n relevant pages, the prediction has the weight n /
    (n + `trust`) in a link's score, and the relevance of the linking page has the remaining
    weight.

    Parameters
    ----------
    gamma : float
        Discount per fetch; 1/2 in the paper.
    bins : int
        Number of bins: one for the value 0, and others with equally many positive values.
    length : float
        Number of words that a link, and its page, count for, see `HashedNaiveBayes`.
    trust : float
        Number of relevant pages at which prediction and R(u) have equal weights.
    memory : int
        Number of latest links in the training set.
    batch, growth : int, float
        See `BatchLearner`.
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        gamma: float = 0.5,
        bins: int = 4,
        length: float = 10.0,
        trust: float = 30.0,
        memory: int = 12000,
        batch: int = 25,
        growth: float = 0.05,
    ) -> None:
        check_number("q-values: gamma", gamma, 0.0, 0.5)
        check_count("q-values: bins", bins, 2)
        check_number("q-values: length", length, 1)
        check_number("q-values: trust", trust, 0.0)
        check_count("q-values: memory", memory, 1)
        self._gamma = gamma
        self._bins = bins
        self._length = length
        self._trust = trust
        self._memory = memory
        self._words = PageWordReader()
        super().__init__("q-values", batch, growth)

    def read(self, page: JudgedPage) -> PathFeatures:
        """Return the words of a page, and the words in and around the page's links."""
        links, _ = hstack(self._words.surroundings(page), self._words.addresses(page))
        return PathFeatures(page.targets, self._words.page(page), links)

    def initial_model(self) -> BinnedValueModel:
        """Return the untrained model, which scores links by the relevance of the linking page."""
        return BinnedValueModel(None, None, np.zeros(0), 0.0)

    def fit(self, past: LinkSnapshot) -> BinnedValueModel:
        """Return a model trained on the values of the links followed so far."""
        links = np.flatnonzero(~np.isnan(past.relevance[past.target]))
        links = links[np.argsort(past.target[links], kind="stable")]
        rank = np.arange(len(links)) - np.searchsorted(past.target[links], past.target[links])
        links = np.sort(links[rank < _LINKS])[-self._memory :]
        relevant = float((past.relevance > 0.5).sum())
        if not len(links):  # only seeds were fetched
            return self.initial_model()
        urls, at = np.unique(past.target[links], return_inverse=True)
        values = discounted_rewards(
            past.source, past.target, past.relevance, urls, gamma=self._gamma
        )
        labels, means = bin_values(values, self._bins)
        weight = (1.0 / np.bincount(at))[at]  # weights of the links to a URL add up to 1
        of_links = HashedNaiveBayes(
            past.link_words.take(links), labels[at], len(means), length=self._length, weight=weight
        )
        # many links of a page fall into the same bin, so their weights are added first
        pair, which = np.unique(past.page[links] * len(means) + labels[at], return_inverse=True)
        of_pages = HashedNaiveBayes(
            past.page_words.take(pair // len(means)),
            pair % len(means),
            len(means),
            length=self._length,
            weight=sum_by_group(which, weight, len(pair)),
        )
        metrics = {"mean_value": float(values.mean()), "bins": float(len(means))}
        trust = relevant / (relevant + self._trust)
        return BinnedValueModel(
            of_links, of_pages, means, trust, instances=len(links), metrics=metrics
        )


def bin_values(values: Floats, bins: int) -> tuple[Ints, Floats]:
    """Return the index of each link value's bin, and the mean value of each bin.

    Bin 0 contains the links with the value 0. Links with other values are divided into at most
    `bins` - 1 bins of about equal size.
    """
    above = values[values > 0.0]
    shares = np.arange(bins - 1) / max(bins - 1, 1)
    edges = np.unique(np.quantile(above, shares)) if len(above) else np.zeros(0)
    labels = np.searchsorted(edges, values, side="right")
    n = len(edges) + 1
    return labels, np.bincount(labels, values, n) / np.maximum(np.bincount(labels, minlength=n), 1)


@dataclass(frozen=True, slots=True)
class BinnedValueModel(FittedModel):
    """Predicts link values by naive Bayes, mixed with the relevance of the linking page."""

    of_links: HashedNaiveBayes | None
    of_pages: HashedNaiveBayes | None
    means: Floats
    trust: float

    def evidence(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Return the expected value of each link."""
        relevance = past.relevance[past.source[links]][:, None]
        if self.of_links is None or self.of_pages is None:
            return relevance
        pages, at = np.unique(past.page[links], return_inverse=True)
        likelihood = self.of_links.log_likelihood(past.link_words.take(links))
        likelihood += self.of_pages.log_likelihood(past.page_words.take(pages))[at]
        expected = (self.of_links.posterior(likelihood) * self.means).sum(axis=1)
        mixed: Floats = (1.0 - self.trust) * relevance
        mixed += self.trust * expected[:, None]
        return mixed


class Link(NamedTuple):
    """The parts of a link from which features are computed."""

    anchor: str
    url: str
    inside: bool  # whether the link stays in its domain


class LinkVectors:
    """Creates and stores the feature vectors of distinct links, by link id.

    Anchors are hashed as distinct character n-grams of length 3 to 5, URLs as distinct n-grams of
    length 4 and 5. The vectors of anchor and URL are normalised to unit length. The last feature
    of a link is 1 if the link stays in its domain.
    """

    def __init__(self) -> None:
        hashed = {"analyzer": "char", "binary": True, "n_features": 1 << _BITS}
        self._anchors = HashingVectorizer(ngram_range=(3, 5), **hashed)
        self._urls = HashingVectorizer(ngram_range=(4, 5), **hashed)
        self._number: dict[Link, int] = {}
        self._rows = RowStore()
        self._values = GrowingArray(np.float32)

    def ids(self, links: Sequence[Link]) -> Ints:
        """Return an integer id for each link; equal links have the same id."""
        new = list(dict.fromkeys(link for link in links if link not in self._number))
        if new:
            parts = [
                self._anchors.transform([link.anchor for link in new]),
                self._urls.transform([link.url for link in new]),
                sparse.csr_matrix([[float(link.inside)] for link in new]),
            ]
            rows = sparse.hstack(parts, format="csr")
            self._values.extend(rows.data)
            indices = rows.indices.astype(np.int32, copy=False)
            self._rows.extend(SparseRows(indices, rows.indptr.astype(np.int64)))
            self._number.update(zip(new, count(len(self._number)), strict=False))
        return np.array([self._number[link] for link in links], np.int64)

    def matrix(self, numbers: Ints) -> sparse.csr_matrix:
        """Return the feature vectors of n links as a sparse matrix of shape (n, `_WIDTH`)."""
        rows = self._rows.rows(len(self._rows))
        taken = rows.take(numbers)
        at = multi_arange(rows.indptr[numbers], taken.lengths)
        values = self._values.data[at].astype(np.float64)
        return sparse.csr_matrix(
            (values, taken.indices, taken.indptr), shape=(len(numbers), _WIDTH)
        )


class LinkValueModel(NamedTuple):
    """A linear model that predicts the value of a link from its feature vector."""

    weights: Floats | None
    intercept: float

    def predict(self, links: sparse.csr_matrix) -> Floats:
        """Return the predicted value of each link, given the feature vectors."""
        if self.weights is None:
            return np.full(links.shape[0], _UNKNOWN)
        return np.round(links @ self.weights + self.intercept, 9)


class Experience(NamedTuple):
    """A followed link, its reward, and the links found on the fetched page."""

    link: int
    reward: float
    found: Ints


class ValueLearner:
    """Q-learning with a linear model, experience replay, and double learning.

    Suppose a followed link has the reward r and leads to a page with new links. The online model
    chooses the best new link, and the target model predicts the value q of the chosen link. The
    online model is then trained to predict r + gamma q for the followed link. Each training step
    trains the online model for one epoch of stochastic gradient descent on a sample of all
    experience. After every `switch` training steps the target model becomes a copy of the online
    model.
    """

    def __init__(
        self, vectors: LinkVectors, random_state: int, gamma: float, sample: int, switch: int
    ) -> None:
        self._vectors = vectors
        self._random = np.random.default_rng(random_state)
        self._gamma, self._sample, self._switch = gamma, sample, switch
        self._online = SGDRegressor(
            penalty="l1", learning_rate="constant", eta0=0.1, random_state=random_state
        )
        self._experience: list[Experience] = []
        self.target = LinkValueModel(None, 0.0)
        self.steps = 0

    def learn(self, experience: Experience) -> bool:
        """Add experience and train one step; return whether the target model has changed."""
        self.steps += 1
        self._experience.append(experience)
        n = len(self._experience)
        chosen = self._random.choice(n, min(n, self._sample), replace=False)
        sample = [self._experience[i] for i in chosen.tolist()]
        followed = np.array([each.link for each in sample], np.int64)
        goal = np.array([each.reward for each in sample])
        goal += self._gamma * self._next_values([each.found for each in sample])
        self._online.partial_fit(self._vectors.matrix(followed), goal)
        switched = self.steps % self._switch == 0
        if switched:
            self.target = LinkValueModel(
                self._online.coef_.copy(), float(self._online.intercept_[0])
            )
        return switched

    def _next_values(self, found: Sequence[Ints]) -> Floats:
        """Return the target's value of the online model's best link; 0 without links."""
        lengths = np.array([len(links) for links in found])
        values = np.zeros(len(found))
        some = np.flatnonzero(lengths)
        if len(some):
            links = np.concatenate(found)
            distinct, at = np.unique(links, return_inverse=True)
            online = self._online_model().predict(self._vectors.matrix(distinct))[at]
            begins = np.cumsum(lengths) - lengths
            best = [begins[i] + online[begins[i] :][: lengths[i]].argmax() for i in some.tolist()]
            values[some] = self.target.predict(self._vectors.matrix(links[best]))
        return values

    def _online_model(self) -> LinkValueModel:
        if not hasattr(self._online, "coef_"):
            return LinkValueModel(None, 0.0)
        return LinkValueModel(self._online.coef_, float(self._online.intercept_[0]))


class ExplorationQueue:
    """Queued URLs grouped by domain, for random choices of the next fetch."""

    def __init__(self) -> None:
        self._by_domain: dict[str, list[int]] = {}

    def add(self, domain: str, url: int) -> None:
        """Add a queued URL."""
        self._by_domain.setdefault(domain, []).append(url)

    def draw(self, random: np.random.Generator, fetched: np.ndarray) -> int | None:
        """Return a random unfetched URL of a random domain, or None if none is found."""
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


class TdValues(RescoringStrategy[LinkValueModel]):
    """The priority of a URL is the value of the first link to the URL, learned by Q-learning.

    The order of URLs is that of the relevancy spider of the project deep-deep
    (<https://github.com/TeamHG-Memex/deep-deep>) with default options. In the Q-learning of
    `ValueLearner`, following a link is the action, and the relevance of the fetched page is the
    reward. The features of a link are computed by `LinkVectors` from its anchor, its URL and
    whether the link stays in its domain. A share `explore` of the fetches is random: first a
    random domain is chosen, and then a random queued URL of the domain. A fetch without a page has
    the reward 0.

    Unlike `TdValues`, deep-deep also chooses the domain of the remaining fetches at random. In
    deep-deep, the probabilities of domains are a softmax (temperature 0.1) of the value of the
    best queued link of each domain. The spider of deep-deep has four times as many hashed
    features, reads the ``title`` of links, and keeps only the experience of 100,000 fetches.
    `TdValues` keeps all experience in memory, with the features of every distinct link.

    Parameters
    ----------
    gamma : float
        Discount per fetch.
    explore : float
        Share of fetches drawn at random.
    sample : int
        Number of experiences to train on at each step.
    switch : int
        Steps between two target models, and between two re-scorings of the frontier.
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
        self._targets = [(0, self._model)]  # with the number of fetches at which each was trained
        self._followed: tuple[int, float] | None = None  # link and reward of the last fetch
        self._link = GrowingArray(np.int64, fill=-1)  # first link into each URL
        self._fetched = GrowingArray(np.bool_, fill=False)
        self._exploration_queue = ExplorationQueue()
        self._drawn: set[int] = set()  # URLs drawn for exploration, fetched or not
        self._drawn_before = self._drawn  # at the start of the last training

    def observe(self, url: int, relevance: float, duplicate_of: int | None) -> None:
        """Record a fetch; the model learns from the fetch when the page's links are known."""
        self._learn(np.zeros(0, np.int64))
        super().observe(url, relevance, duplicate_of)
        self._fetched.grow(url + 1)
        known = url < len(self._link) and self._link.data[url] >= 0
        if known and not self._fetched.data[url]:
            self._followed = (int(self._link.data[url]), relevance)
        self._fetched.data[url] = True

    def is_training_due(self) -> bool:
        """Return whether the target model has changed since the last re-scoring."""
        due = self._targets[-1][0] > self._learned_at
        if due:
            self._extent = (self.log.n_fetches, self.log.n_pages)
            self._drawn_before = set(self._drawn)
        return due

    def rescore(self) -> Scores:
        """Return the scores of all URLs by the last target model."""
        self._drawn_before = set(self._drawn)
        return super().rescore()

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and sometimes choose a random URL for the next fetch."""
        links = page.view.links
        urls = [links.urls[i] for i in page.links.tolist()]
        anchors = [" ".join(links.anchors[i].lower().split()) for i in page.links.tolist()]
        link_scores, scores = self._add_page(page, page.view.url, urls, anchors)
        memo = zlib.compress(json.dumps([page.view.url, urls, anchors]).encode())
        return Expansion(link_scores, *scores, memo=memo)

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the links of a page that an earlier run of the crawl has fetched."""
        assert page.memo is not None
        return self._add_page(page, *json.loads(zlib.decompress(page.memo)))[1]

    def fit_model(self, observed: int, pages: int) -> tuple[LinkValueModel, Scores]:
        """Train on the first `observed` fetches; return the target model and all scores."""
        model = next(model for at, model in reversed(self._targets) if at <= observed)
        urls = np.unique(self.log.links(pages)[1])
        return model, (urls, self._values_of(urls, model, self._drawn_before))

    def use_model(self, model: LinkValueModel, pages: int) -> Scores:
        """Use the target model `model`; return new scores for links found after its training."""
        self._model = model
        used = max(i for i, (at, _) in enumerate(self._targets) if at <= self._learned_at)
        self._targets = self._targets[used:]
        later = [targets for _, targets in self.log.pages_since(pages)]
        urls = np.unique(np.concatenate([np.array([*self._drawn], np.int64), *later]))
        return urls, self._values_of(urls, model, self._drawn)

    def _add_page(
        self, page: JudgedPage | StoredPage, source: str, urls: list[str], anchors: list[str]
    ) -> tuple[Floats, Scores]:
        """Return the scores of links, and the scores of new URLs and of a drawn URL."""
        targets, first, at = np.unique(page.targets, return_index=True, return_inverse=True)
        own = registered_domain(host(source))
        domains = [registered_domain(host(urls[i])) for i in first.tolist()]
        links = self._vectors.ids(
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
            self._exploration_queue.add(domains[i], int(targets[i]))
        values = self._model.predict(self._vectors.matrix(links))
        return values[at], self._add_explored_url(targets[new], values[new])

    def _learn(self, found: Ints) -> None:
        """Train on the last fetch, whose page has the links `found`."""
        if self._followed is not None:
            link, reward = self._followed
            self._followed = None
            if self._learner.learn(Experience(link, reward, found)):
                self._targets.append((self.log.n_fetches, self._learner.target))

    def _add_explored_url(self, urls: Ints, values: Floats) -> Scores:
        """Return the scores of URLs; at random, add a URL drawn for exploration."""
        if self._random.random() >= self._explore:
            return urls, values
        drawn = self._exploration_queue.draw(self._random, self._fetched.data)
        if drawn is None:
            return urls, values
        self._drawn.add(drawn)
        others = urls != drawn
        return np.append(urls[others], drawn), np.append(values[others], _EXPLORATION_SCORE)

    def _values_of(self, urls: Ints, model: LinkValueModel, drawn: set[int]) -> Floats:
        values = model.predict(self._vectors.matrix(self._link.data[urls]))
        return np.where(np.isin(urls, [*drawn]), _EXPLORATION_SCORE, values)
