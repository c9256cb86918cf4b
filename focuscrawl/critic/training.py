"""Trains critics from labelled pages of a taxonomy, or from keywords and a few pages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.bag_of_words import TrainingRows
from focuscrawl.critic.calibration import fit_calibration, log_normalised
from focuscrawl.critic.classifiers import (
    KINDS,
    LogisticModel,
    NaiveBayes,
    as_matrix,
    fit_logistic,
    fit_scale,
)
from focuscrawl.critic.corpus import PackedBags, find_pages, find_urls, read_bags
from focuscrawl.critic.few_shot import fit_few_shot, fit_phrases, generate_filler_pages
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.languages import detect_languages, to_terms
from focuscrawl.critic.page_vectors import PageVectors, word_vectors_installed
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, reject_everyday_phrases
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.taxonomy import (
    ROOT,
    Label,
    Taxonomy,
    choose_min_examples,
    lies_under,
    normalise,
    prune,
)

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag, ClassCounts
    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

    LabelledBag = tuple[tuple[str, str], Bag]  # (URL, leaf topic), words


FOLDS = 5
#: kinds of critics that can be trained on labelled pages
TRAINABLE_KINDS = (LogisticModel.kind, *KINDS)
#: the best kind in cross-validation on every recorded web, and in crawls (studies of critics)
DEFAULT_KIND = LogisticModel.kind
N_UNLABELLED = 300  # pages sampled from the web

#: number of other pages in the sample for each probably relevant page
_UNLABELLED_PER_RELEVANT = 9
#: log-posterior of a class without training pages, because all its pages are held out
_UNSEEN_CLASS_LOG_POSTERIOR = -np.log(1e6)


def train_critic(
    labels: Sequence[Label],
    web: Web,
    *,
    kind: str = DEFAULT_KIND,
    min_examples: int | None = 1,
    max_examples: int = 300,
    uniform_prior: bool = False,
    calibrate: bool = False,
    all_words: bool = False,
    random_state: int = 0,
    progress: Progress = NO_PROGRESS,
) -> TrainedCritic:
    """Train a critic on labelled pages.

    Parameters
    ----------
    labels : rows of all splits except ``test`` are examples
    web : web that has the examples
    kind : one of `TRAINABLE_KINDS`
    min_examples, max_examples : bounds for the examples of a leaf (`focuscrawl.taxonomy.prune`),
        without examples that the web does not have. With a minimum of 1, no topic is merged; None
        for `focuscrawl.taxonomy.choose_min_examples`
    uniform_prior : whether to use the same Pr(c) for every class
    calibrate : whether the critic calibrates its judgements by default
    all_words : whether naive Bayes keeps rare words and words that all classes share, as in [A02]
    random_state : seed of the samples of examples and of the folds
    progress : reports the number of pages read

    Raises
    ------
    UserError
        If `kind` is unknown, or the readable examples belong to fewer than two classes.
    """
    if kind not in TRAINABLE_KINDS:
        raise UserError(f"unknown kind of critic {kind!r}: choose {' or '.join(TRAINABLE_KINDS)}")
    wanted = [label for label in labels if label.split != "test"]
    if not wanted:
        raise UserError("the labels have test rows only: add rows of the split train")
    found = find_urls(web, [label.url for label in wanted])
    skipped = Counter({"not in the web": found.count(None)})
    known = [
        Label(url, label.topic, "train")
        for url, label in zip(found, wanted, strict=True)
        if url is not None
    ]
    if not known:
        raise UserError(
            f"none of the {len(wanted)} examples is in the web {web.name}; name the web of the "
            "labels"
        )
    tree = Taxonomy.from_labels(known)
    least = choose_min_examples(tree) if min_examples is None else min_examples
    tree = prune(tree, least, max_examples, random_state)
    pairs = [(url, leaf) for leaf in tree.leaves for url in tree.examples(leaf)]
    progress.start(len(pairs))
    bags = read_bags(web, [url for url, _ in pairs], progress=progress)
    skipped["not HTML"] = bags.count(None)
    usable = [(pair, bag) for pair, bag in zip(pairs, bags, strict=True) if bag]
    skipped["without words"] = len(pairs) - skipped["not HTML"] - len(usable)
    unreadable = {url for (url, _), bag in zip(pairs, bags, strict=True) if not bag}
    readable = {label.topic for label in known if label.url not in unreadable}
    trained = train_on_bags(
        usable,
        kind=kind,
        uniform_prior=uniform_prior,
        calibrate=calibrate,
        all_words=all_words,
        random_state=random_state,
    )
    return replace(
        trained,
        untrained_topics=tuple(
            topic
            for topic in sorted({label.topic for label in wanted})
            if not any(lies_under(path, [topic]) for path in readable)
        ),
        skipped=+skipped,
    )


def train_on_bags(
    usable: Sequence[LabelledBag],
    *,
    kind: str = DEFAULT_KIND,
    uniform_prior: bool = False,
    calibrate: bool = False,
    all_words: bool = False,
    random_state: int = 0,
) -> TrainedCritic:
    """Train a critic on bags of words of pages; `train_critic` describes the parameters.

    Parameters
    ----------
    usable : examples; no class lies under another

    Raises
    ------
    UserError
        If there are fewer than two classes, or no word distinguishes the classes.
    """
    topics = [leaf for (_, leaf), _ in usable]
    if len(set(topics)) < 2:
        raise UserError(
            f"the readable examples have {len(set(topics))} topics; a critic needs at least two: "
            "add examples of other topics"
        )
    trainer = _make_trainer(usable, kind, uniform_prior, all_words=all_words)
    if trainer.is_indistinct:
        raise UserError(
            f"the words of the {len(usable)} readable examples do not distinguish their topics; "
            "add more or longer pages"
        )
    folds = _assign_folds(trainer.truth, random_state)
    held_out, lengths = trainer.cross_validate(folds)
    return TrainedCritic(
        model=trainer.model(),
        examples=tuple(pair for pair, _ in usable),
        training_set=_digest_examples(usable),
        calibration=fit_calibration(held_out, lengths, trainer.truth),
        calibrated=calibrate,
        cross_validation=_summarise(held_out, trainer.truth, folds),
    )


def held_out_posteriors(
    usable: Sequence[LabelledBag], *, kind: str, uniform_prior: bool = False, random_state: int = 0
) -> Floats:
    """Cross-validate a critic with two or more classes; `train_on_bags` describes parameters.

    Returns
    -------
    log Pr(c|u) of the held-out examples, float64 (n_examples, n_classes); classes are sorted
    """
    trainer = _make_trainer(usable, kind, uniform_prior)
    return trainer.cross_validate(_assign_folds(trainer.truth, random_state))[0]


def _make_trainer(
    usable: Sequence[LabelledBag], kind: str, uniform_prior: bool, *, all_words: bool = False
) -> _NaiveBayesTrainer | _LogisticTrainer:
    bags, topics = [bag for _, bag in usable], [leaf for (_, leaf), _ in usable]
    if kind == LogisticModel.kind:
        return _LogisticTrainer(bags, topics, uniform_prior)
    return _NaiveBayesTrainer(bags, topics, KINDS[kind], uniform_prior, all_words=all_words)


class _NaiveBayesTrainer:
    """Fits and cross-validates naive Bayes.

    Attributes
    ----------
    truth : int64 (n,), index of the class of each example
    is_indistinct : whether no word distinguishes the classes
    """

    def __init__(
        self,
        bags: Sequence[Bag],
        topics: list[str],
        kind: type[NaiveBayes],
        uniform_prior: bool,
        *,
        all_words: bool,
    ) -> None:
        self._languages = detect_languages(bags)
        self._rows = TrainingRows.from_bags(to_terms(bags, self._languages), topics)
        self._all_words = all_words
        self._counts = self._count()
        self._kind, self._uniform_prior = kind, uniform_prior
        self.truth = self._rows.truth
        self.is_indistinct = not self._counts.words

    def model(self) -> NaiveBayes:
        """Return the model trained on all examples."""
        return self._kind(
            self._counts, uniform_prior=self._uniform_prior, languages=self._languages
        )

    def cross_validate(self, folds: Ints) -> tuple[Floats, Floats]:
        """Return held-out log-probabilities (n, n_classes) and the words per page (n,)."""
        rows = self._rows
        held_out = np.full((len(rows), len(rows.classes)), _UNSEEN_CLASS_LOG_POSTERIOR)
        lengths = np.zeros(len(rows))
        for fold in np.unique(folds):
            test = np.flatnonzero(folds == fold)
            counts = self._count(np.flatnonzero(folds != fold))
            fitted = self._kind(counts, uniform_prior=self._uniform_prior)
            part = rows.rows(test, counts.words)
            columns = np.searchsorted(rows.classes, counts.classes)
            held_out[np.ix_(test, columns)] = fitted.log_posteriors_of_rows(part)
            lengths[test] = part.lengths()
        return held_out, lengths

    def _count(self, chosen: Ints | None = None) -> ClassCounts:
        if self._all_words:
            return self._rows.count(chosen, min_df=1, max_df=1.0)
        return self._rows.count(chosen)


class _LogisticTrainer:
    """Fits and cross-validates logistic regression, with the attributes of `_NaiveBayesTrainer`.

    With a uniform prior, all classes have the same total weight.
    """

    def __init__(self, bags: Sequence[Bag], topics: list[str], uniform_prior: bool) -> None:
        self._bags, self._topics = bags, np.array(topics)
        self._uniform_prior = uniform_prior
        self.is_indistinct = all(bag.keys() == bags[0].keys() for bag in bags)
        self._languages = detect_languages(bags)
        self._vectors = PageVectors.fit(
            bags, embeddings=word_vectors_installed(), languages=self._languages
        )
        self._pages = as_matrix(self._vectors.transform(bags), len(self._vectors.words))
        self._classes, self.truth, pages_of = np.unique(
            self._topics, return_inverse=True, return_counts=True
        )
        self._weight = np.ones(len(topics))
        if uniform_prior:
            self._weight = len(topics) / (len(pages_of) * pages_of[self.truth])
        self._scale = 1.0

    def model(self) -> LogisticModel:
        """Return the model trained on all examples.

        The log-odds of the model are scaled by the factor that the last cross-validation found.
        """
        words = to_terms(self._bags, self._languages)
        counts = TrainingRows.from_bags(words, self._topics.tolist()).count()
        link_model = NaiveBayes(
            counts, uniform_prior=self._uniform_prior, languages=self._languages
        )
        linear = fit_logistic(self._pages, self._topics, self._weight)
        return LogisticModel(self._vectors, linear.scaled(self._scale), link_model)

    def cross_validate(self, folds: Ints) -> tuple[Floats, Floats]:
        """Return scaled held-out log-probabilities (n, n_classes) and the words per page (n,)."""
        held_out = np.full((len(self.truth), len(self._classes)), _UNSEEN_CLASS_LOG_POSTERIOR)
        for fold in np.unique(folds):
            test, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            if len(set(self.truth[rest])) > 1:
                fitted = fit_logistic(self._pages[rest], self._topics[rest], self._weight[rest])
                columns = np.searchsorted(self._classes, fitted.classes)
                held_out[np.ix_(test, columns)] = fitted.log_posteriors(self._pages[test])
        self._scale = fit_scale(held_out, self.truth)
        lengths = np.array([float(sum(bag.values())) for bag in self._bags])
        return log_normalised(held_out * self._scale), lengths


def _assign_folds(truth: Ints, random_state: int) -> Ints:
    """Return the fold of each page; the pages of a class are spread evenly over the folds.

    scikit-learn's `StratifiedKFold` rejects classes with fewer pages than folds.
    """
    generator = np.random.default_rng(random_state)
    fold = np.zeros(len(truth), dtype=np.int64)
    dealt = 0
    for label in range(int(truth.max()) + 1):
        members = np.flatnonzero(truth == label)
        generator.shuffle(members)
        # starting after the last fold of the previous class keeps the folds equally large
        fold[members] = (dealt + np.arange(len(members))) % FOLDS
        dealt += len(members)
    return fold


def _summarise(held_out: Floats, truth: Ints, folds: Ints) -> dict[str, float]:
    right = held_out.argmax(axis=1) == truth
    recall = [right[truth == label].mean() for label in np.unique(truth)]
    return {
        "folds": len(np.unique(folds)),
        "accuracy": round(float(right.mean()), 4),
        "mean_recall": round(float(np.mean(recall)), 4),
    }


def _digest_examples(usable: Sequence[LabelledBag]) -> str:
    digest = hashlib.sha256()
    for (url, topic), bag in sorted(usable, key=lambda item: item[0]):
        words = " ".join(f"{word}:{bag[word]}" for word in sorted(bag))
        digest.update(f"{url}\n{topic}\n{words}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def parse_topic_name(name: str | None) -> str:
    """Return the topic path of the class that a user names; return ``/good`` if `name` is None.

    Raises
    ------
    UserError
        If the name is empty, the root, ``/bad`` or a topic under ``/bad``, or has a comma.
    """
    path = ON_TOPIC if name is None else normalise(name)
    if name is not None and not name.strip():
        raise UserError("the name is empty: choose a name like /Birds")
    if "," in path:
        raise UserError(f"name {name}: commas separate topics; choose a name like /Birds")
    if path == ROOT or lies_under(path, [OFF_TOPIC]):
        raise UserError(f"name {name} is reserved; choose a name like /Birds")
    return path


def train_few_shot(
    phrases: Sequence[Sequence[str]],
    good: Sequence[str],
    bad: Sequence[str],
    webs: Sequence[Web],
    *,
    topic: str = ON_TOPIC,
    relevant: Collection[str] = (),
    previous: TrainedCritic | None = None,
    random_state: int = 0,
    progress: Progress = NO_PROGRESS,
) -> TrainedCritic:
    """Train a critic from phrases and URLs of relevant and off-topic pages.

    Parameters
    ----------
    phrases : words of each phrase
    good, bad : URLs of relevant and of off-topic pages. Pages that no web has as HTML are counted
        in `TrainedCritic.skipped`
    webs : webs that have the examples and unlabelled pages, searched in this order. Without webs,
        the critic is trained from phrases only
    topic : topic path of the class
    relevant : URLs of probably relevant pages, such as pages that a crawl judged relevant; few of
        them are sampled as unlabelled pages
    previous : few-shot critic of the topic. Its words of pages that no web has are used again, and
        so are its unlabelled pages
    random_state : seed of the sample of unlabelled pages
    progress : reports the number of pages read

    Raises
    ------
    UserError
        If there is neither a phrase nor a readable good page, a phrase has everyday words only, or
        a page is both good and bad.
    """
    good, bad = (list(dict.fromkeys(map(_normalise_url, urls))) for urls in (good, bad))
    both = set(good) & set(bad)
    if both:
        raise UserError(f"{min(both)} is both good and bad; remove it from one of the two lists")
    kept, others = _load_previous(previous)
    if not webs and not kept and phrases:
        languages = detect_languages((), (), phrases)
        reject_everyday_phrases(phrases, languages)
        model = fit_phrases(
            phrases, topic=topic, embeddings=word_vectors_installed(), languages=languages
        )
        return TrainedCritic(
            model=model, phrases=_as_tuples(phrases), skipped=_count_unread(len(good) + len(bad))
        )
    no_good_page = UserError(
        f"none of the good pages can be read ({', '.join(good[:3]) or 'none is given'}): give "
        "other good pages, a recording that has them, or keywords"
    )
    there = [*kept, *(url for web in webs for url in find_urls(web, good))]
    if not phrases and not any(there):
        raise no_good_page
    labelled = [*good, *bad]
    left = 0 if others else N_UNLABELLED
    progress.start(min(len(labelled) + left, sum(1 for web in webs for _ in web.urls())))
    pages = find_pages(webs, labelled, progress=progress)
    bags = kept | {url: page.bag for url, page in pages.items()}
    if not phrases and not any(url in bags for url in good):
        raise no_good_page
    if not others:
        known = {page.url for page in pages.values()}
        drawn = sample_unlabelled_pages(
            webs, known, relevant, random_state=random_state, progress=progress
        )
        others = [bag for _, bag in drawn]
    on, off = ([bags[url] for url in urls if url in bags] for urls in (good, bad))
    languages = detect_languages(others, [*on, *off], phrases)
    reject_everyday_phrases(phrases, languages)
    model = fit_few_shot(
        phrases,
        on,
        off,
        [*others, *generate_filler_pages(len(others), random_state, languages)],
        topic=topic,
        embeddings=word_vectors_installed(),
        languages=languages,
    )
    labels = [(url, topic) for url in good] + [(url, OFF_TOPIC) for url in bad]
    examples = tuple(pair for pair in labels if pair[0] in bags)
    return TrainedCritic(
        model=model,
        examples=examples,
        phrases=_as_tuples(phrases),
        random_state=random_state,
        skipped=_count_unread(len(labelled) - len(examples)),
        pages=PackedBags.from_bags([*on, *off, *others]),
    )


def _load_previous(previous: TrainedCritic | None) -> tuple[dict[str, Bag], list[Bag]]:
    """Return the words of a critic's examples by URL, and the words of its unlabelled pages."""
    if previous is None:
        return {}, []
    bags = previous.pages.bags()
    urls = [url for url, _ in previous.examples][: len(bags)]
    return dict(zip(urls, bags, strict=False)), bags[len(urls) :]


