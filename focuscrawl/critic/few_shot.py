"""Train a few-shot critic from phrases, a few relevant pages, and optionally off-topic pages.

A few-shot critic is the sum of two linear scorers of page vectors. The scores of each scorer are
standardised: a score is the number of standard deviations above the mean of the *unlabelled* pages
(a sample of the pages that the crawl fetches).

- The *query* scorer is the cosine similarity (TF-IDF) of a page with the phrases. If word
  embeddings are installed, the cosine similarity of the mean embeddings is added to the query
  scorer.
- The *example* scorer is a logistic regression that separates the good pages from the unlabelled
  and the bad pages. Positive and negative pages have the same total weight. The method learns from
  positive and unlabelled examples [Elkan and Noto 2008].

The weight of a scorer is the square of the good pages' mean score by this scorer. For the example
scorer, the scores come from cross-validation. Finally, the unlabelled pages with the highest
scores become positive examples of low weight (pseudo relevance feedback), and the example scorer
is fitted a second time.

The threshold score, at which the relevance is 1/2, is four fifths of the mean score of the good
pages, but at most two standard deviations. If many unlabelled pages are relevant, no page scores
far above the mean of the unlabelled pages. Good pages found by a crawl are more similar to each
other than to other pages of the topic, so the scores of good pages are too high.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.languages import LanguageShares
    from focuscrawl.foundation.arrays import Floats, Ints


#: mean and standard deviation of the cosines of pages with a query, by words and by embeddings.
#: Measured on the recorded webs with English as the background, for training without pages
_DEFAULT_COSINES = ((0.015, 0.03), (0.11, 0.11))
_DEFAULT_SUM_SPREAD = 1.75  # standard deviation of the sum of both standardised cosines
#: the threshold is this share of the mean score of the good pages, between these bounds
_THRESHOLD_SHARE, _MIN_THRESHOLD, _MAX_THRESHOLD = 0.8, 1.5, 2.0
_SLOPE = 2.0  # log-odds of one standard deviation
#: unlabelled pages that become positive examples, with good pages and without
_FEEDBACK_PAGES, _FEEDBACK_PAGES_QUERY_ONLY = 5, 10
#: prior of the mean score of good pages, and its weight in pages
_PRIOR_SCORE, _PRIOR_PAGES = 2.5, 4
_FOLDS = 5
#: lower bound of a standard deviation. If no unlabelled page has a word of the query, the scores
#: of pages with these words would be unbounded
_MIN_SPREAD = 0.01
_MIN_SEPARATION = 0.5  # standard deviation of scores below which a scorer separates no pages
_FEEDBACK_WEIGHT = 0.2  # of an unlabelled positive example; a good page has 1
_BAD_WEIGHT = 10.0  # of a bad page; an unlabelled page has 1
_NO_PAGES = np.zeros(0, np.intp)
_N_GENERATED_PAGES = 300
_MIN_UNLABELLED = 60  # with fewer unlabelled pages, generated pages are added
_PHRASE_COUNT = 10  # of each phrase word, in the page of the phrases that the link model reads

_PAGES_PER_CLUSTER = 15  # off-topic pages, on average
_MAX_CLUSTERS = 40
_LSA_DIMENSIONS = 40
_KMEANS_RUNS = 3


class Scorer(NamedTuple):
    """Linear scorer of page vectors, standardised by the mean and spread of unlabelled pages.

    Attributes
    ----------
    weights : float64 (n_words + dimensions,)
    intercept : float that makes the mean of the unlabelled pages 0
    threshold : score at which the relevance is 1/2
    """

    weights: Floats
    intercept: float
    threshold: float = _MAX_THRESHOLD

    def log_odds(self, pages: sparse.csr_matrix) -> Floats:
        """Return the log-odds of relevance of each page, float64 (n_pages,)."""
        above: Floats = pages @ self.weights + self.intercept
        return _SLOPE * (above - self.threshold)

    def linear(self, topic: str) -> LinearModel:
        """Return the scorer as a linear classifier with the classes `topic` and ``/bad``."""
        weights = _SLOPE * self.weights[:, None]
        intercept = np.array([_SLOPE * (self.intercept - self.threshold)])
        if topic < OFF_TOPIC:  # the log-odds are those of the second class
            return LinearModel((topic, OFF_TOPIC), -weights, -intercept)
        return LinearModel((OFF_TOPIC, topic), weights, intercept)


class TrainingPages(NamedTuple):
    """Vectors of good, bad and unlabelled training pages, as matrices (n_pages, n_features)."""

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
    """Train a few-shot critic with two classes, the topic and ``/bad``.

    Parameters
    ----------
    phrases : words of each phrase; all phrases have the same weight
    good, bad : bags of words of relevant and of off-topic pages
    unlabelled : bags of words of pages that the crawl meets, a hundred or more
    topic : class name of the topic
    embeddings : whether to use word embeddings; the extra ``embeddings`` must be installed
    languages : languages of the pages; None to detect them
    """
    if not phrases and not good:
        raise ValueError("a few-shot critic needs a phrase or a good page")
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
    """Fit `PageVectors` to pages and compute the vectors; `fit_few_shot` describes parameters."""
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
    """Train the query scorer and the example scorer on page vectors; return the scorers' sum."""
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
    """Train a few-shot critic from phrases alone, without any page.

    The document frequencies and the mean embedding are computed from artificial pages, which
    consist of random common words of the given `languages`.
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
    clusters = np.zeros(len(pages), np.int64)  # generated pages are all alike
    link_model = _fit_link_model(topic, phrases, (), pages, clusters=clusters, languages=languages)
    return LogisticModel(vectors, scorer.linear(topic), link_model)


def generate_filler_pages(found: int, random_state: int, languages: LanguageShares) -> list[Bag]:
    """Generate pages of everyday words if there are fewer than 60 unlabelled pages.

    Generated pages are more similar to each other than real pages are. With too many generated
    pages, all real pages would have high scores.
    """
    return (
        generate_pages(_MIN_UNLABELLED - found, random_state, languages)
        if found < _MIN_UNLABELLED
        else []
    )


class _ScorerTraining:
    """Fits scorers to one matrix of pages: unlabelled pages first, then bad, then good pages."""

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
        """Return the query scorer: the standardised sum of cosines of pages with the phrases."""
        scorers = [self._standardised(each) for each in _query_weights(self._vectors, phrases)]
        return self.combine(scorers, (1.0, 1.0))

    def fit_folds(self) -> list[tuple[NDArray[np.intp], Scorer]]:
        """For each fold, return the held-out good pages and a scorer trained on the other pages.

        If there is only one good page, there are no folds.
        """
        good = np.flatnonzero(self._good)
        folds = [good[fold::_FOLDS] for fold in range(min(_FOLDS, len(good)))]
        return [(out, self.fit_examples(_NO_PAGES, out)) for out in folds] if len(good) > 1 else []

    def component_weights(
        self, query: Sequence[Scorer], without: Sequence[tuple[NDArray[np.intp], Scorer]]
    ) -> list[float]:
        """Return the weights of the query scorer (if there is one) and of the example scorer.

        Parameters
        ----------
        without : held-out pages and scorers, as `fit_folds` returns them
        """
        good = np.flatnonzero(self._good)
        expected = [self.expected_score([(good, scorer)]) for scorer in query] + [
            self.expected_score(without)
        ]
        return [max(each, 0.1) ** 2 for each in expected]

    def expected_score(self, judged: Sequence[tuple[NDArray[np.intp], Scorer]]) -> float:
        """Return the mean held-out score of the good pages, shrunk towards a prior."""
        found: list[float] = []
        for pages, scorer in judged:
            found.extend(self._pages[pages] @ scorer.weights + scorer.intercept)
        return (sum(found) + _PRIOR_PAGES * _PRIOR_SCORE) / (len(found) + _PRIOR_PAGES)

    def fit_examples(
        self, feedback: NDArray[np.intp], without: NDArray[np.intp] = _NO_PAGES
    ) -> Scorer:
        """Fit the example scorer by logistic regression.

        Parameters
        ----------
        feedback : indices of unlabelled pages used as positive examples
        without : indices of good pages that are held out
        """
        positive, weight = self._good.copy(), self._weight.copy()
        if self._good.any():
            weight[feedback] = _FEEDBACK_WEIGHT
        positive[feedback] = True
        weight[without] = 0.0
        for side in (positive, ~positive):
            weight[side] *= len(weight) / (2.0 * weight[side].sum())
        labels = np.where(positive, "yes", "no")  # sorted, so the log-odds are those of "yes"
        return self._standardised(fit_logistic(self._pages, labels, weight).weights[:, 0])

    def combine(self, scorers: Sequence[Scorer], weights: Sequence[float]) -> Scorer:
        """Return the weighted sum of scorers, standardised on the unlabelled pages."""
        parts = [scorer.weights * weight for scorer, weight in zip(scorers, weights, strict=False)]
        min_spread = 0.5 * float(
            np.linalg.norm(weights[: len(parts)])
        )  # half the standard deviation of the sum of uncorrelated scorers
        return self._standardised(np.sum(parts, axis=0), min_spread)

    def top_unlabelled(self, scorer: Scorer, n: int) -> NDArray[np.intp]:
        """Return the positions of the `n` unlabelled pages with the highest scores."""
        odds = self._pages[: self._n] @ scorer.weights
        return np.argsort(-odds, kind="stable")[:n]

    def has_spread(self, scorer: Scorer) -> bool:
        """Return whether the scores of the unlabelled pages differ enough to rank the pages."""
        return bool((self._pages[: self._n] @ scorer.weights).std() > _MIN_SEPARATION)

    def _standardised(self, weights: Floats, min_spread: float = _MIN_SPREAD) -> Scorer:
        odds = self._pages[: self._n] @ weights
        spread = max(float(odds.std()), min_spread)
        return Scorer(weights / spread, -float(odds.mean()) / spread)


def cluster_pages(pages: sparse.csr_matrix, random_state: int = 0) -> Ints:
    """Cluster off-topic pages by k-means in their LSA space.

    The clusters of off-topic pages are the off-topic classes of the model that judges link texts.
    A single off-topic class would contain the words of every other topic, each with a very low
    frequency. So with a single off-topic class, words of other topics would hardly be evidence
    against the topic.

    Parameters
    ----------
    pages : vectors, (n_pages, n_words + dimensions)

    Returns
    -------
    Cluster of each page, int64 (n_pages,), from 0 to at most 39; one cluster for 15 pages
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


def _query_weights(vectors: PageVectors, phrases: Sequence[Sequence[str]]) -> list[Floats]:
    """Return the weights that compute the cosine with a query: by words, and by embeddings."""
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
    """Fit the naive Bayes model that judges link texts; the phrases are one more relevant page.

    The classes are the topic and the clusters of off-topic pages, ``/bad/00`` and so on.
    """
    query = (
        [Counter(dict.fromkeys(chain.from_iterable(phrases), _PHRASE_COUNT))] if phrases else []
    )
    pages = [*query, *on, *off]
    others = [f"{OFF_TOPIC}/{kind:02}" for kind in clusters.tolist()]
    topics = [topic] * (len(query) + len(on)) + others
    counts = TrainingRows.from_bags(to_terms(pages, languages), topics).count(min_df=1)
    return NaiveBayes(counts, uniform_prior=True, languages=languages)
