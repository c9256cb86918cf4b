"""A critic from what people have: a phrase, a few good pages, perhaps bad ones.

Two judges are learned and added up, each measured in standard deviations of *unlabelled* pages,
that is pages as the crawl will meet them, few of which are on the topic:

- the *query*: how much of its words a page has, weighed by TF-IDF, and how near its meaning is
  (cosines; the latter with embeddings only);
- *examples*: logistic regression of the good pages against the unlabelled and the bad ones, all
  good ones together weighing as much as all others (learning from positive and unlabelled
  examples [Elkan and Noto 2008]).

Each weighs as much as the square of how far the good pages stand out by it, where they are
examples when they are held out. The unlabelled pages that stand out most then join the good ones,
with less weight (pseudo relevance feedback), and the second judge is learned once more. What
stands out by two standard deviations is taken to be on the topic as likely as not.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.counts import TrainingRows
from focuscrawl.critic.discriminative import Linear, LogisticModel, as_matrix, fit_logistic
from focuscrawl.critic.english import english_pages
from focuscrawl.critic.naive_bayes import NaiveBayes
from focuscrawl.critic.page_vectors import PageVectors
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, forms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag

#: mean and standard deviation, over pages, of the cosine of a query by words and by meaning, where
#: no page has been seen: as the recorded webs have them with English as the background
_USUAL = ((0.015, 0.03), (0.11, 0.11))
#: standard deviation of their sum
_USUAL_SUM = 1.75
#: standard deviations above the mean of unlabelled pages at which R = 1/2
_HALF = 2.0
#: log-odds of a standard deviation
_SLOPE = 2.0
#: pages that stand out most join the good ones: so many, where there are examples and where not
_JOINING, _JOINING_ALONE = 5, 10
#: good pages are taken to stand out so far, until so many have shown how far they do
_EXPECTED, _EXPECTED_PAGES = 2.5, 4
_FOLDS = 5
#: what each weighs, beside a good one
_JOINED_WEIGHT = 0.2
#: of a bad page, beside an unlabelled one
_BAD_WEIGHT = 3.0
_NONE = np.zeros(0, np.intp)
_ENGLISH = 300  # pages
#: for those who read links, phrases are a page that has each word so often
_OFTEN = 10


class _Judge(NamedTuple):
    """A linear function of page vectors, in standard deviations over unlabelled pages.

    Attributes
    ----------
    weights : float64 (n_words + dimensions,)
    intercept : what makes the mean 0
    """

    weights: NDArray[np.float64]
    intercept: float


def learn_from_little(
    phrases: Sequence[Sequence[str]] = (),
    good: Sequence[Bag] = (),
    bad: Sequence[Bag] = (),
    unlabelled: Sequence[Bag] = (),
    *,
    topic: str = ON_TOPIC,
    embeddings: bool,
) -> LogisticModel:
    """Learn a critic of two classes, the topic and ``/bad``.

    Parameters
    ----------
    phrases : words of each phrase; one is as good as another
    good, bad : words of pages that are on the topic, and that are not
    unlabelled : words of pages as the crawl will meet them, a hundred or more
    topic : name of the class of the topic
    embeddings : whether to use word embeddings; they must be installed
    """
    if not phrases and not good:
        raise ValueError("nothing says what the topic is")
    kept = {form for phrase in phrases for word in phrase for form in forms(word)}
    kept.update(*good, *bad)
    vectors = PageVectors.learn(unlabelled, kept, embeddings=embeddings)
    learning = _Learning(vectors, good, bad, unlabelled)
    query = learning.query(phrases) if phrases else None
    weights = learning.weights(query)
    judges = [query] if query is not None else []
    if good:
        judges.append(learning.examples(_NONE))
    joining = learning.standing_out(
        learning.sum(judges, weights), _JOINING if good else _JOINING_ALONE
    )
    judges[1 if query is not None else 0 :] = [learning.examples(joining)]
    linear = _linear(learning.sum(judges, weights), topic)
    pages = [*unlabelled, *bad, *good]
    relevant = learning.relevance(linear) > 0.5
    relevant[len(pages) - len(good) :] = True
    relevant[len(unlabelled) : len(unlabelled) + len(bad)] = False
    on = [page for page, yes in zip(pages, relevant, strict=True) if yes]
    off = [page for page, yes in zip(pages, relevant, strict=True) if not yes]
    return LogisticModel(vectors, linear, _reader(topic, phrases, on, off))


def learn_from_query(
    phrases: Sequence[Sequence[str]], *, topic: str = ON_TOPIC, embeddings: bool
) -> LogisticModel:
    """Learn a critic as `learn_from_little` does, from phrases alone: no page has been seen.

    Document frequencies and the centre of meaning are those of English.
    """
    kept = {form for phrase in phrases for word in phrase for form in forms(word)}
    pages = english_pages(_ENGLISH, 0)
    vectors = PageVectors.learn(pages, kept, embeddings=embeddings)
    judges = [
        _Judge(weights / spread, -mean / spread)
        for weights, (mean, spread) in zip(_cosines(vectors, phrases), _USUAL, strict=False)
    ]
    spread = _USUAL_SUM if len(judges) > 1 else 1.0
    linear = _linear(_added(judges, spread), topic)
    return LogisticModel(vectors, linear, _reader(topic, phrases, (), pages))


class _Learning:
    """Pages as one matrix, those without a label first."""

    def __init__(
        self,
        vectors: PageVectors,
        good: Sequence[Bag],
        bad: Sequence[Bag],
        unlabelled: Sequence[Bag],
    ) -> None:
        self._vectors = vectors
        self._n = len(unlabelled)
        self._pages = as_matrix(vectors.read([*unlabelled, *bad, *good]), len(vectors.words))
        others = np.ones(self._n + len(bad))
        others[self._n :] = _BAD_WEIGHT
        self._weight = np.concatenate([others, np.ones(len(good))])
        self._good = np.arange(len(self._weight)) >= len(others)

    def query(self, phrases: Sequence[Sequence[str]]) -> _Judge:
        """Return the judge that the phrases are."""
        judges = [self._standardised(each) for each in _cosines(self._vectors, phrases)]
        return self._standardised(_added(judges).weights)

    def weights(self, query: _Judge | None) -> tuple[float, float]:
        """Return what query and examples weigh, by how far each has the good pages stand out."""
        good = np.flatnonzero(self._good)
        held_out = []
        for fold in range(min(_FOLDS, len(good)) if len(good) > 1 and query is not None else 0):
            out = good[fold::_FOLDS]
            held_out.extend(self._standing(self.examples(_NONE, without=out), out))
        by_query = [] if query is None else self._standing(query, good)
        means = [
            (sum(standing) + _EXPECTED_PAGES * _EXPECTED) / (len(standing) + _EXPECTED_PAGES)
            for standing in (by_query, held_out)
        ]
        return max(means[0], 0.1) ** 2, max(means[1], 0.1) ** 2

    def examples(self, joining: NDArray[np.intp], without: NDArray[np.intp] = _NONE) -> _Judge:
        """Return the judge learned from the good pages, and unlabelled ones that join them.

        Parameters
        ----------
        without : numbers of good pages that are held out
        """
        positive, weight = self._good.copy(), self._weight.copy()
        if self._good.any():
            weight[joining] = _JOINED_WEIGHT
        positive[joining] = True
        weight[without] = 0.0
        for side in (positive, ~positive):
            weight[side] *= len(weight) / (2.0 * weight[side].sum())
        labels = np.where(positive, "yes", "no")  # sorted: the log-odds are those of yes
        return self._standardised(fit_logistic(self._pages, labels, weight).weights[:, 0])

    def relevance(self, linear: Linear) -> NDArray[np.float64]:
        """Return R of all pages."""
        on = 1 - linear.classes.index(OFF_TOPIC)
        relevance: NDArray[np.float64] = np.exp(linear.log_posteriors(self._pages)[:, on])
        return relevance

    def sum(self, judges: Sequence[_Judge], weights: Sequence[float]) -> _Judge:
        """Add up judges, and measure in standard deviations again."""
        parts = [judge.weights * weight for judge, weight in zip(judges, weights, strict=False)]
        return self._standardised(np.sum(parts, axis=0))

    def standing_out(self, judge: _Judge, n: int) -> NDArray[np.intp]:
        """Return the numbers of the `n` unlabelled pages that a judge holds most relevant."""
        odds = self._pages[: self._n] @ judge.weights
        return np.argsort(-odds, kind="stable")[:n]

    def _standing(self, judge: _Judge, pages: NDArray[np.intp]) -> list[float]:
        return list(self._pages[pages] @ judge.weights + judge.intercept)

    def _standardised(self, weights: NDArray[np.float64]) -> _Judge:
        odds = self._pages[: self._n] @ weights
        spread = max(float(odds.std()), 1e-9)
        return _Judge(weights / spread, -float(odds.mean()) / spread)


def _cosines(vectors: PageVectors, phrases: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
    """Return the linear functions that are the cosines with a query: by words, and by meaning."""
    bags = [{form: 1 for word in phrase for form in forms(word)} for phrase in phrases]
    n_words = len(vectors.words)
    query = np.asarray(as_matrix(vectors.read(bags), n_words).mean(axis=0)).ravel()
    is_word = np.arange(len(query)) < n_words
    by_words, by_meaning = np.where(is_word, query, 0.0), np.where(is_word, 0.0, query)
    return [by_words, by_meaning] if vectors.dimensions else [by_words]


def _added(judges: Sequence[_Judge], spread: float = 1.0) -> _Judge:
    return _Judge(
        np.sum([judge.weights for judge in judges], axis=0) / spread,
        sum(judge.intercept for judge in judges) / spread,
    )


def _linear(judge: _Judge, topic: str) -> Linear:
    """Return a judge as log-odds of the topic."""
    weights = _SLOPE * judge.weights[:, None]
    intercept = np.array([_SLOPE * (judge.intercept - _HALF)])
    if topic < OFF_TOPIC:  # the log-odds are those of the second class
        return Linear((topic, OFF_TOPIC), -weights, -intercept)
    return Linear((OFF_TOPIC, topic), weights, intercept)


def _reader(
    topic: str, phrases: Sequence[Sequence[str]], on: Sequence[Bag], off: Sequence[Bag]
) -> NaiveBayes:
    """Return what reads the words of links: the phrases count as one more page of the topic."""
    query = [Counter(dict.fromkeys(chain.from_iterable(phrases), _OFTEN))] if phrases else []
    pages = [*query, *on, *off]
    topics = [topic] * (len(query) + len(on)) + [OFF_TOPIC] * len(off)
    counts = TrainingRows.from_bags(pages, topics).count(min_df=1)
    return NaiveBayes(counts, uniform_prior=True)
