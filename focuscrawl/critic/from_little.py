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
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag

#: mean and standard deviation, over pages, of the cosine of a query by words and by meaning, where
#: no page has been seen: as the recorded webs have them with English as the background
_USUAL = ((0.015, 0.03), (0.11, 0.11))
#: standard deviation of their sum
_USUAL_SUM = 1.75
#: standard deviation of cosines that is taken to be the least: of a phrase that no unlabelled page
#: has it is 0, and pages that have it would stand out without limit
_LEAST_SPREAD = 0.01
#: standard deviations above the mean of unlabelled pages at which R = 1/2
_HALF = 2.0
#: log-odds of a standard deviation
_SLOPE = 2.0
#: pages that stand out most join the good ones: so many, where there are examples and where not
_JOINING, _JOINING_ALONE = 5, 10
#: good pages are taken to stand out so far, until so many have shown how far they do
_EXPECTED, _EXPECTED_PAGES = 2.5, 4
_FOLDS = 5
#: what each that joins weighs, beside a good one
_JOINED_WEIGHT = 0.2
#: of a bad page, beside an unlabelled one
_BAD_WEIGHT = 10.0
_NONE = np.zeros(0, np.intp)
_ENGLISH = 300  # pages
#: for those who read links, phrases are a page that has each word so often
_OFTEN = 10


class Judge(NamedTuple):
    """A linear function of page vectors: standard deviations above the mean of unlabelled pages.

    Attributes
    ----------
    weights : float64 (n_words + dimensions,)
    intercept : what makes the mean 0
    """

    weights: NDArray[np.float64]
    intercept: float

    def log_odds(self, pages: sparse.csr_matrix) -> NDArray[np.float64]:
        """Return the log-odds of the topic of n pages, rows of a matrix; float64 (n,)."""
        above: NDArray[np.float64] = pages @ self.weights + self.intercept
        return _SLOPE * (above - _HALF)

    def linear(self, topic: str) -> Linear:
        """Return the judge as log-odds of a topic against ``/bad``."""
        weights = _SLOPE * self.weights[:, None]
        intercept = np.array([_SLOPE * (self.intercept - _HALF)])
        if topic < OFF_TOPIC:  # the log-odds are those of the second class
            return Linear((topic, OFF_TOPIC), -weights, -intercept)
        return Linear((OFF_TOPIC, topic), weights, intercept)


class LittlePages(NamedTuple):
    """Pages to learn from, each part a matrix (n_pages, n_words + dimensions)."""

    good: sparse.csr_matrix
    bad: sparse.csr_matrix
    unlabelled: sparse.csr_matrix


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
    vectors, pages = read_little(phrases, good, bad, unlabelled, embeddings=embeddings)
    judge = learn_judge(vectors, phrases, pages)
    relevant = judge.log_odds(pages.unlabelled) > 0.0
    on = [*good, *(bag for bag, yes in zip(unlabelled, relevant, strict=True) if yes)]
    off = [*bad, *(bag for bag, yes in zip(unlabelled, relevant, strict=True) if not yes)]
    return LogisticModel(vectors, judge.linear(topic), _reader(topic, phrases, on, off))


def read_little(
    phrases: Sequence[Sequence[str]],
    good: Sequence[Bag],
    bad: Sequence[Bag],
    unlabelled: Sequence[Bag],
    *,
    embeddings: bool,
) -> tuple[PageVectors, LittlePages]:
    """Make vectors of what there is to learn from; parameters as in `learn_from_little`."""
    kept = {form for phrase in phrases for word in phrase for form in forms(word)}
    kept.update(*good, *bad)
    vectors = PageVectors.learn(unlabelled, kept, embeddings=embeddings)
    rows = as_matrix(vectors.read([*unlabelled, *bad, *good]), len(vectors.words))
    labelled = rows[len(unlabelled) :]
    return vectors, LittlePages(
        labelled[len(bad) :], labelled[: len(bad)], rows[: len(unlabelled)]
    )


def learn_judge(
    vectors: PageVectors, phrases: Sequence[Sequence[str]], pages: LittlePages
) -> Judge:
    """Learn as `learn_from_little` does, from pages that are vectors already."""
    learning = _Learning(vectors, pages)
    some_good = pages.good.shape[0] > 0
    if not phrases:
        joining = learning.standing_out(learning.examples(_NONE), _JOINING)
        return learning.examples(joining)
    query = learning.query(phrases)
    if not some_good:
        joining = learning.standing_out(query, _JOINING_ALONE)
        return learning.sum([query, learning.examples(joining)], (1.0, 1.0))
    weights = learning.weights(query)
    both = learning.sum([query, learning.examples(_NONE)], weights)
    joining = learning.standing_out(both, _JOINING)
    return learning.sum([query, learning.examples(joining)], weights)


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
        Judge(weights / spread, -mean / spread)
        for weights, (mean, spread) in zip(_cosines(vectors, phrases), _USUAL, strict=False)
    ]
    spread = _USUAL_SUM if len(judges) > 1 else 1.0
    judge = Judge(
        np.sum([each.weights for each in judges], axis=0) / spread,
        sum(each.intercept for each in judges) / spread,
    )
    return LogisticModel(vectors, judge.linear(topic), _reader(topic, phrases, (), pages))


