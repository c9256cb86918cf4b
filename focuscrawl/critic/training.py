"""Training a critic: from labelled pages of a taxonomy, or from a phrase and a few pages."""

from __future__ import annotations

import hashlib
from collections import Counter
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
from focuscrawl.foundation.user_input import SILENT, lines_of, read_text
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
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

    LabelledBag = tuple[tuple[str, str], Bag]  # (URL, leaf topic), words


FOLDS = 5
#: kinds of critics that learn from labelled pages
TRAINABLE_KINDS = (LogisticModel.kind, *KINDS)
#: the better one in cross-validation on every recorded web, and in crawls (studies of critics)
DEFAULT_KIND = LogisticModel.kind
N_UNLABELLED = 300  # pages drawn from the web that stand for all others

#: of the pages drawn, as many for one that is probably on the topic
_UNLABELLED_PER_RELEVANT = 9
#: log-posterior of a class whose only pages are held out: nothing speaks for it
_UNSEEN_CLASS_LOG_POSTERIOR = -np.log(1e6)
_NO_GOOD_PAGE = (
    "none of the good pages can be read: name others, or where they are recorded, or words"
)


def train_critic(
    labels: Sequence[Label],
    web: Web,
    *,
    kind: str = DEFAULT_KIND,
    min_examples: int | None = 1,
    max_examples: int = 300,
    uniform_prior: bool = False,
    calibrate: bool = False,
    random_state: int = 0,
    progress: Progress = SILENT,
) -> TrainedCritic:
    """Train a critic on the rows of `labels` that are not for testing.

    Parameters
    ----------
    labels : rows whose split is not ``test`` are examples
    web : where the example pages are
    kind : one of `TRAINABLE_KINDS`
    min_examples, max_examples : bounds of a leaf's examples (see `focuscrawl.taxonomy.prune`),
        counted after leaving out what the web does not have; with 1 every topic stays as
        labelled, None is what fits (see `focuscrawl.taxonomy.choose_min_examples`)
    uniform_prior : the same Pr(c) for every class
    calibrate : make calibrated judgements the default of the critic
    random_state : seed of the samples of examples and of the folds
    progress : reports how many pages will be read, and every few that were

    Raises
    ------
    UserError
        If `kind` is unknown, or the examples found make fewer than two classes.
    """
    if kind not in TRAINABLE_KINDS:
        raise UserError(f"unknown kind of critic {kind!r}: choose {' or '.join(TRAINABLE_KINDS)}")
    wanted = [label for label in labels if label.split != "test"]
    if not wanted:
        raise UserError("the labels have only test rows: a critic learns from the others")
    found = find_urls(web, [label.url for label in wanted])
    skipped = Counter({"not in the web": found.count(None)})
    known = [
        Label(url, label.topic, "train")
        for url, label in zip(found, wanted, strict=True)
        if url is not None
    ]
    if not known:
        raise UserError(
            f"none of the {len(wanted)} examples is in the web {web.name}; "
            "name the web that the labels are from"
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
    learned = train_on_bags(
        usable,
        kind=kind,
        uniform_prior=uniform_prior,
        calibrate=calibrate,
        random_state=random_state,
    )
    return replace(
        learned,
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
    random_state: int = 0,
) -> TrainedCritic:
    """Train a critic on examples whose words are known.

    Parameters
    ----------
    usable : examples; no leaf lies under another
    kind, uniform_prior, calibrate, random_state : as in `train_critic`

    Raises
    ------
    UserError
        If the examples make fewer than two classes, or have no words to tell them apart by.
    """
    topics = [leaf for (_, leaf), _ in usable]
    if len(set(topics)) < 2:
        raise UserError(
            f"the examples that can be read are of {len(set(topics))} topics; a critic needs "
            "at least two to tell apart"
        )
    trainer = _make_trainer(usable, kind, uniform_prior)
    if trainer.is_indistinct:
        raise UserError(
            f"the {len(usable)} examples that can be read have no words to tell their topics "
            "apart by; name more or longer pages"
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
) -> NDArray[np.float64]:
    """Judge every example by a critic that has learned from the others.

    Parameters
    ----------
    usable, kind, uniform_prior, random_state : as in `train_on_bags`; of two classes at least

    Returns
    -------
    log Pr(c|u), float64 (n_examples, n_classes), the classes sorted; of a discriminative critic
    scaled as its own are
    """
    trainer = _make_trainer(usable, kind, uniform_prior)
    return trainer.cross_validate(_assign_folds(trainer.truth, random_state))[0]


def _make_trainer(
    usable: Sequence[LabelledBag], kind: str, uniform_prior: bool
) -> _NaiveBayesTrainer | _LogisticTrainer:
    bags, topics = [bag for _, bag in usable], [leaf for (_, leaf), _ in usable]
    if kind == LogisticModel.kind:
        return _LogisticTrainer(bags, topics, uniform_prior)
    return _NaiveBayesTrainer(bags, topics, KINDS[kind], uniform_prior)


class _NaiveBayesTrainer:
    """Learns naive Bayes of examples.

    Attributes
    ----------
    truth : int64 (n,), number of the class of each example
    is_indistinct : nothing tells the classes apart
    """

    def __init__(
        self, bags: Sequence[Bag], topics: list[str], kind: type[NaiveBayes], uniform_prior: bool
    ) -> None:
        self._languages = detect_languages(bags)
        self._rows = TrainingRows.from_bags(to_terms(bags, self._languages), topics)
        self._counts = self._rows.count()
        self._kind, self._uniform_prior = kind, uniform_prior
        self.truth = self._rows.truth
        self.is_indistinct = not self._counts.words

    def model(self) -> NaiveBayes:
        """Return naive Bayes of all examples."""
        return self._kind(
            self._counts, uniform_prior=self._uniform_prior, languages=self._languages
        )

    def cross_validate(
        self, folds: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Judge every example by a model that has not seen its fold.

        Returns
        -------
        log-posteriors (n, n_classes) and lengths (n,) in words the model knew
        """
        rows = self._rows
        held_out = np.full((len(rows), len(rows.classes)), _UNSEEN_CLASS_LOG_POSTERIOR)
        lengths = np.zeros(len(rows))
        for number in np.unique(folds):
            test = np.flatnonzero(folds == number)
            counts = rows.count(np.flatnonzero(folds != number))
            learned = self._kind(counts, uniform_prior=self._uniform_prior)
            part = rows.rows(test, counts.words)
            columns = np.searchsorted(rows.classes, counts.classes)
            held_out[np.ix_(test, columns)] = learned.log_posteriors_of_rows(part)
            lengths[test] = part.lengths()
        return held_out, lengths


class _LogisticTrainer:
    """Learns logistic regression of examples, with the attributes of `_NaiveBayesTrainer`.

    With a uniform prior each class counts as much as any other.
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
        """Return the model of all examples, with log-odds scaled by the last cross-validation."""
        words = to_terms(self._bags, self._languages)
        counts = TrainingRows.from_bags(words, self._topics.tolist()).count()
        link_model = NaiveBayes(
            counts, uniform_prior=self._uniform_prior, languages=self._languages
        )
        linear = fit_logistic(self._pages, self._topics, self._weight)
        return LogisticModel(self._vectors, linear.scaled(self._scale), link_model)

    def cross_validate(
        self, folds: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Judge every example by a model of the other folds; log-odds are scaled to be right.

        Returns
        -------
        log-posteriors (n, n_classes) and lengths (n,) in words
        """
        held_out = np.full((len(self.truth), len(self._classes)), _UNSEEN_CLASS_LOG_POSTERIOR)
        for number in np.unique(folds):
            test, rest = np.flatnonzero(folds == number), np.flatnonzero(folds != number)
            if len(set(self.truth[rest])) > 1:
                learned = fit_logistic(self._pages[rest], self._topics[rest], self._weight[rest])
                columns = np.searchsorted(self._classes, learned.classes)
                held_out[np.ix_(test, columns)] = learned.log_posteriors(self._pages[test])
        self._scale = fit_scale(held_out, self.truth)
        lengths = np.array([float(sum(bag.values())) for bag in self._bags])
        return log_normalised(held_out * self._scale), lengths


def _assign_folds(truth: NDArray[np.int64], random_state: int) -> NDArray[np.int64]:
    """Deal the pages of each class out to `FOLDS` folds, as evenly as they go.

    scikit-learn's `StratifiedKFold` refuses classes of fewer pages than folds.
    """
    generator = np.random.default_rng(random_state)
    fold = np.zeros(len(truth), dtype=np.int64)
    dealt = 0
    for label in range(int(truth.max()) + 1):
        members = np.flatnonzero(truth == label)
        generator.shuffle(members)
        # starting where the class previous ended keeps the folds of one size
        fold[members] = (dealt + np.arange(len(members))) % FOLDS
        dealt += len(members)
    return fold


def _summarise(
    held_out: NDArray[np.float64], truth: NDArray[np.int64], folds: NDArray[np.int64]
) -> dict[str, float]:
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
    """Return the class that a name stands for; ``/good`` for None.

    Raises
    ------
    UserError
        It is the name of the pages off the topic, or none that ``-a topic=`` could be given.
    """
    path = ON_TOPIC if name is None else normalise(name)
    if name is not None and not name.strip():
        raise UserError("name is empty: take one like /Birds")
    if "," in path:
        raise UserError(f"name {name}: commas stand between topics; take another, like /Birds")
    if path == ROOT or lies_under(path, [OFF_TOPIC]):
        raise UserError(f"name {name}: that is what is off the topic; take another, like /Birds")
    return path


def read_urls(path: str | Path) -> list[str]:
    """Return the URLs in a text file, one a line; blank lines and comments are passed over.

    Raises
    ------
    UserError
        It cannot be read or has no URL.
    """
    urls = [*lines_of(read_text(path)).values()]
    if not urls:
        raise UserError(f"{path}: no URLs in it; write one a line")
    return urls


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
    progress: Progress = SILENT,
) -> TrainedCritic:
    """Train a critic from phrases, URLs of pages on the topic, and of pages that are not.

    Parameters
    ----------
    phrases : words of each phrase
    good, bad : URLs; those that no web has, or not as HTML, are counted
    webs : where they are, asked in this order, and the pages that stand for all others; none:
        phrases alone
    topic : name of the class of the topic
    relevant : URLs of pages that are probably on the topic, like those that a focused crawl has
        judged to be: few of these are taken to stand for all others
    previous : a critic of the topic that was learned from little; its pages are at hand where no
        web has them, and the others that it was learned from stand for all others again
    random_state : seed of the sample of other pages
    progress : reports how many pages will be read, and every few that were

    Raises
    ------
    UserError
        Neither a phrase nor a good page that can be read; a phrase of everyday words; or a page is
        both good and bad.
    """
    good, bad = (list(dict.fromkeys(map(_normalise_url, urls))) for urls in (good, bad))
    both = set(good) & set(bad)
    if both:
        raise UserError(f"{min(both)} is both good and bad; take it out of one")
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
    there = [*kept, *(url for web in webs for url in find_urls(web, good))]
    if not phrases and not any(there):
        raise UserError(_NO_GOOD_PAGE)
    labelled = [*good, *bad]
    left = 0 if others else N_UNLABELLED
    progress.start(min(len(labelled) + left, sum(1 for web in webs for _ in web.urls())))
    pages = find_pages(webs, labelled, progress=progress)
    bags = kept | {url: page.bag for url, page in pages.items()}
    if not phrases and not any(url in bags for url in good):
        raise UserError(_NO_GOOD_PAGE)
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
    """Return the words of a critic's examples by URL, and of the others that it learned from."""
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
    progress: Progress = SILENT,
) -> list[tuple[str, Bag]]:
    """Draw pages that stand for all others: of the first web, then of the next.

    Parameters
    ----------
    known : URLs that are examples
    relevant : URLs of pages that are probably on the topic, of which few are drawn
    random_state : seed
    progress : reports every few pages read

    Returns
    -------
    URLs and words of 300 pages, or as many as there are
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
        while shuffled and len(drawn) < N_UNLABELLED:  # not every URL is of a page
            batch, shuffled = shuffled[:N_UNLABELLED], shuffled[N_UNLABELLED:]
            bags = read_bags(web, batch, progress=progress)
            drawn += [(url, bag) for url, bag in zip(batch, bags, strict=True) if bag]
    return drawn[:N_UNLABELLED]


def _normalise_url(url: str) -> str:
    """Return a URL as crawls write it; what is none stays, for no web has it."""
    return normalize(url) or url


def _count_unread(n: int) -> dict[str, int]:
    return {"that cannot be read": n} if n else {}


def _as_tuples(phrases: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase) for phrase in phrases)


def _shuffled(urls: Sequence[str], generator: np.random.Generator) -> list[str]:
    return [urls[i] for i in generator.permutation(len(urls)).tolist()]
