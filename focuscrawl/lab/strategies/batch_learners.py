"""Models fitted to the whole crawl so far: intelligent crawling, context graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse

from focuscrawl.apprentice.hashing import (
    SparseRows,
    WordHashes,
    hash_features,
    multi_arange,
    row_pointers,
)
from focuscrawl.apprentice.learners import row_sums
from focuscrawl.critic.classifiers import log_theta
from focuscrawl.foundation.arrays import Floats, GrowingArray, Ints, sums
from focuscrawl.strategies.base import Expansion, check_count, check_number
from focuscrawl.strategies.rescoring import LinkHistory, PathFeatures, RescoringStrategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from focuscrawl.foundation.arrays import Bools
    from focuscrawl.strategies.base import JudgedPage, Scores, StoredPage, StrategyContext
    from focuscrawl.strategies.rescoring import LinkSnapshot


BITS = 17  # of the feature space
FAR = 99  # no path is known
_SPACE = 1 << BITS
_SLICE = 50_000  # texts read in one go, so that a large frontier needs little memory
_PAGE, _ADDRESS, _ANCHOR, _NEAR = 1, 2, 3, 4  # salts
_MOST = 300  # distinct words of a page that are read, the first
_AROUND = 10  # tokens looked at on either side of a link
_SIGNIFICANT = 2.0  # standard deviations by which a word has to stand out


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel(ABC):
    """What a lesson makes of the crawl so far, by `BatchLearner.fit`.

    Attributes
    ----------
    instances : how many the lesson learned from
    metrics : what the lesson found; goes to the store
    """

    instances: int = 0
    metrics: dict[str, float] = field(default_factory=dict)

    @abstractmethod
    def evidence(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Return the evidence of links, by their ascending numbers, (n, columns).

        Not called without links.
        """

    def scores(self, urls: Ints, evidence: Floats) -> Floats:
        """Return the scores of URLs by the joined evidence of their links, (n, columns)."""
        return evidence[:, 0]


class BatchLearner(RescoringStrategy["JoinedEvidence"]):
    """A strategy that keeps what the crawl has shown and fits a model to it in batches.

    Parameters
    ----------
    name : of the strategy, for messages
    batch, growth : fetches from one lesson to the next, at least and as a share of all fetches,
        so that lessons cost each fetch the same at any age of the crawl
    """

    period_option = "batch"
    #: how the evidence of several links into one URL is joined: `numpy.maximum` or `numpy.add`
    join: ClassVar[np.ufunc] = np.maximum
    columns: ClassVar[int] = 1

    def __init__(self, name: str, batch: int, growth: float) -> None:
        self._crawled = LinkHistory()
        super().__init__(name, batch, growth, self._crawled)
        self._joined = JoinedEvidence(self.initial_model(), self.join, self.columns)

    @abstractmethod
    def read(self, page: JudgedPage) -> PathFeatures:
        """Take from a page what will be learned from."""

    @abstractmethod
    def initial_model(self) -> FittedModel:
        """Return the model that scores links until there was something to learn from."""

    @abstractmethod
    def fit(self, past: LinkSnapshot) -> FittedModel:
        """Learn from the crawl so far; may run beside all other methods."""

    def expand(self, page: JudgedPage) -> Expansion:
        """Score the links of `page`, and the URLs they lead to, by all links into them."""
        features = self.read(page)
        link_scores, urls, scores = self._take_in(page.url, features)
        return Expansion(link_scores, urls, scores, memo=features.to_bytes())

    def restore_page(self, page: StoredPage) -> Scores:
        """Take in the links of an earlier run."""
        assert page.memo is not None
        _, urls, scores = self._take_in(page.url, PathFeatures.from_bytes(page.memo))
        return urls, scores

    def interval(self) -> int:
        """Return how many fetches come between two lessons by now."""
        return int(super().interval())

    def is_training_due(self) -> bool:
        """Tell whether a batch is complete and anything relevant was seen yet."""
        return self._crawled.relevant > 0 and super().is_training_due()

    def fit_model(self, observed: int, pages: int) -> tuple[JoinedEvidence, Scores]:
        """Fit a model to the crawl so far, and score by it what waits."""
        past = self._crawled.snapshot_at(observed, pages)
        joined = JoinedEvidence(self.fit(past), self.join, self.columns)
        # what was fetched never waits again
        joined.add(past, np.flatnonzero(np.isnan(past.relevance[past.target])))
        waiting = past.queued
        return joined, (waiting, joined.scores(waiting))

    def use_model(self, model: JoinedEvidence, pages: int) -> Scores:
        """Score by a model, over the links of later pages too."""
        self._joined, past = model, self._crawled.latest_snapshot()
        later = np.arange(self._crawled.count_links(pages), len(past.target))
        model.add(past, later)
        urls = np.unique(past.target[later])
        return urls, model.scores(urls)

    def describe(self, model: JoinedEvidence, pages: int) -> tuple[int, Mapping[str, float]]:
        """Return instances and metrics of a lesson."""
        return model.of.instances, model.of.metrics

    def _take_in(self, url: int, features: PathFeatures) -> tuple[Floats, Ints, Floats]:
        """Return the scores of links, the distinct URLs they lead to, and the scores of these."""
        start = self._crawled.add(url, features)
        urls = np.unique(features.targets)
        if self.is_resuming or not len(urls):
            return np.zeros(len(features.targets)), urls, np.zeros(len(urls))
        past = self._crawled.latest_snapshot()
        evidence = self._joined.add(past, np.arange(start, len(past.target)))
        of_links = np.round(self._joined.of.scores(features.targets, evidence), 9)
        return of_links, urls, self._joined.scores(urls)


