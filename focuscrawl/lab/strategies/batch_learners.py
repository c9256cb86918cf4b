"""Strategies that refit a model to all fetches: intelligent crawling and context graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse

from focuscrawl.apprentice.hashing import (
    SparseRows,
    hash_features,
    multi_arange,
    row_pointers,
    word_features,
)
from focuscrawl.apprentice.learners import row_sums
from focuscrawl.critic.classifiers import log_theta
from focuscrawl.foundation.arrays import Bools, Floats, GrowingArray, Ints, sum_by_group
from focuscrawl.strategies.base import Expansion, check_count, check_number
from focuscrawl.strategies.rescoring import LinkHistory, PathFeatures, RescoringStrategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Bools
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext
    from focuscrawl.strategies.rescoring import LinkSnapshot


BITS = 17  # size of the feature space, as a power of 2
FAR = 99  # distance of URLs without a known path
_SPACE = 1 << BITS
_SLICE = 50_000  # texts per batch, to limit memory
_PAGE, _ADDRESS, _ANCHOR, _NEAR = 1, 2, 3, 4  # salts
_MOST = 300  # maximum number of distinct words read from a page
_AROUND = 10  # tokens on either side of a link
_SIGNIFICANT = 2.0  # standard deviations by which a word must deviate from its expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel(ABC):
    """A model that `BatchLearner.fit` has fitted to the fetches of a crawl so far.

    Attributes
    ----------
    instances : int
        Number of training examples.
    metrics : dict[str, float]
        Metrics for the store.
    """

    instances: int = 0
    metrics: dict[str, float] = field(default_factory=dict)

    @abstractmethod
    def evidence(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Return the evidence (features) of n links, an array of shape (n, columns)."""

    def scores(self, urls: Ints, evidence: Floats) -> Floats:
        """Return a score per URL from the URL's combined `evidence`, of shape (n, columns)."""
        return evidence[:, 0]


class BatchLearner(RescoringStrategy["JoinedEvidence"]):
    """Base class of strategies that refit a model to all fetches of a crawl at intervals.

    Parameters
    ----------
    name : str
        Name of the strategy in messages.
    batch, growth : int, float
        Fetches between two trainings: at least `batch`, and at least this share of all fetches.
        The share keeps the cost of training per fetch constant.
    """

    period_option = "batch"
    #: combines the evidence of several links into one URL: `numpy.maximum` or `numpy.add`
    join: ClassVar[np.ufunc] = np.maximum
    columns: ClassVar[int] = 1

    def __init__(self, name: str, batch: int, growth: float) -> None:
        self._crawled = LinkHistory()
        super().__init__(name, batch, growth, self._crawled)
        self._joined = JoinedEvidence(self.initial_model(), self.join, self.columns)

    @abstractmethod
    def read(self, page: JudgedPage) -> PathFeatures:
        """Return the features of a page and its links for training the model."""

    @abstractmethod
    def initial_model(self) -> FittedModel:
        """Return the model that scores links before the first training."""

    @abstractmethod
    def fit(self, past: LinkSnapshot) -> FittedModel:
        """Return a model fitted to the crawl so far; this may run in a background thread."""

    def expand(self, page: JudgedPage) -> Expansion:
        """Return the scores of the links of `page`, and the scores of the link targets."""
        features = self.read(page)
        link_scores, urls, scores = self._add_page(page.url, features)
        return Expansion(link_scores, urls, scores, memo=features.to_bytes())

    def restore_page(self, page: StoredPage) -> Scores:
        """Restore the links of a page that an earlier run of the crawl has fetched."""
        assert page.memo is not None
        _, urls, scores = self._add_page(page.url, PathFeatures.from_bytes(page.memo))
        return urls, scores

    def interval(self) -> int:
        """Return the current number of fetches between two trainings of the model."""
        return int(super().interval())

    def is_training_due(self) -> bool:
        """Return whether the crawl has fetched a relevant page and enough pages for a training."""
        return self._crawled.relevant > 0 and super().is_training_due()

    def fit_model(self, observed: int, pages: int) -> tuple[JoinedEvidence, Scores]:
        """Fit a model to the crawl so far; return the model and the scores of the queued URLs."""
        past = self._crawled.snapshot_at(observed, pages)
        joined = JoinedEvidence(self.fit(past), self.join, self.columns)
        # fetched URLs are never scored again
        joined.add(past, np.flatnonzero(np.isnan(past.relevance[past.target])))
        queued = past.queued
        return joined, (queued, joined.scores(queued))

    def use_model(self, model: JoinedEvidence, pages: int) -> Scores:
        """Replace the model by `model`; return new scores for links found since its training."""
        self._joined, past = model, self._crawled.latest_snapshot()
        later = np.arange(self._crawled.count_links(pages), len(past.target))
        model.add(past, later)
        urls = np.unique(past.target[later])
        return urls, model.scores(urls)

    def describe(self, model: JoinedEvidence, pages: int) -> tuple[int, Mapping[str, float]]:
        """Return the number of training examples and the metrics of a model."""
        return model.model.instances, model.model.metrics

    def _add_page(self, url: int, features: PathFeatures) -> tuple[Floats, Ints, Floats]:
        """Return the scores of links, the distinct URLs they lead to, and the URLs' scores."""
        start = self._crawled.add(url, features)
        urls = np.unique(features.targets)
        if self.is_resuming or not len(urls):
            return np.zeros(len(features.targets)), urls, np.zeros(len(urls))
        past = self._crawled.latest_snapshot()
        evidence = self._joined.add(past, np.arange(start, len(past.target)))
        of_links = np.round(self._joined.model.scores(features.targets, evidence), 9)
        return of_links, urls, self._joined.scores(urls)


