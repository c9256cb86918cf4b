"""A critic of few examples: held-out judgements, groups, estimates, warnings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.classifiers import LogisticModel
from focuscrawl.critic.few_shot import (
    TrainingPages,
    fit_scorer,
    generate_filler_pages,
    vectorize_pages,
)
from focuscrawl.critic.languages import ENGLISH, detect_languages, is_ngram, to_terms
from focuscrawl.critic.page_vectors import word_vectors_installed
from focuscrawl.critic.phrase_model import OFF_TOPIC, PhraseModel, word_forms
from focuscrawl.foundation.urls import host

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.focused_critic import TopicModel, TrainedCritic
    from focuscrawl.critic.page_vectors import PageVectors

    UrlBag = tuple[str, Bag]

#: examples on the topic; fewer are too few to measure a critic, or to call one mislabelled
MIN_EXAMPLES = 10

_MAX_LEAVE_ONE_OUT = 20  # examples; of more, a tenth is held out at once
_FOLDS = 10
_MAX_WORDS = 12  # that weigh most, for and against

_GROUP_WORDS = 5  # words that name a group
_MIN_GROUP_PAGES = 3  # pages in a group
#: Mean silhouette from which on two groups are apart, and mean cosine of two examples below
#: which a topic is broad; chosen on topics of two recorded webs and mixtures of them (studies of
#: critics).
#: By words alone all pages are nearly orthogonal.
_MIN_SILHOUETTE, _MIN_SILHOUETTE_BY_WORDS = 0.28, 0.05
_MIN_COSINE, _MIN_COSINE_BY_WORDS = 0.06, 0.012

_CONFIDENCE = 0.9
#: what a held-out page counts in an interval: the critic that judges it is not quite the one
#: that is asked about
_HELD_OUT_WEIGHT = 0.6
#: The log-odds of a topic's pages are taken to be normally distributed, with mean 0 and this
#: standard deviation as if so many pages had been seen: by how much two of three examples lie
#: above zero says more than that they do.
_PRIOR_SPREAD, _PRIOR_PAGES = 3.0, 3.0

_MIN_GOOD = 3  # good examples
_LOW_RECALL = 0.4  # recall
_COMMON_SHARE = 0.2  # share of other pages that have a phrase
_MIN_OTHERS = 20  # other pages, to find what is common among them


class JudgedPage(NamedTuple):
    """A page and its relevance by a critic that has not learned from it.

    Attributes
    ----------
    label : its topic; empty if it has no label
    """

    url: str
    label: str
    relevance: float


@dataclass(frozen=True, slots=True)
class FewExamplesReport:
    """What is known of a critic from few examples.

    Attributes
    ----------
    topic : its topic
    examples : those held out; empty where there are too few for that
    others : a sample of the web's other pages, in random order
    recall : share of relevant pages with R > 1/2; None with fewer than `MIN_EXAMPLES` good ones
    words_for, words_against : those that weigh most; none where the critic has no weights
    warnings : sentences
    """

    topic: str
    examples: tuple[JudgedPage, ...]
    others: tuple[JudgedPage, ...]
    recall: ShareEstimate | None
    words_for: tuple[str, ...]
    words_against: tuple[str, ...]
    warnings: tuple[str, ...]

    def called_relevant(self) -> list[JudgedPage]:
        """Return the other pages that are called_relevant relevant, in random order."""
        return [page for page in self.others if page.relevance > 0.5]

    def doubtful(self, most: int) -> list[JudgedPage]:
        """Return the examples that are scored least as they are labelled, the worst first.

        None where there are too few to measure anything.
        """
        if self.recall is None:
            return []

        def agreement(page: JudgedPage) -> float:
            return page.relevance if page.label == self.topic else 1.0 - page.relevance

        return sorted(self.examples, key=agreement)[:most]


def assess_few_shot(
    trained: TrainedCritic,
    good: Sequence[UrlBag],
    bad: Sequence[UrlBag],
    others: Sequence[UrlBag],
) -> FewExamplesReport:
    """Assess a critic from little by pages: its examples, and others.

    Parameters
    ----------
    trained : the critic
    good, bad : URL and words of its examples, each once
    others : of pages that stand for all others, at least one; a URL may be empty
    """
    topic = next(path for path in trained.model.classes if path != OFF_TOPIC)
    on_topic, off_topic, beside = ([bag for _, bag in side] for side in (good, bad, others))
    odds, odds_beside, cohesion = score_held_out(trained, on_topic, off_topic, beside, topic)
    recall = None
    if len(good) >= MIN_EXAMPLES and len(odds):
        recall = estimate_recall(odds[: len(good)])
    if not good:
        on_topic = [bag for bag, each in zip(beside, odds_beside, strict=True) if each > 0]
    words_for, words_against = top_words(trained.model, topic, on_topic, beside)
    labelled = [(url, topic) for url, _ in good] + [(url, OFF_TOPIC) for url, _ in bad]
    return FewExamplesReport(
        topic=topic,
        examples=tuple(
            JudgedPage(url, label, relevance)
            for (url, label), relevance in zip(labelled, _to_relevance(odds), strict=len(odds) > 0)
        ),
        others=tuple(
            JudgedPage(url, "", relevance)
            for (url, _), relevance in zip(others, _to_relevance(odds_beside), strict=True)
        ),
        recall=recall,
        words_for=words_for,
        words_against=words_against,
        warnings=tuple(
            find_warnings(
                critic_phrases(trained), [url for url, _ in good], others, cohesion, recall
            )
        ),
    )


def _to_relevance(log_odds: NDArray[np.float64]) -> list[float]:
    relevance: list[float] = (0.5 + 0.5 * np.tanh(log_odds / 2.0)).tolist()
    return relevance


def critic_phrases(trained: TrainedCritic) -> Sequence[Sequence[str]]:
    """Return the words of the phrases that a critic was learned from."""
    model = trained.model
    return model.phrases if isinstance(model, PhraseModel) else trained.phrases


def score_held_out(
    trained: TrainedCritic,
    good: Sequence[Bag],
    bad: Sequence[Bag],
    others: Sequence[Bag],
    topic: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64], Cohesion | None]:
    """Hold pages out where there are enough of them; else let the critic scorer as it is.

    Returns
    -------
    Log-odds of the examples, good ones first, or of none; log-odds of the others; how well the
    good ones belong together
    """
    if not (good or bad) or (len(good) < 2 and not trained.phrases):
        log = trained.model.log_posteriors(others)
        yes = trained.model.classes.index(topic)
        return np.zeros(0), log[:, yes] - log[:, 1 - yes], None
    languages = detect_languages(others, [*good, *bad], trained.phrases)
    filled = [*others, *generate_filler_pages(len(others), trained.random_state, languages)]
    vectors, pages = vectorize_pages(
        trained.phrases,
        good,
        bad,
        filled,
        embeddings=word_vectors_installed(),
        languages=languages,
    )
    odds = cross_validate_few_shot(vectors, trained.phrases, pages, trained.random_state)
    cohesion = measure_cohesion(vectors, pages) if len(good) > 1 else None
    return np.concatenate([odds.good, odds.bad]), odds.unlabelled[: len(others)], cohesion


class HeldOutLogOdds(NamedTuple):
    """Log-odds of the topic of `TrainingPages`, each float64 (n_pages,)."""

    good: NDArray[np.float64]
    bad: NDArray[np.float64]
    unlabelled: NDArray[np.float64]


def cross_validate_few_shot(
    vectors: PageVectors,
    phrases: Sequence[Sequence[str]],
    pages: TrainingPages,
    random_state: int,
) -> HeldOutLogOdds:
    """Cross-validate: leave one example out after the other, and a part of the others each time.

    Parameters
    ----------
    vectors : has made `pages`
    phrases : words of each phrase of the topic; without any, two good pages at least
    pages : of more than 20 good or bad ones, a tenth is left out at once
    random_state : seed of what is left out with what
    """
    most = max(pages.good.shape[0], pages.bad.shape[0])
    folds = max(most, 2) if most <= _MAX_LEAVE_ONE_OUT else _FOLDS
    generator = np.random.default_rng(random_state)
    fold_of = [generator.permutation(rows.shape[0]) % folds for rows in pages]
    scored = HeldOutLogOdds(*(np.zeros(rows.shape[0]) for rows in pages))
    for fold in range(folds):
        rest = [rows[of != fold] for rows, of in zip(pages, fold_of, strict=True)]
        scorer = fit_scorer(vectors, phrases, TrainingPages(*rest))
        for rows, of, odds in zip(pages, fold_of, scored, strict=True):
            odds[of == fold] = scorer.log_odds(rows[of == fold])
    return scored


class Cohesion(NamedTuple):
    """How well examples belong together.

    Attributes
    ----------
    broad : they have hardly more in common with each other than with any other page
    groups : words that name each of two groups that they fall apart into; empty if they do not
    """

    broad: bool
    groups: tuple[tuple[str, ...], ...]


def measure_cohesion(vectors: PageVectors, pages: TrainingPages) -> Cohesion:
    """Compare the good pages with each other, by meaning, or by words without embeddings.

    Cosines are those of the differences from the mean of the unlabelled pages: two pages that
    have no more in common than any two have a cosine of 0.

    Parameters
    ----------
    vectors : has made `pages`
    pages : two good ones at least
    """
    n_words = len(vectors.words)
    meaning = vectors.dimensions > 0
    columns = slice(n_words, None) if meaning else slice(n_words)
    cosines = _cosines(pages.good[:, columns], pages.unlabelled[:, columns])
    n = len(cosines)
    mean = float(cosines[~np.eye(n, dtype=bool)].mean())
    broad = mean < (_MIN_COSINE if meaning else _MIN_COSINE_BY_WORDS)
    if n < 2 * _MIN_GROUP_PAGES:
        return Cohesion(broad, ())
    first = _split_in_two(cosines, _MIN_SILHOUETTE if meaning else _MIN_SILHOUETTE_BY_WORDS)
    if first is None:
        return Cohesion(broad, ())
    words = pages.good[:, :n_words], pages.unlabelled[:, :n_words]
    return Cohesion(
        False, tuple(_distinctive_words(vectors, *words, group) for group in (first, ~first))
    )


def _cosines(good: sparse.csr_matrix, unlabelled: sparse.csr_matrix) -> NDArray[np.float64]:
    centre = np.asarray(unlabelled.mean(axis=0)).ravel()
    along = good @ centre
    products = (good @ good.T).toarray() - along[:, None] - along + centre @ centre
    length = np.sqrt(np.maximum(np.diag(products), 1e-12))
    cosines: NDArray[np.float64] = products / length[:, None] / length
    return cosines


def _split_in_two(cosines: NDArray[np.float64], min_silhouette: float) -> NDArray[np.bool_] | None:
    """Return which examples are in the first of two groups; None if they belong together."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import
    from sklearn.metrics import silhouette_score  # noqa: PLC0415

    groups = KMeans(2, n_init=10, random_state=0).fit_predict(cosines)
    first: NDArray[np.bool_] = groups == groups[0]
    if (
        min(first.sum(), (~first).sum()) < _MIN_GROUP_PAGES
        or cosines[first][:, ~first].mean() >= 0.0
    ):
        return None
    distances = np.maximum(1.0 - cosines, 0.0)
    np.fill_diagonal(distances, 0.0)
    return (
        first
        if silhouette_score(distances, groups, metric="precomputed") > min_silhouette
        else None
    )


