"""Quality estimates of a few-shot critic: cross-validation, recall, cohesion, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.focused_critic import TopicModel, TrainedCritic
    from focuscrawl.critic.page_vectors import PageVectors
    from focuscrawl.foundation.arrays import Bools, Floats

    UrlBag = tuple[str, Bag]

#: good examples that an estimate of the quality needs
MIN_EXAMPLES = 10

_MAX_LEAVE_ONE_OUT = 20  # examples; with more, a tenth of them is held out at a time
_FOLDS = 10
_MAX_WORDS = 12  # listed for the topic, and as many against it

_GROUP_WORDS = 5  # words that describe a group
_MIN_GROUP_PAGES = 3
#: mean silhouette above which examples are two groups, and mean cosine of two examples below which
#: a topic is broad. Tuned on topics and mixtures of topics of two recorded webs (studies of
#: critics). By words alone, all pages are nearly orthogonal
_MIN_SILHOUETTE, _MIN_SILHOUETTE_BY_WORDS = 0.28, 0.05
_MIN_COSINE, _MIN_COSINE_BY_WORDS = 0.06, 0.012

_CONFIDENCE = 0.9
#: weight of a held-out page in an interval: the critics of the folds are not the final critic
_HELD_OUT_WEIGHT = 0.6
#: prior of the spread of the log-odds of relevant pages (normal with mean 0), and its weight in
#: pages. With few examples, the distance of log-odds from 0 shows more than their sign
_PRIOR_SPREAD, _PRIOR_PAGES = 3.0, 3.0

_MIN_GOOD = 3
_LOW_RECALL = 0.4
_COMMON_SHARE = 0.2  # of other pages that contain a phrase, above which the phrase is too common
_MIN_OTHERS = 20  # other pages needed to detect common phrases

_MAX_COMPARED = 2000  # examples compared with each other
_MAX_SIMILAR = 50  # pairs listed
_SIMILAR = 0.9  # cosine of the square roots of word counts


class JudgedPage(NamedTuple):
    """A page, and its relevance by a critic that was not trained on the page.

    Attributes
    ----------
    label : topic of the page; empty if the page has no label
    """

    url: str
    label: str
    relevance: float


@dataclass(frozen=True, slots=True)
class FewExamplesReport:
    """Quality estimates of a few-shot critic.

    Attributes
    ----------
    topic : topic of the critic
    examples : held-out examples; empty with too few examples for cross-validation
    others : a sample of unlabelled pages of the web, in random order
    recall : estimated share of relevant pages that the critic finds, if there are `MIN_EXAMPLES`
        good examples
    words_for, words_against : words with the highest weights; empty if the critic has no weights
    warnings : problems of the examples, one sentence each
    """

    topic: str
    examples: tuple[JudgedPage, ...]
    others: tuple[JudgedPage, ...]
    recall: ShareEstimate | None
    words_for: tuple[str, ...]
    words_against: tuple[str, ...]
    warnings: tuple[str, ...]

    def called_relevant(self) -> list[JudgedPage]:
        """Return pages that the critic judged relevant, in random order and without examples."""
        return [page for page in self.others if page.relevance > 0.5]

    def doubtful(self, most: int) -> list[JudgedPage]:
        """Return up to `most` examples whose relevance contradicts their label, the worst first.

        The result is empty if there are too few examples for an estimate.
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
    """Estimate the quality of a few-shot critic by cross-validation.

    Parameters
    ----------
    trained : few-shot critic
    good, bad : URLs and words of its distinct examples
    others : URLs, possibly empty, and words of at least one unlabelled page
    """
    topic = next(path for path in trained.model.classes if path != OFF_TOPIC)
    on_topic, off_topic, unlabelled = ([bag for _, bag in side] for side in (good, bad, others))
    odds, odds_unlabelled, cohesion = score_held_out(
        trained, on_topic, off_topic, unlabelled, topic
    )
    recall = None
    if len(good) >= MIN_EXAMPLES and len(odds):
        recall = estimate_recall(odds[: len(good)])
    if not good:
        on_topic = [bag for bag, each in zip(unlabelled, odds_unlabelled, strict=True) if each > 0]
    words_for, words_against = top_words(trained.model, topic, on_topic, unlabelled)
    labelled = [(url, topic) for url, _ in good] + [(url, OFF_TOPIC) for url, _ in bad]
    return FewExamplesReport(
        topic=topic,
        examples=tuple(
            JudgedPage(url, label, relevance)
            for (url, label), relevance in zip(labelled, _to_relevance(odds), strict=len(odds) > 0)
        ),
        others=tuple(
            JudgedPage(url, "", relevance)
            for (url, _), relevance in zip(others, _to_relevance(odds_unlabelled), strict=True)
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


def _to_relevance(log_odds: Floats) -> list[float]:
    relevance: list[float] = (0.5 + 0.5 * np.tanh(log_odds / 2.0)).tolist()
    return relevance


def critic_phrases(trained: TrainedCritic) -> Sequence[Sequence[str]]:
    """Return the words of each of the phrases on which a critic was trained."""
    model = trained.model
    return model.phrases if isinstance(model, PhraseModel) else trained.phrases


def score_held_out(
    trained: TrainedCritic,
    good: Sequence[Bag],
    bad: Sequence[Bag],
    others: Sequence[Bag],
    topic: str,
) -> tuple[Floats, Floats, Cohesion | None]:
    """Score example pages by cross-validation or, if they are too few, by the trained critic.

    Returns
    -------
    Log-odds of the examples, good examples first, or an empty array; log-odds of `others`;
    cohesion of the good examples
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
    """Log-odds of relevance of held-out training pages, in arrays float64 (n_pages,)."""

    good: Floats
    bad: Floats
    unlabelled: Floats


def cross_validate_few_shot(
    vectors: PageVectors,
    phrases: Sequence[Sequence[str]],
    pages: TrainingPages,
    random_state: int,
) -> HeldOutLogOdds:
    """Cross-validate with one fold per example, or with 10 folds for more than 20 examples.

    Each fold also holds out a part of the unlabelled pages.

    Parameters
    ----------
    vectors : page vectors that `pages` were transformed with
    phrases : words of each phrase of the topic; without phrases, two good pages are needed
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
    """Similarity of the good examples of a topic with each other.

    Attributes
    ----------
    broad : whether examples are hardly more similar to each other than any two pages
    groups : words that describe each of two dissimilar groups; empty if there is one group
    """

    broad: bool
    groups: tuple[tuple[str, ...], ...]


def measure_cohesion(vectors: PageVectors, pages: TrainingPages) -> Cohesion:
    """Compare at least two good pages with each other by their embeddings, or else by their words.

    Before the cosines are computed, the mean of the unlabelled pages is subtracted. Two unrelated
    pages have a cosine of about 0 after the subtraction.
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


def _cosines(good: sparse.csr_matrix, unlabelled: sparse.csr_matrix) -> Floats:
    centre = np.asarray(unlabelled.mean(axis=0)).ravel()
    along = good @ centre
    products = (good @ good.T).toarray() - along[:, None] - along + centre @ centre
    length = np.sqrt(np.maximum(np.diag(products), 1e-12))
    cosines: Floats = products / length[:, None] / length
    return cosines


def _split_in_two(cosines: Floats, min_silhouette: float) -> Bools | None:
    """Return which examples are in the first of two groups; None if the examples are one group."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import
    from sklearn.metrics import silhouette_score  # noqa: PLC0415

    groups = KMeans(2, n_init=10, random_state=0).fit_predict(cosines)
    first: Bools = groups == groups[0]
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
    vectors: PageVectors, good: sparse.csr_matrix, unlabelled: sparse.csr_matrix, group: Bools
) -> tuple[str, ...]:
    """Return the words that are more frequent in a group than elsewhere."""
    means = [np.asarray(rows.mean(axis=0)).ravel() for rows in (good[~group], unlabelled)]
    own = np.asarray(good[group].mean(axis=0)).ravel()
    best = np.argsort(np.maximum(*means) - own, kind="stable")
    words = (vectors.words[i] for i in best.tolist())
    return tuple(islice((word for word in words if not is_ngram(word)), _GROUP_WORDS))


def top_words(
    model: TopicModel, topic: str, on_topic: Sequence[Bag], others: Sequence[Bag]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words with the strongest evidence for the topic, and those against the topic.

    The returned words contribute most to the difference between the mean log-odds of relevant and
    other pages.
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
    """An estimated share of pages with its 90 % interval, each between 0 and 1."""

    value: float
    low: float
    high: float


def too_few_message(examples: int) -> str:
    """Return a message if the good examples are too few to measure a critic, or else ""."""
    if examples >= MIN_EXAMPLES:
        return ""
    are = "example on the topic is" if examples == 1 else "examples on the topic are"
    return f"{examples} {are} too few to measure; give {MIN_EXAMPLES} or more"


def estimate_share(hits: int, pages: int) -> ShareEstimate:
    """Estimate a share from a sample of one or more pages, with the Jeffreys interval.

    Notes
    -----
    The interval reaches 0 or 1 if the sample does: L. D. Brown, T. T. Cai and A. DasGupta,
    Interval estimation for a binomial proportion, 2001.
    """
    return _with_interval(hits / pages, pages)


def estimate_recall(log_odds: Floats) -> ShareEstimate:
    """Estimate a critic's recall, the share of relevant pages that the critic judges relevant.

    Parameters
    ----------
    log_odds : of at least one held-out relevant page, (n_pages,)
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
    """Yield warnings about the examples of a critic, one sentence each.

    Parameters
    ----------
    phrases : words of each phrase of the topic
    good : URLs of the good examples
    others : URLs, empty if unknown, and words of unlabelled pages
    """
    if good and len(good) < _MIN_GOOD:
        examples = "1 good example" if len(good) == 1 else f"{len(good)} good examples"
        yield f"only {examples}: give {MIN_EXAMPLES} or more different good pages"
    if len(others) >= _MIN_OTHERS:
        yield from _warn_common_phrases(phrases, [bag for _, bag in others])
        yield from _warn_single_host(good, [url for url, _ in others])
    if cohesion is not None and cohesion.groups:
        one, two = (", ".join(group) for group in cohesion.groups)
        yield f"the good examples form two groups: create a topic for each group ({one}; {two})"
    elif cohesion is not None and cohesion.broad and len(good) >= _MIN_GOOD:
        yield (
            "the good examples have little in common: the topic is too broad; divide it into "
            "several topics"
        )
    elif recall is not None and recall.value < _LOW_RECALL:
        yield (
            "the critic misses many good examples when they are held out: give more examples, or "
            "divide the topic into several topics"
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
            words = "all words of the phrase" if len(phrase) > 1 else "the phrase"
            yield (
                f"{' '.join(phrase)!r} is too common: {n_matching} of {len(others)} other pages "
                f"have {words}; choose words that only relevant pages have"
            )


def _warn_single_host(good: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    hosts = Counter(map(host, good))
    if len(good) < _MIN_GOOD or len(hosts) > 1:
        return
    (only,) = hosts
    if sum(host(url) == only for url in others if url) < len(others) / 2:
        yield f"all good examples are from {only}: the critic may learn the site, not the topic"


def find_similar_pages(pages: Sequence[UrlBag]) -> tuple[dict[str, Any], ...]:
    """Return pairs of pages whose word counts have a cosine above 0.9, most similar first."""
    from sklearn.feature_extraction import DictVectorizer  # noqa: PLC0415
    from sklearn.preprocessing import normalize  # noqa: PLC0415

    compared = [(url, bag) for url, bag in pages if bag][:_MAX_COMPARED]
    if len(compared) < 2:
        return ()
    rows = normalize(DictVectorizer().fit_transform([bag for _, bag in compared]).sqrt())
    similarity = np.triu((rows @ rows.T).toarray(), 1)
    pairs = np.argwhere(similarity > _SIMILAR)
    order = np.argsort(-similarity[tuple(pairs.T)], kind="stable")[:_MAX_SIMILAR]
    return tuple(
        {"a": compared[i][0], "b": compared[j][0], "similarity": float(similarity[i, j])}
        for i, j in pairs[order].tolist()
    )
