"""A critic from what people have: a phrase, a few good pages, perhaps bad ones.

Two scorers are learned and added up, each measured in standard deviations of *unlabelled* pages,
that is pages as the crawl will meet them, few of which are on the topic:

- the *query*: how much of its words a page has, weighed by TF-IDF, and how near its meaning is
  (cosines; the latter with embeddings only);
- *examples*: logistic regression of the good pages against the unlabelled and the bad ones, all
  good ones together weighing as much as all others (training from positive and unlabelled
  examples [Elkan and Noto 2008]).

Each weighs as much as the square of how far the good pages stand out by it, where they are
examples when they are held out. The unlabelled pages that stand out most then join the good
ones, with less weight (pseudo relevance feedback), and the second scorer is learned once more.
What stands out four fifths as far as the good pages do is taken to be on the topic as likely as
not: where many of the unlabelled pages are on it, no page stands out far from them. But two
standard deviations are always enough: good pages that a crawl has found are more alike than
those of the topic, and stand out further by that.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.bag_of_words import TrainingRows
from focuscrawl.critic.classifiers import (
    LinearModel,
    LogisticModel,
    NaiveBayes,
    as_matrix,
    fit_logistic,
)
from focuscrawl.critic.languages import ENGLISH, detect_languages, generate_pages, to_terms
from focuscrawl.critic.page_vectors import PageVectors
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, word_forms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.languages import LanguageShares
    from focuscrawl.foundation.arrays import Ints


#: mean and standard deviation, over pages, of the cosine of a query by words and by meaning, where
#: no page has been seen: as the recorded webs have them with English as the background
_DEFAULT_COSINES = ((0.015, 0.03), (0.11, 0.11))
#: standard deviation of their sum
_DEFAULT_SUM_SPREAD = 1.75
#: R = 1/2 where a page stands out by such a share of what the good pages do; in standard
#: deviations at least, and at most and where no page has shown it
_THRESHOLD_SHARE, _MIN_THRESHOLD, _MAX_THRESHOLD = 0.8, 1.5, 2.0
#: log-odds of a standard deviation
_SLOPE = 2.0
#: pages that stand out most join the good ones: so many, where there are examples and where not
_FEEDBACK_PAGES, _FEEDBACK_PAGES_QUERY_ONLY = 5, 10
#: good pages are taken to stand out so far, until so many have shown how far they do
_PRIOR_SCORE, _PRIOR_PAGES = 2.5, 4
_FOLDS = 5
#: standard deviation of a scorer that says the same of all unlabelled pages, of words that none
#: has: pages that have them would stand out without limit
_MIN_SPREAD = 0.01
_MIN_SEPARATION = 0.5  # standard deviation, 1 for a scorer that has measured its own
#: what each that joins weighs, beside a good one
_FEEDBACK_WEIGHT = 0.2
#: of a bad page, beside an unlabelled one
_BAD_WEIGHT = 10.0
_NO_PAGES = np.zeros(0, np.intp)
_N_GENERATED_PAGES = 300  # pages
_MIN_UNLABELLED = 60  # pages that stand for others; fewer are joined by pages of everyday words
#: for those who read links, phrases are a page that has each word so often
_PHRASE_COUNT = 10

_PAGES_PER_CLUSTER = 15  # pages of a kind off the topic, on average
_MAX_CLUSTERS = 40  # clusters
_LSA_DIMENSIONS = 40  # latent ones (LSA), in which clusters are told apart
_KMEANS_RUNS = 3  # of first centres, the best of which counts


class Scorer(NamedTuple):
    """A linear function of page vectors: standard deviations above the mean of unlabelled pages.

    Attributes
    ----------
    weights : float64 (n_words + dimensions,)
    intercept : what makes the mean 0
    threshold : standard deviations at which R = 1/2
    """

    weights: NDArray[np.float64]
    intercept: float
    threshold: float = _MAX_THRESHOLD

    def log_odds(self, pages: sparse.csr_matrix) -> NDArray[np.float64]:
        """Return the log-odds of the topic of n pages, rows of a matrix; float64 (n,)."""
        above: NDArray[np.float64] = pages @ self.weights + self.intercept
        return _SLOPE * (above - self.threshold)

    def linear(self, topic: str) -> LinearModel:
        """Return the scorer as log-odds of a topic against ``/bad``."""
        weights = _SLOPE * self.weights[:, None]
        intercept = np.array([_SLOPE * (self.intercept - self.threshold)])
        if topic < OFF_TOPIC:  # the log-odds are those of the second class
            return LinearModel((topic, OFF_TOPIC), -weights, -intercept)
        return LinearModel((OFF_TOPIC, topic), weights, intercept)


class TrainingPages(NamedTuple):
    """Pages to learn from, each part a matrix (n_pages, n_words + dimensions)."""

    good: sparse.csr_matrix
    bad: sparse.csr_matrix
    unlabelled: sparse.csr_matrix


def fit_few_shot(
    phrases: Sequence[Sequence[str]] = (),
    good: Sequence[Bag] = (),
    bad: Sequence[Bag] = (),
    unlabelled: Sequence[Bag] = (),
    *,
    topic: str = ON_TOPIC,
    embeddings: bool,
    languages: LanguageShares | None = None,
) -> LogisticModel:
    """Learn a critic of two classes, the topic and ``/bad``.

    Parameters
    ----------
    phrases : words of each phrase; one is as good as another
    good, bad : words of pages that are on the topic, and that are not
    unlabelled : words of pages as the crawl will meet them, a hundred or more
    topic : name of the class of the topic
    embeddings : whether to use word embeddings; they must be installed
    languages : that pages are in; None for those that they seem to be in
    """
    if not phrases and not good:
        raise ValueError("nothing says what the topic is")
    if languages is None:
        languages = detect_languages(unlabelled, [*good, *bad], phrases)
    vectors, pages = vectorize_pages(
        phrases, good, bad, unlabelled, embeddings=embeddings, languages=languages
    )
    from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only

    scorer = fit_scorer(vectors, phrases, pages)
    relevant = scorer.log_odds(pages.unlabelled) > 0.0
    on = [*good, *(bag for bag, yes in zip(unlabelled, relevant, strict=True) if yes)]
    off = [*bad, *(bag for bag, yes in zip(unlabelled, relevant, strict=True) if not yes)]
    clusters = cluster_pages(
        sparse.csr_matrix(sparse.vstack([pages.bad, pages.unlabelled[~relevant]]))
    )
    link_model = _fit_link_model(topic, phrases, on, off, clusters=clusters, languages=languages)
    return LogisticModel(vectors, scorer.linear(topic), link_model)


def vectorize_pages(
    phrases: Sequence[Sequence[str]],
    good: Sequence[Bag],
    bad: Sequence[Bag],
    unlabelled: Sequence[Bag],
    *,
    embeddings: bool,
    languages: LanguageShares = ENGLISH,
) -> tuple[PageVectors, TrainingPages]:
    """Make vectors of what there is to learn from; parameters as in `fit_few_shot`."""
    kept = {form for phrase in phrases for word in phrase for form in word_forms(word, languages)}
    kept.update(*good, *bad)
    vectors = PageVectors.fit(unlabelled, kept, embeddings=embeddings, languages=languages)
    rows = as_matrix(vectors.transform([*unlabelled, *bad, *good]), len(vectors.words))
    labelled = rows[len(unlabelled) :]
    return vectors, TrainingPages(
        labelled[len(bad) :], labelled[: len(bad)], rows[: len(unlabelled)]
    )


def fit_scorer(
    vectors: PageVectors, phrases: Sequence[Sequence[str]], pages: TrainingPages
) -> Scorer:
    """Learn as `fit_few_shot` does, from pages that are vectors already."""
    training = _ScorerTraining(vectors, pages)
    query = [training.fit_query(phrases)] if phrases else []
    if not pages.good.shape[0]:
        if not training.has_spread(query[0]):
            return query[0]
        feedback = training.top_unlabelled(query[0], _FEEDBACK_PAGES_QUERY_ONLY)
        return training.combine([*query, training.fit_examples(feedback)], (1.0, 1.0))
    without = training.fit_folds()
    weights = training.component_weights(query, without)
    both = training.combine([*query, training.fit_examples(_NO_PAGES)], weights)
    feedback = training.top_unlabelled(both, _FEEDBACK_PAGES)
    scorer = training.combine([*query, training.fit_examples(feedback)], weights)
    held_out = [(out, training.combine([*query, rest], weights)) for out, rest in without]
    threshold = _THRESHOLD_SHARE * training.expected_score(held_out)
    return scorer._replace(threshold=min(max(threshold, _MIN_THRESHOLD), _MAX_THRESHOLD))


def fit_phrases(
    phrases: Sequence[Sequence[str]],
    *,
    topic: str = ON_TOPIC,
    embeddings: bool,
    languages: LanguageShares | None = None,
) -> LogisticModel:
    """Learn a critic as `fit_few_shot` does, from phrases alone: no page has been seen.

    Document frequencies and the centre of meaning are those of the languages, as they are written.
    """
    if languages is None:
        languages = detect_languages((), (), phrases)
    kept = {form for phrase in phrases for word in phrase for form in word_forms(word, languages)}
    pages = generate_pages(_N_GENERATED_PAGES, 0, languages)
    vectors = PageVectors.fit(pages, kept, embeddings=embeddings, languages=languages)
    scorers = [
        Scorer(weights / spread, -mean / spread)
        for weights, (mean, spread) in zip(
            _query_weights(vectors, phrases), _DEFAULT_COSINES, strict=False
        )
    ]
    spread = _DEFAULT_SUM_SPREAD if len(scorers) > 1 else 1.0
    scorer = Scorer(
        np.sum([each.weights for each in scorers], axis=0) / spread,
        sum(each.intercept for each in scorers) / spread,
    )
    clusters = np.zeros(len(pages), np.int64)  # drawn word by word, they are all of one
    link_model = _fit_link_model(topic, phrases, (), pages, clusters=clusters, languages=languages)
    return LogisticModel(vectors, scorer.linear(topic), link_model)


def generate_filler_pages(found: int, random_state: int, languages: LanguageShares) -> list[Bag]:
    """Return pages of everyday words where there are too few others to tell what stands out.

    Drawn word by word they are more alike than pages are: among many of them all pages stand out.
    """
    return (
        generate_pages(_MIN_UNLABELLED - found, random_state, languages)
        if found < _MIN_UNLABELLED
        else []
    )


class _ScorerTraining:
    """Pages as one matrix, those without a label first."""

    def __init__(self, vectors: PageVectors, pages: TrainingPages) -> None:
        from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only

        self._vectors = vectors
        self._n = pages.unlabelled.shape[0]
        self._pages = sparse.csr_matrix(sparse.vstack([pages.unlabelled, pages.bad, pages.good]))
        others = np.ones(self._n + pages.bad.shape[0])
        others[self._n :] = _BAD_WEIGHT
        self._weight = np.concatenate([others, np.ones(pages.good.shape[0])])
        self._good = np.arange(len(self._weight)) >= len(others)

    def fit_query(self, phrases: Sequence[Sequence[str]]) -> Scorer:
        """Return the scorer that the phrases are."""
        scorers = [self._standardised(each) for each in _query_weights(self._vectors, phrases)]
        return self.combine(scorers, (1.0, 1.0))

    def fit_folds(self) -> list[tuple[NDArray[np.intp], Scorer]]:
        """Return numbers of good pages, and the scorer learned from the other ones, for each fold.

        There is none with one good page.
        """
        good = np.flatnonzero(self._good)
        folds = [good[fold::_FOLDS] for fold in range(min(_FOLDS, len(good)))]
        return [(out, self.fit_examples(_NO_PAGES, out)) for out in folds] if len(good) > 1 else []

    def component_weights(
        self, query: Sequence[Scorer], without: Sequence[tuple[NDArray[np.intp], Scorer]]
    ) -> list[float]:
        """Return what a query, if any, and examples weigh: by how far good pages stand out.

        Parameters
        ----------
        without : as `held_out` returns it
        """
        good = np.flatnonzero(self._good)
        expected = [self.expected_score([(good, scorer)]) for scorer in query] + [
            self.expected_score(without)
        ]
        return [max(each, 0.1) ** 2 for each in expected]

    def expected_score(self, judged: Sequence[tuple[NDArray[np.intp], Scorer]]) -> float:
        """Return how far good pages stand out, from how far some do, each by its scorer."""
        found: list[float] = []
        for pages, scorer in judged:
            found.extend(self._pages[pages] @ scorer.weights + scorer.intercept)
        return (sum(found) + _PRIOR_PAGES * _PRIOR_SCORE) / (len(found) + _PRIOR_PAGES)

    def fit_examples(
        self, feedback: NDArray[np.intp], without: NDArray[np.intp] = _NO_PAGES
    ) -> Scorer:
        """Return the scorer learned from the good pages, and unlabelled ones that join them.

        Parameters
        ----------
        without : numbers of good pages that are held out
        """
        positive, weight = self._good.copy(), self._weight.copy()
        if self._good.any():
            weight[feedback] = _FEEDBACK_WEIGHT
        positive[feedback] = True
        weight[without] = 0.0
        for side in (positive, ~positive):
            weight[side] *= len(weight) / (2.0 * weight[side].sum())
        labels = np.where(positive, "yes", "no")  # sorted: the log-odds are those of yes
        return self._standardised(fit_logistic(self._pages, labels, weight).weights[:, 0])

    def combine(self, scorers: Sequence[Scorer], weights: Sequence[float]) -> Scorer:
        """Add up scorers, and measure in standard deviations again."""
        parts = [scorer.weights * weight for scorer, weight in zip(scorers, weights, strict=False)]
        min_spread = 0.5 * float(
            np.linalg.norm(weights[: len(parts)])
        )  # half of what unlike ones have
        return self._standardised(np.sum(parts, axis=0), min_spread)

    def top_unlabelled(self, scorer: Scorer, n: int) -> NDArray[np.intp]:
        """Return the numbers of the `n` unlabelled pages that a scorer holds most relevant."""
        odds = self._pages[: self._n] @ scorer.weights
        return np.argsort(-odds, kind="stable")[:n]

    def has_spread(self, scorer: Scorer) -> bool:
        """Return whether a scorer finds any difference between unlabelled pages."""
        return bool((self._pages[: self._n] @ scorer.weights).std() > _MIN_SEPARATION)

    def _standardised(
        self, weights: NDArray[np.float64], min_spread: float = _MIN_SPREAD
    ) -> Scorer:
        odds = self._pages[: self._n] @ weights
        spread = max(float(odds.std()), min_spread)
        return Scorer(weights / spread, -float(odds.mean()) / spread)


def cluster_pages(pages: sparse.csr_matrix, random_state: int = 0) -> Ints:
    """Group pages by k-means in the space of their latent semantic analysis.

    These clusters of pages off the topic compete with it in what reads the words of links. One
    class of all of them has every other topic's words, and few of each: a word that only those
    topics use is hardly more of theirs than of the topic's.

    Parameters
    ----------
    pages : (n, n_words + dimensions), vectors of pages
    random_state : seed

    Returns
    -------
    Kind of each page, int64 (n,): 0 to at most 39, one for 15 pages; all 0 of few pages
    """
    n_pages, n_columns = pages.shape
    n_clusters = min(_MAX_CLUSTERS, n_pages // _PAGES_PER_CLUSTER)
    if n_clusters < 2:
        return np.zeros(n_pages, np.int64)
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import, needed in training only
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415

    latent = TruncatedSVD(
        min(_LSA_DIMENSIONS, n_pages - 1, n_columns - 1), random_state=random_state
    )
    places = latent.fit_transform(pages)
    places /= np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12)
    means = KMeans(n_clusters, n_init=_KMEANS_RUNS, random_state=random_state)
    clusters: Ints = means.fit_predict(places).astype(np.int64)
    return clusters


def _query_weights(
    vectors: PageVectors, phrases: Sequence[Sequence[str]]
) -> list[NDArray[np.float64]]:
    """Return the linear functions that are the cosines with a query: by words, and by meaning."""
    bags = [
        {form: 1 for word in phrase for form in word_forms(word, vectors.languages)}
        for phrase in phrases
    ]
    n_words = len(vectors.words)
    query = np.asarray(as_matrix(vectors.transform(bags), n_words).mean(axis=0)).ravel()
    is_word = np.arange(len(query)) < n_words
    by_words, by_meaning = np.where(is_word, query, 0.0), np.where(is_word, 0.0, query)
    return [by_words, by_meaning] if vectors.dimensions else [by_words]


def _fit_link_model(
    topic: str,
    phrases: Sequence[Sequence[str]],
    on: Sequence[Bag],
    off: Sequence[Bag],
    *,
    clusters: Ints,
    languages: LanguageShares,
) -> NaiveBayes:
    """Return what reads the words of links: the phrases count as one more page of the topic.

    Its classes are the topic, and ``/bad/00`` and so on, the `clusters` of the pages off it.
    """
    query = (
        [Counter(dict.fromkeys(chain.from_iterable(phrases), _PHRASE_COUNT))] if phrases else []
    )
    pages = [*query, *on, *off]
    others = [f"{OFF_TOPIC}/{kind:02}" for kind in clusters.tolist()]
    topics = [topic] * (len(query) + len(on)) + others
    counts = TrainingRows.from_bags(to_terms(pages, languages), topics).count(min_df=1)
    return NaiveBayes(counts, uniform_prior=True, languages=languages)