class JoinedEvidence:
    """Combines the evidence (feature values) of all links to each URL."""

    def __init__(self, model: FittedModel, join: np.ufunc, columns: int) -> None:
        self.model = model
        self._join = join
        nothing = -np.inf if join is np.maximum else 0.0
        self._joined = [GrowingArray(np.float64, fill=nothing) for _ in range(columns)]

    def add(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Add links; return the evidence (features) of the links, float64 (n_links, columns)."""
        if not len(links):
            return np.zeros((0, len(self._joined)))
        evidence, targets = self.model.evidence(past, links), past.target[links]
        for joined, column in zip(self._joined, evidence.T, strict=True):
            joined.grow(len(past.relevance))
            self._join.at(joined.data, targets, column)
        return evidence

    def scores(self, urls: Ints) -> Floats:
        """Return the score of each URL from the combined evidence of all links to the URL."""
        evidence = np.stack([joined.data[urls] for joined in self._joined], axis=1)
        # rounded, since the last bits depend on the number of URLs scored together
        return np.round(self.model.scores(urls, evidence), 9)


class HashedNaiveBayes:
    """Multinomial naive Bayes with Laplace smoothing (methods.md 2) over rows of hashed words.

    Words of a text are correlated, so naive Bayes gives a text of a few hundred words a posterior
    probability of almost 0 or 1. Many links would then have equal scores. So a text with more than
    `length` words counts like a text of `length` words. Words that do not occur in the training
    texts are ignored.

    Parameters
    ----------
    rows : SparseRows
        Words of the training texts.
    labels : NDArray[np.int64] of shape (n_texts,)
        Classes of the texts.
    n_classes : int
        Number of classes; a class without texts has probability 0.
    length : float
        Number of words that a text counts for at most.
    weight : NDArray[np.float64] of shape (n_texts,), or None
        Weight of each text; 1 by default.
    """

    def __init__(
        self,
        rows: SparseRows,
        labels: Ints,
        n_classes: int,
        *,
        length: float,
        weight: Floats | None = None,
    ) -> None:
        each = np.ones(len(labels)) if weight is None else weight
        self._length = length
        space = 1 << BITS
        cell = np.repeat(labels, rows.lengths) * space + rows.indices
        counts = np.bincount(cell, np.repeat(each, rows.lengths), n_classes * space)
        counts = counts.reshape(n_classes, space)
        seen = np.flatnonzero(counts.any(axis=0))
        self._log = np.zeros((n_classes, space), np.float32)
        self._log[:, seen] = log_theta(counts[:, seen].T).T
        self._seen = np.zeros(space, np.float32)
        self._seen[seen] = 1.0
        texts = np.bincount(labels, each, n_classes)
        with np.errstate(divide="ignore"):
            self._prior = np.log(texts / max(texts.sum(), 1e-300))

    def log_likelihood(self, rows: SparseRows) -> Floats:
        """Return the log-likelihood of each text in each class, of shape (n_texts, n_classes)."""
        found = np.empty((len(rows), len(self._log)))
        for start in range(0, len(rows), _SLICE):
            part = rows.take(np.arange(start, min(start + _SLICE, len(rows))))
            read = row_sums(self._seen[part.indices], part.indptr)
            scale = np.minimum(1.0, self._length / np.maximum(read, 1.0))
            for number, log in enumerate(self._log):
                sum_by_group = row_sums(log[part.indices], part.indptr)
                found[start : start + _SLICE, number] = sum_by_group * scale
        return found

    def posterior(self, likelihood: Floats) -> Floats:
        """Return Pr(class|text) of each text, computed from the log-likelihoods."""
        return softmax(likelihood + self._prior)


def softmax(log: Floats) -> Floats:
    """Return the softmax of each row of `log`: the exponentials, scaled so that their sum is 1."""
    chance = np.exp(log - log.max(axis=1, keepdims=True))
    found: Floats = chance / chance.sum(axis=1, keepdims=True)
    return found


class PageWordReader:
    """Extracts hashed words of pages, link anchors and link URLs."""

    def page(self, page: JudgedPage) -> NDArray[np.int32]:
        """Return the distinct words of a page in ascending order."""
        words = hash_features(page.view.words.hashes, _PAGE, BITS)
        distinct, at = np.unique(words, return_index=True)
        if len(distinct) > _MOST:
            distinct = distinct[at <= np.partition(at, _MOST - 1)[_MOST - 1]]
        return distinct

    def addresses(self, page: JudgedPage) -> SparseRows:
        """Return the words in the URL of each link that may be followed."""
        urls = page.view.links.urls
        texts = [urls[i].partition("//")[2] for i in page.links.tolist()]
        return word_features(texts, _ADDRESS, BITS)

    def surroundings(self, page: JudgedPage) -> SparseRows:
        """Return the words in the anchor and near the link, for each link that may be followed."""
        links, view = page.view.links, page.view
        words = view.words.hashes
        first = np.searchsorted(view.token_leaf, links.left[page.links])
        last = np.searchsorted(view.token_leaf, links.right[page.links], side="right")
        last = np.minimum(last, first + 2 * _AROUND)
        begin = np.maximum(first - _AROUND, 0)
        end = np.minimum(last + _AROUND, len(words))
        starts = np.stack([begin, first, last], axis=1)
        spans = np.stack([first - begin, last - first, end - last], axis=1)
        kinds = np.tile(np.array([_NEAR, _ANCHOR, _NEAR], np.uint64), len(starts))
        at = multi_arange(starts.ravel(), spans.ravel())
        salt = np.repeat(kinds, spans.ravel())
        return SparseRows(hash_features(words[at], salt, BITS), row_pointers(spans.sum(axis=1)))


def click_distances(source: Ints, target: Ints, goals: Bools, *, limit: int) -> Ints:
    """Return the number of clicks from each URL to the nearest of the pages `goals`.

    Parameters
    ----------
    source, target : NDArray[np.int64] of shape (n_links,)
        URLs at both ends of each link.
    goals : NDArray[np.bool_] of shape (n_urls,)
        Goals, which have distance 0.
    limit : int
        Longest distance computed; URLs without a path of at most `limit` clicks get `FAR`.
    """
    n = len(goals)
    links = sparse.csr_matrix((np.ones(len(source), np.float32), (source, target)), shape=(n, n))
    found = np.where(goals, 0, FAR)
    for step in range(1, limit + 1):
        ring = (found == step - 1).astype(np.float32)
        if not ring.any():
            break
        found[(links @ ring > 0) & (found == FAR)] = step
    return found


class Intelligent(BatchLearner):
    """The priority of a URL is a product of four interest ratios, one per kind of evidence.

    The source is Aggarwal, Al-Garawi and Yu, Intelligent crawling on the World Wide Web with
    arbitrary predicates, WWW10 (2001). An interest ratio of a URL v is Pr(R(v) > 1/2 | evidence) /
    Pr(R(v) > 1/2), where R(v) is the relevance of v. The probabilities are estimated from the
    fetched URLs. The strategy computes an interest ratio for each of the following four kinds of
    evidence:

    - The evidence *content* consists of significant words of the pages that link to the URL v.
    - The evidence *URL* consists of significant words of the URL v.
    - The evidence *link* consists of the numbers of relevant and of other pages that link to the
      URL v.
    - The evidence *sibling* is the number of relevant URLs among the fetched URLs that share a
      linking page with the URL v.

    The logarithms of the four interest ratios are scaled so that all four have the same mean
    effect on the scores of queued URLs. The score of a URL is the sum of the four logarithms,
    weighted by the options `content`, `url`, `link` and `sibling`. Until the first relevant page
    is found, the crawl is breadth-first.

    Parameters
    ----------
    content, url, link, sibling : float
        Weights of the four kinds.
    batch, growth : int, float
        See `BatchLearner`.
    """

    join: ClassVar[np.ufunc] = np.add
    columns: ClassVar[int] = 6

    def __init__(
        self,
        context: StrategyContext,
        *,
        content: float = 1.0,
        url: float = 1.0,
        link: float = 1.0,
        sibling: float = 1.0,
        batch: int = 25,
        growth: float = 0.02,
    ) -> None:
        check_number("intelligent: content", content, 0.0)
        check_number("intelligent: url", url, 0.0)
        check_number("intelligent: link", link, 0.0)
        check_number("intelligent: sibling", sibling, 0.0)
        self._weights = np.array([content, url, link, sibling])
        self._words = PageWordReader()
        super().__init__("intelligent", batch, growth)

    def read(self, page: JudgedPage) -> PathFeatures:
        """Return the hashed words of the page and of the URLs of the page's links."""
        return PathFeatures(page.targets, self._words.page(page), self._words.addresses(page))

    def initial_model(self) -> InterestRatios:
        """Return the untrained model, which gives every URL the same score."""
        none = np.zeros(_SPACE)
        return InterestRatios(0.5, none, none, np.zeros(2), np.zeros(4))

    def fit(self, past: LinkSnapshot) -> InterestRatios:
        """Estimate interest ratios (see `Intelligent`) from links whose targets are fetched."""
        links = np.flatnonzero(past.first & ~np.isnan(past.relevance[past.target]))
        target, page = past.target[links], past.page[links]
        urls, first, of = np.unique(target, return_index=True, return_inverse=True)
        good = past.relevance[urls] > 0.5
        base = (good.sum() + 1.0) / (len(urls) + 2.0)
        share = 1.0 / np.bincount(of)[of] if len(links) else np.zeros(0)
        lengths = past.page_words.lengths

        def count(each: Floats) -> Floats:
            """Count the words of the pages with the links, each link with a weight."""
            of_pages = sum_by_group(page, each, len(lengths))
            return sum_by_group(past.page_words.indices, np.repeat(of_pages, lengths), _SPACE)

        addresses = past.link_words.take(links[first])
        seen = np.ones(len(addresses.indices))
        marked = np.repeat(good.astype(np.float64), addresses.lengths)
        words = addresses.indices
        from_good = (past.relevance[past.source[links]] > 0.5).astype(np.int64)
        model = InterestRatios(
            base=float(base),
            words=_significant_log_ratios(count(share * good[of]), count(share), base),
            addresses=_significant_log_ratios(
                sum_by_group(words, marked, _SPACE), sum_by_group(words, seen, _SPACE), base
            ),
            sources=log_ratio(
                sum_by_group(from_good, good[of], 2),
                sum_by_group(from_good, np.ones(len(of)), 2),
                base,
            ),
            weights=np.ones(4),
            instances=len(urls),
            metrics={"relevant": float(good.sum()), "outstanding_words": 0.0},
        )
        model.metrics["outstanding_words"] = float(np.count_nonzero(model.words))
        return replace(model, weights=self._weights / self._spread(model, past))

    def _spread(self, model: InterestRatios, past: LinkSnapshot) -> Floats:
        """Return the mean effect of each kind on the scores of queued URLs, of shape (4,)."""
        queued = past.queued
        if not len(queued):
            return np.ones(4)
        links = np.flatnonzero(np.isnan(past.relevance[past.target]))
        evidence = model.evidence(past, links)
        joined = [
            sum_by_group(past.target[links], column, len(past.relevance))[queued]
            for column in evidence.T
        ]
        spread = np.abs(model.logs(np.stack(joined, axis=1))).mean(axis=0)
        return np.where(spread > 0.0, spread, 1.0)


@dataclass(frozen=True, slots=True)
class InterestRatios(FittedModel):
    """Logarithms of interest ratios."""

    base: float  # share of relevant URLs among all fetched URLs
    words: Floats  # of words of pages; 0 for words that are not significant
    addresses: Floats  # of words of URLs
    sources: Floats  # of links from pages that are not relevant, and from relevant pages
    weights: Floats  # of content, URL, link and sibling

    def evidence(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Return the evidence (see `Intelligent`) of each link in six columns.

        The columns are the constant 1, the logarithms of the ratios for content, URL and link, the
        number of fetched siblings, and the number of relevant siblings.
        """
        pages, at = np.unique(past.page[links], return_inverse=True)
        rows = past.page_words.take(pages)
        content = row_sums(self.words[rows.indices], rows.indptr)[at]
        addresses = past.link_words.take(links)
        url = row_sums(self.addresses[addresses.indices], addresses.indptr)
        source = self.sources[(past.relevance[past.source[links]] > 0.5).astype(np.int64)]
        begin, end = np.searchsorted(past.page, [pages[0], pages[-1] + 1])
        children = begin + np.flatnonzero(past.first[begin:end])
        seen = past.relevance[past.target[children]]
        page = past.page[children]
        fetched = np.bincount(page, ~np.isnan(seen), int(pages[-1]) + 1)[pages]
        relevant = np.bincount(page, seen > 0.5, int(pages[-1]) + 1)[pages]
        columns = [np.ones(len(links)), content, url, source, fetched[at], relevant[at]]
        return np.stack(columns, axis=1) * past.first[links][:, None]

    def logs(self, evidence: Floats) -> Floats:
        """Return the logarithms of the four interest ratios of URLs, of shape (n_urls, 4)."""
        links, content, url, source, fetched, relevant = evidence.T
        links = np.maximum(links, 1.0)
        sibling = np.log((relevant + 1.0) / (self.base * fetched + 1.0))
        return np.stack([content / links, url / links, source, sibling], axis=1)

    def scores(self, urls: Ints, evidence: Floats) -> Floats:
        """Return URL scores: weighted sums of the logarithms of four interest ratios."""
        total: Floats = (self.logs(evidence) * self.weights).sum(axis=1)
        return total


def log_ratio(relevant: NDArray[np.floating], seen: NDArray[np.number], base: float) -> Floats:
    """Return logarithms of interest ratios; smoothing adds one URL of mean relevance.

    The argument `relevant` is the number of relevant URLs with a piece of evidence, and `seen` is
    the number of all URLs with the evidence. The argument `base` is the share of relevant URLs
    among all fetched URLs.
    """
    ratio: Floats = np.log((relevant + base) / (seen + 1.0) / base)
    return ratio


def _significant_log_ratios(relevant: Floats, seen: Floats, base: float) -> Floats:
    """Return the logarithms of interest ratios; 0 for ratios that chance can explain."""
    spread = np.sqrt(seen * base * (1.0 - base))
    stands_out = (seen > 0) & (np.abs(relevant - base * seen) >= _SIGNIFICANT * spread)
    return np.where(stands_out, log_ratio(relevant, seen, base), 0.0)


class ContextGraphs(BatchLearner):
    """Order links by the predicted number of clicks from the linking page to a relevant page.

    The source is Diligenti, Coetzee, Lawrence, Giles and Gori, Focused crawling using context
    graphs, VLDB (2000). Layer i contains the pages that are i clicks away from a relevant page.
    Naive Bayes with equal priors predicts the layer of a page from the words of the page. Links
    from pages of one layer are ordered by the posterior probability of the layer. The layer
    "other" contains pages whose layer has a posterior probability below `threshold`, and pages
    without a known short path to a relevant page. Links from pages of the layer "other" are
    followed after all other links, in the order found.

    In the paper of Diligenti et al., a search engine finds the pages that link to the seeds, and
    layers are built once. The class `ContextGraphs` builds the layers from the links of the crawl
    so far, and rebuilds the layers at intervals. Until the first relevant page is found, the crawl
    is breadth-first.

    Parameters
    ----------
    layers : int
        Number of layers, with layer 0.
    threshold : float
        Posterior below which a page is in the layer "other".
    length : int
        Number of words that a page counts for, see `HashedNaiveBayes`; the paper keeps 40 terms.
    memory : int
        Number of latest pages in the training set.
    batch, growth : int, float
        See `BatchLearner`.
    """

    def __init__(
        self,
        context: StrategyContext,
        *,
        layers: int = 4,
        threshold: float = 0.5,
        length: int = 40,
        memory: int = 3000,
        batch: int = 25,
        growth: float = 0.02,
    ) -> None:
        check_count("context-graphs: layers", layers, 1)
        check_number("context-graphs: threshold", threshold, 0.0, 1.0)
        check_count("context-graphs: length", length, 1)
        check_count("context-graphs: memory", memory, 1)
        self._layers = layers
        self._threshold = threshold
        self._length = length
        self._memory = memory
        self._words = PageWordReader()
        super().__init__("context-graphs", batch, growth)

    def read(self, page: JudgedPage) -> PathFeatures:
        """Return the hashed words of the page as its features."""
        return PathFeatures(
            page.targets, self._words.page(page), SparseRows.empty(len(page.links))
        )

    def initial_model(self) -> LayerModel:
        """Return the untrained model, which puts every page into the layer "other"."""
        return LayerModel(None, self._threshold)

    def fit(self, past: LinkSnapshot) -> LayerModel:
        """Train the classifier that predicts the layer of a page on the latest fetched pages."""
        relevant = past.relevance > 0.5
        away = click_distances(past.source, past.target, relevant, limit=self._layers - 1)
        label = np.minimum(away[past.pages], self._layers)[-self._memory :]
        latest = np.arange(len(past.pages))[-self._memory :]
        words = past.page_words.take(latest)
        classes = HashedNaiveBayes(words, label, self._layers + 1, length=self._length)
        found = np.bincount(label, minlength=self._layers)[: self._layers]
        metrics = {f"layer_{i}": float(n) for i, n in enumerate(found.tolist())}
        return LayerModel(classes, self._threshold, instances=len(latest), metrics=metrics)


@dataclass(frozen=True, slots=True)
class LayerModel(FittedModel):
    """Naive Bayes classifier that predicts the layer of a page (see `ContextGraphs`)."""

    classes: HashedNaiveBayes | None
    threshold: float

    def evidence(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Return a rank of each link, which is higher if its page is fewer clicks from a goal."""
        pages, at = np.unique(past.page[links], return_inverse=True)
        if self.classes is None:
            return np.zeros((len(links), 1))
        likelihood = self.classes.log_likelihood(past.page_words.take(pages))
        posterior = softmax(likelihood)
        layer = np.argmax(posterior, axis=1)
        sure = posterior[np.arange(len(pages)), layer]
        other = posterior.shape[1] - 1
        rank = np.where((sure >= self.threshold) & (layer < other), other - layer + sure, 0.0)
        return rank[at][:, None]
