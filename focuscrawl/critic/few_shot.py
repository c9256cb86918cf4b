"""A critic from what people have: a phrase, a few good pages, perhaps bad ones.

Two judges are learned and added up, each measured in standard deviations of *unlabelled* pages,
that is pages as the crawl will meet them, few of which are on the topic:

- the *query*: how much of its words a page has, weighed by TF-IDF, and how near its meaning is
  (cosines; the latter with embeddings only);
- *examples*: logistic regression of the good pages against the unlabelled and the bad ones, all
  good ones together weighing as much as all others (learning from positive and unlabelled
  examples [Elkan and Noto 2008]).

Each weighs as much as the square of how far the good pages stand out by it, where they are
examples when they are held out. The unlabelled pages that stand out most then join the good
ones, with less weight (pseudo relevance feedback), and the second judge is learned once more.
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
    Linear,
    LogisticModel,
    NaiveBayes,
    as_matrix,
    fit_logistic,
)
from focuscrawl.critic.languages import ENGLISH, languages_of, read_as, written_pages
from focuscrawl.critic.page_vectors import PageVectors
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, forms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.languages import Shares
    from focuscrawl.foundation.arrays import Ints


#: mean and standard deviation, over pages, of the cosine of a query by words and by meaning, where
#: no page has been seen: as the recorded webs have them with English as the background
_USUAL = ((0.015, 0.03), (0.11, 0.11))
#: standard deviation of their sum
_USUAL_SUM = 1.75
#: R = 1/2 where a page stands out by such a share of what the good pages do; in standard
#: deviations at least, and at most and where no page has shown it
_SHARE, _LEAST_HALF, _HALF = 0.8, 1.5, 2.0
#: log-odds of a standard deviation
_SLOPE = 2.0
#: pages that stand out most join the good ones: so many, where there are examples and where not
_JOINING, _JOINING_ALONE = 5, 10
#: good pages are taken to stand out so far, until so many have shown how far they do
_EXPECTED, _EXPECTED_PAGES = 2.5, 4
_FOLDS = 5
#: standard deviation of a judge that says the same of all unlabelled pages, of words that none
#: has: pages that have them would stand out without limit
_LEAST_SPREAD = 0.01
_DIFFERENCE = 0.5  # standard deviation, 1 for a judge that has measured its own
#: what each that joins weighs, beside a good one
_JOINED_WEIGHT = 0.2
#: of a bad page, beside an unlabelled one
_BAD_WEIGHT = 10.0
_NONE = np.zeros(0, np.intp)
_WRITTEN = 300  # pages
_LEAST = 60  # pages that stand for others; fewer are joined by pages of everyday words
#: for those who read links, phrases are a page that has each word so often
_OFTEN = 10

_EACH = 15  # pages of a kind off the topic, on average
_MOST = 40  # kinds
_DIMENSIONS = 40  # latent ones (LSA), in which kinds are told apart
_DRAWS = 3  # of first centres, the best of which counts


class Judge(NamedTuple):
    """A linear function of page vectors: standard deviations above the mean of unlabelled pages.

    Attributes
    ----------
    weights : float64 (n_words + dimensions,)
    intercept : what makes the mean 0
    half : standard deviations at which R = 1/2
    """

    weights: NDArray[np.float64]
    intercept: float
    half: float = _HALF

    def log_odds(self, pages: sparse.csr_matrix) -> NDArray[np.float64]:
        """Return the log-odds of the topic of n pages, rows of a matrix; float64 (n,)."""
        above: NDArray[np.float64] = pages @ self.weights + self.intercept
        return _SLOPE * (above - self.half)

    def linear(self, topic: str) -> Linear:
        """Return the judge as log-odds of a topic against ``/bad``."""
        weights = _SLOPE * self.weights[:, None]
        intercept = np.array([_SLOPE * (self.intercept - self.half)])
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
    languages: Shares | None = None,
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
        languages = languages_of(unlabelled, [*good, *bad], phrases)
    vectors, pages = read_little(
        phrases, good, bad, unlabelled, embeddings=embeddings, languages=languages
    )
    from scipy import sparse  # noqa: PLC0415 - slow to import, needed in training only

    judge = learn_judge(vectors, phrases, pages)
    relevant = judge.log_odds(pages.unlabelled) > 0.0
    on = [*good, *(bag for bag, yes in zip(unlabelled, relevant, strict=True) if yes)]
    off = [*bad, *(bag for bag, yes in zip(unlabelled, relevant, strict=True) if not yes)]
    kinds = kinds_of(sparse.csr_matrix(sparse.vstack([pages.bad, pages.unlabelled[~relevant]])))
    reader = _reader(topic, phrases, on, off, kinds=kinds, languages=languages)
    return LogisticModel(vectors, judge.linear(topic), reader)


def read_little(
    phrases: Sequence[Sequence[str]],
    good: Sequence[Bag],
    bad: Sequence[Bag],
    unlabelled: Sequence[Bag],
    *,
    embeddings: bool,
    languages: Shares = ENGLISH,
) -> tuple[PageVectors, LittlePages]:
    """Make vectors of what there is to learn from; parameters as in `learn_from_little`."""
    kept = {form for phrase in phrases for word in phrase for form in forms(word, languages)}
    kept.update(*good, *bad)
    vectors = PageVectors.learn(unlabelled, kept, embeddings=embeddings, languages=languages)
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
    query = [learning.query(phrases)] if phrases else []
    if not pages.good.shape[0]:
        if not learning.differs_by(query[0]):
            return query[0]
        joining = learning.standing_out(query[0], _JOINING_ALONE)
        return learning.sum([*query, learning.examples(joining)], (1.0, 1.0))
    without = learning.held_out()
    weights = learning.weights(query, without)
    both = learning.sum([*query, learning.examples(_NONE)], weights)
    joining = learning.standing_out(both, _JOINING)
    judge = learning.sum([*query, learning.examples(joining)], weights)
    held_out = [(out, learning.sum([*query, rest], weights)) for out, rest in without]
    half = _SHARE * learning.expected(held_out)
    return judge._replace(half=min(max(half, _LEAST_HALF), _HALF))


def learn_from_query(
    phrases: Sequence[Sequence[str]],
    *,
    topic: str = ON_TOPIC,
    embeddings: bool,
    languages: Shares | None = None,
) -> LogisticModel:
    """Learn a critic as `learn_from_little` does, from phrases alone: no page has been seen.

    Document frequencies and the centre of meaning are those of the languages, as they are written.
    """
    if languages is None:
        languages = languages_of((), (), phrases)
    kept = {form for phrase in phrases for word in phrase for form in forms(word, languages)}
    pages = written_pages(_WRITTEN, 0, languages)
    vectors = PageVectors.learn(pages, kept, embeddings=embeddings, languages=languages)
    judges = [
        Judge(weights / spread, -mean / spread)
        for weights, (mean, spread) in zip(_cosines(vectors, phrases), _USUAL, strict=False)
    ]
    spread = _USUAL_SUM if len(judges) > 1 else 1.0
    judge = Judge(
        np.sum([each.weights for each in judges], axis=0) / spread,
        sum(each.intercept for each in judges) / spread,
    )
    kinds = np.zeros(len(pages), np.int64)  # drawn word by word, they are all of one
    reader = _reader(topic, phrases, (), pages, kinds=kinds, languages=languages)
    return LogisticModel(vectors, judge.linear(topic), reader)


def missing_others(found: int, random_state: int, languages: Shares) -> list[Bag]:
    """Return pages of everyday words where there are too few others to tell what stands out.

    Drawn word by word they are more alike than pages are: among many of them all pages stand out.
    """
    return written_pages(_LEAST - found, random_state, languages) if found < _LEAST else []


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
        judges = [self._standardised(each) for each in _cosines(self._vectors, phrases)]
        return self.sum(judges, (1.0, 1.0))

    def held_out(self) -> list[tuple[NDArray[np.intp], Judge]]:
        """Return numbers of good pages, and the judge learned from the other ones, for each fold.

        There is none with one good page.
        """
        good = np.flatnonzero(self._good)
        folds = [good[fold::_FOLDS] for fold in range(min(_FOLDS, len(good)))]
        return [(out, self.examples(_NONE, out)) for out in folds] if len(good) > 1 else []

    def weights(
        self, query: Sequence[Judge], without: Sequence[tuple[NDArray[np.intp], Judge]]
    ) -> list[float]:
        """Return what a query, if any, and examples weigh: by how far good pages stand out.

        Parameters
        ----------
        without : as `held_out` returns it
        """
        good = np.flatnonzero(self._good)
        expected = [self.expected([(good, judge)]) for judge in query] + [self.expected(without)]
        return [max(each, 0.1) ** 2 for each in expected]

    def expected(self, judged: Sequence[tuple[NDArray[np.intp], Judge]]) -> float:
        """Return how far good pages stand out, from how far some do, each by its judge."""
        found: list[float] = []
        for pages, judge in judged:
            found.extend(self._pages[pages] @ judge.weights + judge.intercept)
        return (sum(found) + _EXPECTED_PAGES * _EXPECTED) / (len(found) + _EXPECTED_PAGES)

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

    def differs_by(self, judge: Judge) -> bool:
        """Return whether a judge finds any difference between unlabelled pages."""
        return bool((self._pages[: self._n] @ judge.weights).std() > _DIFFERENCE)

    def _standardised(self, weights: NDArray[np.float64], least: float = _LEAST_SPREAD) -> Judge:
        odds = self._pages[: self._n] @ weights
        spread = max(float(odds.std()), least)
        return Judge(weights / spread, -float(odds.mean()) / spread)


def kinds_of(pages: sparse.csr_matrix, random_state: int = 0) -> Ints:
    """Group pages by k-means in the space of their latent semantic analysis.

    These kinds of pages off the topic compete with it in what reads the words of links. One class
    of all of them has every other topic's words, and few of each: a word that only those topics
    use is hardly more of theirs than of the topic's.

    Parameters
    ----------
    pages : (n, n_words + dimensions), vectors of pages
    random_state : seed

    Returns
    -------
    Kind of each page, int64 (n,): 0 to at most 39, one for 15 pages; all 0 of few pages
    """
    n_pages, n_columns = pages.shape
    n_kinds = min(_MOST, n_pages // _EACH)
    if n_kinds < 2:
        return np.zeros(n_pages, np.int64)
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import, needed in training only
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415

    latent = TruncatedSVD(min(_DIMENSIONS, n_pages - 1, n_columns - 1), random_state=random_state)
    places = latent.fit_transform(pages)
    places /= np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12)
    means = KMeans(n_kinds, n_init=_DRAWS, random_state=random_state)
    kinds: Ints = means.fit_predict(places).astype(np.int64)
    return kinds


def _cosines(vectors: PageVectors, phrases: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
    """Return the linear functions that are the cosines with a query: by words, and by meaning."""
    bags = [
        {form: 1 for word in phrase for form in forms(word, vectors.languages)}
        for phrase in phrases
    ]
    n_words = len(vectors.words)
    query = np.asarray(as_matrix(vectors.read(bags), n_words).mean(axis=0)).ravel()
    is_word = np.arange(len(query)) < n_words
    by_words, by_meaning = np.where(is_word, query, 0.0), np.where(is_word, 0.0, query)
    return [by_words, by_meaning] if vectors.dimensions else [by_words]


def _reader(
    topic: str,
    phrases: Sequence[Sequence[str]],
    on: Sequence[Bag],
    off: Sequence[Bag],
    *,
    kinds: Ints,
    languages: Shares,
) -> NaiveBayes:
    """Return what reads the words of links: the phrases count as one more page of the topic.

    Its classes are the topic, and ``/bad/00`` and so on, the `kinds` of the pages off it.
    """
    query = [Counter(dict.fromkeys(chain.from_iterable(phrases), _OFTEN))] if phrases else []
    pages = [*query, *on, *off]
    others = [f"{OFF_TOPIC}/{kind:02}" for kind in kinds.tolist()]
    topics = [topic] * (len(query) + len(on)) + others
    counts = TrainingRows.from_bags(read_as(pages, languages), topics).count(min_df=1)
    return NaiveBayes(counts, uniform_prior=True, languages=languages)