def sample_unlabelled_pages(
    webs: Sequence[Web],
    known: Collection[str],
    relevant: Collection[str] = (),
    *,
    random_state: int,
    progress: Progress = NO_PROGRESS,
) -> list[tuple[str, Bag]]:
    """Sample unlabelled pages from recordings, one after the other until there are enough pages.

    Parameters
    ----------
    known : URLs of the examples
    relevant : URLs of probably relevant pages, of which few are sampled
    random_state : seed of the sample
    progress : reports the number of pages read

    Returns
    -------
    URLs and words of up to 300 pages
    """
    generator = np.random.default_rng(random_state)
    drawn: list[tuple[str, Bag]] = []
    for web in webs:
        urls = [url for url in web.urls() if url not in known]
        others = [url for url in urls if url not in relevant]
        shuffled = _shuffled([url for url in urls if url in relevant], generator)
        shuffled = _shuffled(
            others + shuffled[: len(others) // _UNLABELLED_PER_RELEVANT], generator
        )
        while shuffled and len(drawn) < N_UNLABELLED:  # some URLs have no HTML page
            batch, shuffled = shuffled[:N_UNLABELLED], shuffled[N_UNLABELLED:]
            bags = read_bags(web, batch, progress=progress)
            drawn += [(url, bag) for url, bag in zip(batch, bags, strict=True) if bag]
    return drawn[:N_UNLABELLED]


def _normalise_url(url: str) -> str:
    """Return the normalised URL, or an invalid URL unchanged."""
    return normalize(url) or url


def _count_unread(n: int) -> dict[str, int]:
    return {"unreadable": n} if n else {}


def _as_tuples(phrases: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase) for phrase in phrases)


def _shuffled(urls: Sequence[str], generator: np.random.Generator) -> list[str]:
    return [urls[i] for i in generator.permutation(len(urls)).tolist()]