def _distinctive_words(
    vectors: PageVectors,
    good: sparse.csr_matrix,
    unlabelled: sparse.csr_matrix,
    group: NDArray[np.bool_],
) -> tuple[str, ...]:
    """Return the words that the pages of a group have and others have not."""
    means = [np.asarray(rows.mean(axis=0)).ravel() for rows in (good[~group], unlabelled)]
    own = np.asarray(good[group].mean(axis=0)).ravel()
    best = np.argsort(np.maximum(*means) - own, kind="stable")
    words = (vectors.words[i] for i in best.tolist())
    return tuple(islice((word for word in words if not is_ngram(word)), _GROUP_WORDS))


def top_words(
    model: TopicModel, topic: str, on_topic: Sequence[Bag], others: Sequence[Bag]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that part pages on the topic from others, for the topic and against it.

    The mean log-odds of both differ by a sum over words; these have the largest terms.
    """
    if not isinstance(model, LogisticModel) or not on_topic:
        return (), ()
    weights = model.linear.weights[: len(model.vectors.words), 0]
    if model.classes[1] != topic:
        weights = -weights
    means = []
    for bags in (on_topic, others):
        words = model.vectors.transform(bags).words
        means.append(np.bincount(words.ids, words.counts, len(weights)) / len(bags))
    found = model.vectors.words
    parting = weights * (means[0] - means[1])
    parting[[is_ngram(word) for word in found]] = 0.0
    best = np.argsort(-parting, kind="stable")[: np.count_nonzero(parting > 0.0)]
    towards, away = best[weights[best] > 0.0][:_MAX_WORDS], best[weights[best] < 0.0][:_MAX_WORDS]
    return tuple(found[i] for i in towards.tolist()), tuple(found[i] for i in away.tolist())


class ShareEstimate(NamedTuple):
    """An estimated share of pages, and where it lies with 90 % probability; all in [0, 1]."""

    value: float
    low: float
    high: float


def too_few_message(examples: int) -> str:
    """Return why nothing is measured of a critic with so few examples on the topic; or empty."""
    if examples >= MIN_EXAMPLES:
        return ""
    are = "example on the topic is" if examples == 1 else "examples on the topic are"
    return f"{examples} {are} too few to measure; give {MIN_EXAMPLES} or more"


def estimate_share(hits: int, pages: int) -> ShareEstimate:
    """Estimate a share from a sample of at least one page.

    Notes
    -----
    L. D. Brown, T. T. Cai and A. DasGupta, Interval estimation for a binomial proportion, 2001:
    Jeffreys' interval, which reaches to 0 or 1 where the sample does.
    """
    return _with_interval(hits / pages, pages)


def estimate_recall(log_odds: NDArray[np.float64]) -> ShareEstimate:
    """Estimate which share of a topic's pages has R > 1/2.

    Parameters
    ----------
    log_odds : (n,), of pages of the topic that were held out, n at least 1
    """
    from scipy.stats import norm  # noqa: PLC0415 - slow to import

    n = len(log_odds)
    mean = log_odds.sum() / (n + _PRIOR_PAGES)
    squares = ((log_odds - mean) ** 2).sum() + _PRIOR_PAGES * (_PRIOR_SPREAD**2 + mean**2)
    spread = np.sqrt(squares / (n + _PRIOR_PAGES))
    return _with_interval(float(norm.cdf(mean / spread)), n)


def _with_interval(value: float, pages: int) -> ShareEstimate:
    from scipy.stats import beta  # noqa: PLC0415

    n_effective = _HELD_OUT_WEIGHT * pages
    low, high = beta.interval(
        _CONFIDENCE, value * n_effective + 0.5, (1.0 - value) * n_effective + 0.5
    )
    return ShareEstimate(
        value, float(low) if value > 0.0 else 0.0, float(high) if value < 1.0 else 1.0
    )


def find_warnings(
    phrases: Sequence[Sequence[str]],
    good: Sequence[str],
    others: Sequence[tuple[str, Bag]],
    cohesion: Cohesion | None,
    recall: ShareEstimate | None,
) -> Iterator[str]:
    """Yield warnings, each a sentence.

    Parameters
    ----------
    phrases : words of each phrase of the topic
    good : URLs of the good examples
    others : URLs and words of other pages; where one was is not always known, and empty then
    cohesion : of the good examples, if there are two
    recall : as estimated from them
    """
    if good and len(good) < _MIN_GOOD:
        yield f"{len(good)} good examples are very few: give ten, as different as the topic allows"
    if len(others) >= _MIN_OTHERS:
        yield from _warn_common_phrases(phrases, [bag for _, bag in others])
        yield from _warn_single_host(good, [url for url, _ in others])
    if cohesion is not None and cohesion.groups:
        one, two = (", ".join(group) for group in cohesion.groups)
        yield f"the good examples fall apart into two groups: make a topic of each ({one}; {two})"
    elif cohesion is not None and cohesion.broad and len(good) >= _MIN_GOOD:
        yield (
            "the good examples have hardly more in common with each other than with any page: "
            "the topic is too broad; make several of it"
        )
    elif recall is not None and recall.value < _LOW_RECALL:
        yield (
            "many good examples are not found by what the others teach: the topic is too broad "
            "for so few; give more, or make several topics of it"
        )


def _warn_common_phrases(phrases: Sequence[Sequence[str]], others: Sequence[Bag]) -> Iterator[str]:
    languages = detect_languages(others, (), phrases)
    pages = to_terms(others, languages)
    for phrase in phrases:
        if languages == ENGLISH:
            n_matching = sum(
                all(any(form in bag for form in word_forms(word)) for word in phrase)
                for bag in pages
            )
        else:
            (wanted,) = to_terms([dict.fromkeys(phrase, 1)], languages)
            n_matching = sum(bag.keys() >= wanted.keys() for bag in pages)
        if n_matching > _COMMON_SHARE * len(others):
            it = "all its words" if len(phrase) > 1 else "it"
            yield (
                f"{' '.join(phrase)!r} is too common: {n_matching} of {len(others)} other pages "
                f"have {it}; take words that only pages on the topic have"
            )


def _warn_single_host(good: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    hosts = Counter(map(host, good))
    if len(good) < _MIN_GOOD or len(hosts) > 1:
        return
    (only,) = hosts
    if sum(host(url) == only for url in others if url) < len(others) / 2:
        yield f"all good examples are of {only}: the critic may learn the site, not the topic"