class _Learning:
    """Pages as one matrix, those without a label first."""

    def __init__(self, vectors: PageVectors, pages: LittlePages) -> None:
        from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only

        self._vectors = vectors
        self._n = pages.unlabelled.shape[0]
        self._pages = sparse.csr_matrix(sparse.vstack([pages.unlabelled, pages.bad, pages.good]))
        others = np.ones(self._n + pages.bad.shape[0])
        others[self._n :] = _BAD_WEIGHT
        self._weight = np.concatenate([others, np.ones(pages.good.shape[0])])
        self._good = np.arange(len(self._weight)) >= len(others)

    def query(self, phrases: Sequence[Sequence[str]]) -> Judge:
        """Return the judge that the phrases are."""
        cosines = _cosines(self._vectors, phrases)
        judges = [self._standardised(each, _LEAST_SPREAD) for each in cosines]
        return self.sum(judges, (1.0, 1.0))

    def weights(self, query: Judge) -> tuple[float, float]:
        """Return what query and examples weigh, by how far each has the good pages stand out."""
        good = np.flatnonzero(self._good)
        held_out: list[float] = []
        for fold in range(min(_FOLDS, len(good)) if len(good) > 1 else 0):
            out = good[fold::_FOLDS]
            held_out.extend(self._standing(self.examples(_NONE, without=out), out))
        of_query, of_examples = (
            (sum(standing) + _EXPECTED_PAGES * _EXPECTED) / (len(standing) + _EXPECTED_PAGES)
            for standing in (self._standing(query, good), held_out)
        )
        return max(of_query, 0.1) ** 2, max(of_examples, 0.1) ** 2

    def examples(self, joining: NDArray[np.intp], without: NDArray[np.intp] = _NONE) -> Judge:
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

    def sum(self, judges: Sequence[Judge], weights: Sequence[float]) -> Judge:
        """Add up judges, and measure in standard deviations again."""
        parts = [judge.weights * weight for judge, weight in zip(judges, weights, strict=False)]
        least = 0.5 * float(np.linalg.norm(weights[: len(parts)]))  # half of what unlike ones have
        return self._standardised(np.sum(parts, axis=0), least)

    def standing_out(self, judge: Judge, n: int) -> NDArray[np.intp]:
        """Return the numbers of the `n` unlabelled pages that a judge holds most relevant."""
        odds = self._pages[: self._n] @ judge.weights
        return np.argsort(-odds, kind="stable")[:n]

    def _standing(self, judge: Judge, pages: NDArray[np.intp]) -> list[float]:
        return list(self._pages[pages] @ judge.weights + judge.intercept)

    def _standardised(self, weights: NDArray[np.float64], least: float = 1e-9) -> Judge:
        odds = self._pages[: self._n] @ weights
        spread = max(float(odds.std()), least)
        return Judge(weights / spread, -float(odds.mean()) / spread)


def _cosines(vectors: PageVectors, phrases: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
    """Return the linear functions that are the cosines with a query: by words, and by meaning."""
    bags = [{form: 1 for word in phrase for form in forms(word)} for phrase in phrases]
    n_words = len(vectors.words)
    query = np.asarray(as_matrix(vectors.read(bags), n_words).mean(axis=0)).ravel()
    is_word = np.arange(len(query)) < n_words
    by_words, by_meaning = np.where(is_word, query, 0.0), np.where(is_word, 0.0, query)
    return [by_words, by_meaning] if vectors.dimensions else [by_words]


def _reader(
    topic: str, phrases: Sequence[Sequence[str]], on: Sequence[Bag], off: Sequence[Bag]
) -> NaiveBayes:
    """Return what reads the words of links: the phrases count as one more page of the topic."""
    query = [Counter(dict.fromkeys(chain.from_iterable(phrases), _OFTEN))] if phrases else []
    pages = [*query, *on, *off]
    topics = [topic] * (len(query) + len(on)) + [OFF_TOPIC] * len(off)
    counts = TrainingRows.from_bags(pages, topics).count(min_df=1)
    return NaiveBayes(counts, uniform_prior=True)