class JoinedEvidence:
    """The evidence of all links into each URL, joined, by the model `of`."""

    def __init__(self, of: FittedModel, join: np.ufunc, columns: int) -> None:
        self.of = of
        self._join = join
        nothing = -np.inf if join is np.maximum else 0.0
        self._joined = [GrowingArray(np.float64, fill=nothing) for _ in range(columns)]

    def add(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Take in the evidence of links; return it, float64 (n, columns)."""
        if not len(links):
            return np.zeros((0, len(self._joined)))
        evidence, targets = self.of.evidence(past, links), past.target[links]
        for joined, column in zip(self._joined, evidence.T, strict=True):
            joined.grow(len(past.relevance))
            self._join.at(joined.data, targets, column)
        return evidence

    def scores(self, urls: Ints) -> Floats:
        """Return the scores of URLs that have links."""
        evidence = np.stack([joined.data[urls] for joined in self._joined], axis=1)
        # the last bits depend on how many URLs are scored in one go
        return np.round(self.of.scores(urls, evidence), 9)


class HashedNaiveBayes:
    """Multinomial naive Bayes, Laplace-smoothed (methods 2), over rows of hashed words.

    Words repeat each other, and a text of some hundred makes every posterior 0 or 1: nothing
    would be left to order links by. So a longer text counts as one of `length` words.

    Parameters
    ----------
    rows : n texts to learn from
    labels : int64 (n,), their classes
    n_classes : how many classes there are; one without texts gets no text
    length : words that a text counts for at most
    weight : float64 (n,), what each text counts; 1 by default

    Notes
    -----
    Words that were never seen in training are ignored.
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
        """Return the log-likelihood of n texts in each class, without priors: (n, n_classes)."""
        found = np.empty((len(rows), len(self._log)))
        for start in range(0, len(rows), _SLICE):
            part = rows.take(np.arange(start, min(start + _SLICE, len(rows))))
            read = row_sums(self._seen[part.indices], part.indptr)
            scale = np.minimum(1.0, self._length / np.maximum(read, 1.0))
            for number, log in enumerate(self._log):
                sums = row_sums(log[part.indices], part.indptr)
                found[start : start + _SLICE, number] = sums * scale
        return found

    def posterior(self, likelihood: Floats) -> Floats:
        """Return Pr(class|text) by the log-likelihoods of n texts (n, n_classes)."""
        return softmax(likelihood + self._prior)


def softmax(log: Floats) -> Floats:
    """Return exp(log) (n, k), each row scaled to the sum 1."""
    chance = np.exp(log - log.max(axis=1, keepdims=True))
    found: Floats = chance / chance.sum(axis=1, keepdims=True)
    return found


class PageWordReader:
    """Reads words from pages."""

    def __init__(self) -> None:
        self._hashes = WordHashes()

    def page(self, page: JudgedPage) -> NDArray[np.int32]:
        """Return the distinct words of a page, int32, ascending."""
        words = hash_features(page.view.words.hashes, _PAGE, BITS)
        distinct, at = np.unique(words, return_index=True)
        if len(distinct) > _MOST:
            distinct = distinct[at <= np.partition(at, _MOST - 1)[_MOST - 1]]
        return distinct

    def addresses(self, page: JudgedPage) -> SparseRows:
        """Return the words of the URL of each followable link."""
        urls = page.view.links.urls
        texts = [urls[i].partition("//")[2] for i in page.links.tolist()]
        return self._hashes.rows(texts, _ADDRESS, BITS)

    def surroundings(self, page: JudgedPage) -> SparseRows:
        """Return the words inside each followable link, and those near it."""
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
    """Return the clicks from each URL to the nearest goal.

    Parameters
    ----------
    source, target : int64 (n_links,), the ends of the links
    goals : bool (n_urls,), the goals; their distance is 0
    limit : longest distance looked for

    Returns
    -------
    int64 (n_urls,), `FAR` where no path of at most `limit` clicks is known
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
    """Priority of v = the product of its interest ratios, of four kinds.

    An interest ratio is Pr(R(v) > 1/2 | what is known of v) / Pr(R(v) > 1/2), over what was
    fetched. *Content*: the words of the pages that link to v, those that stand out; pages count
    by their mean. *URL*: the words of v's address, likewise. *Link*: how many relevant and other
    pages link to v, a ratio for each. *Sibling*: relevant among the fetched URLs which these
    pages link to, against what was to be expected. The logarithms are weighed so that each kind
    moves the scores of the frontier equally on average, then as the options say, and added.

    While nothing relevant is known all scores are 0: the crawl is breadth-first.

    Parameters
    ----------
    content, url, link, sibling : weights of the four kinds
    batch, growth : see `BatchLearner`
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
        """Take the words of the page and of the URLs it links to."""
        return PathFeatures(page.targets, self._words.page(page), self._words.addresses(page))

    def initial_model(self) -> InterestRatios:
        """Return the model to which all URLs are equal."""
        none = np.zeros(_SPACE)
        return InterestRatios(0.5, none, none, np.zeros(2), np.zeros(4))

    def fit(self, past: LinkSnapshot) -> InterestRatios:
        """Learn the ratios from the URLs fetched so far that had links."""
        links = np.flatnonzero(past.first & ~np.isnan(past.relevance[past.target]))
        target, page = past.target[links], past.page[links]
        urls, first, of = np.unique(target, return_index=True, return_inverse=True)
        good = past.relevance[urls] > 0.5
        base = (good.sum() + 1.0) / (len(urls) + 2.0)
        share = 1.0 / np.bincount(of)[of] if len(links) else np.zeros(0)
        lengths = past.page_words.lengths

        def count(each: Floats) -> Floats:
            """Count the words of the pages that links with these weights are on."""
            of_pages = sums(page, each, len(lengths))
            return sums(past.page_words.indices, np.repeat(of_pages, lengths), _SPACE)

        addresses = past.link_words.take(links[first])
        seen = np.ones(len(addresses.indices))
        marked = np.repeat(good.astype(np.float64), addresses.lengths)
        words = addresses.indices
        from_good = (past.relevance[past.source[links]] > 0.5).astype(np.int64)
        model = InterestRatios(
            base=float(base),
            words=_significant_log_ratios(count(share * good[of]), count(share), base),
            addresses=_significant_log_ratios(
                sums(words, marked, _SPACE), sums(words, seen, _SPACE), base
            ),
            sources=log_ratio(
                sums(from_good, good[of], 2), sums(from_good, np.ones(len(of)), 2), base
            ),
            weights=np.ones(4),
            instances=len(urls),
            metrics={"relevant": float(good.sum()), "outstanding_words": 0.0},
        )
        model.metrics["outstanding_words"] = float(np.count_nonzero(model.words))
        return replace(model, weights=self._weights / self._spread(model, past))

    def _spread(self, model: InterestRatios, past: LinkSnapshot) -> Floats:
        """Return how far each kind moves the scores of what waits, on average; float64 (4,)."""
        waiting = past.queued
        if not len(waiting):
            return np.ones(4)
        links = np.flatnonzero(np.isnan(past.relevance[past.target]))
        evidence = model.evidence(past, links)
        joined = [
            sums(past.target[links], column, len(past.relevance))[waiting] for column in evidence.T
        ]
        spread = np.abs(model.logs(np.stack(joined, axis=1))).mean(axis=0)
        return np.where(spread > 0.0, spread, 1.0)


@dataclass(frozen=True, slots=True)
class InterestRatios(FittedModel):
    """Logarithms of interest ratios.

    Attributes
    ----------
    base : share of relevant URLs, about 1/2 before anything is known
    words, addresses : float64 (2^BITS,), of words of pages and addresses, 0 unless outstanding
    sources : float64 (2,), of a link from a page that is not relevant, and one that is
    weights : float64 (4,), of content, URL, link and sibling
    """

    base: float
    words: Floats
    addresses: Floats
    sources: Floats
    weights: Floats

    def evidence(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Return of each link 1, content, URL, link, siblings and relevant siblings."""
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
        """Return the logarithms of the four ratios of URLs, (n, 4), by all links into them."""
        links, content, url, source, fetched, relevant = evidence.T
        links = np.maximum(links, 1.0)
        sibling = np.log((relevant + 1.0) / (self.base * fetched + 1.0))
        return np.stack([content / links, url / links, source, sibling], axis=1)

    def scores(self, urls: Ints, evidence: Floats) -> Floats:
        """Return the weighted sum of the four logarithms."""
        total: Floats = (self.logs(evidence) * self.weights).sum(axis=1)
        return total


def log_ratio(relevant: NDArray[np.floating], seen: NDArray[np.number], base: float) -> Floats:
    """Return the logarithms of interest ratios.

    One more case, as relevant as any, is taken as seen.

    Parameters
    ----------
    relevant, seen : (n,), relevant and all URLs of which something is known
    base : share of relevant URLs among all
    """
    ratio: Floats = np.log((relevant + base) / (seen + 1.0) / base)
    return ratio


def _significant_log_ratios(relevant: Floats, seen: Floats, base: float) -> Floats:
    """Return the logarithms of interest ratios, 0 where chance can explain them."""
    spread = np.sqrt(seen * base * (1.0 - base))
    stands_out = (seen > 0) & (np.abs(relevant - base * seen) >= _SIGNIFICANT * spread)
    return np.where(stands_out, log_ratio(relevant, seen, base), 0.0)


class ContextGraphs(BatchLearner):
    """Priority of v = how few clicks from a relevant page u seems to be, then how surely.

    Layer i holds the pages i clicks from a relevant page; a page's layer is guessed by naive Bayes
    over its words, each layer as likely as any other beforehand. A page whose best
    layer is not likely enough is "other", and so is one that looks like those of which no near
    relevant page is known: what they link to comes last, in the order found.

    The paper draws its layers once, backwards from the seeds, with the help of a search engine.
    Here they are those of the crawl so far, over the links known, drawn again in batches. Until
    the first relevant page every page is "other": the crawl is breadth-first.

    Parameters
    ----------
    layers : how many there are, layer 0 included
    threshold : posterior below which a page is "other"
    length : words that a page counts for, see `HashedNaiveBayes`; the paper keeps 40 terms of each
    memory : pages learned from, the latest: bounds the cost of a lesson
    batch, growth : see `BatchLearner`
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
        """Take the words of the page."""
        return PathFeatures(
            page.targets, self._words.page(page), SparseRows.empty(len(page.links))
        )

    def initial_model(self) -> LayerModel:
        """Return the model for which every page is "other"."""
        return LayerModel(None, self._threshold)

    def fit(self, past: LinkSnapshot) -> LayerModel:
        """Learn the layers of the pages so far."""
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
    """A naive Bayes classifier of layers, the last of which is "other"; None: all is "other"."""

    classes: HashedNaiveBayes | None
    threshold: float

    def evidence(self, past: LinkSnapshot, links: Ints) -> Floats:
        """Return the rank of the page each link is on: layers above "other", and posterior."""
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
