"""Training a critic from example pages [METHODS 2]."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.critic.calibration import fit_calibration, log_normalised
from focuscrawl.critic.corpus import read_bags, resolve
from focuscrawl.critic.counts import TrainingRows
from focuscrawl.critic.discriminative import (
    LogisticModel,
    as_matrix,
    fit_logistic,
    fit_scale,
)
from focuscrawl.critic.languages import languages_of, read_as
from focuscrawl.critic.naive_bayes import KINDS, NaiveBayes
from focuscrawl.critic.page_vectors import PageVectors
from focuscrawl.critic.trained import TrainedCritic
from focuscrawl.critic.word_vectors import word_vectors_installed
from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import lines_of, read_text
from focuscrawl.foundation.progress_listener import SILENT
from focuscrawl.taxonomy import Label, Taxonomy, fitting_minimum, lies_under, prune

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy import sparse

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.progress_listener import Progress
    from focuscrawl.webs.protocol import Web

FOLDS = 5
#: kinds of critics that learn from labelled pages
TRAINABLE = (LogisticModel.kind, *KINDS)
#: the better one in cross-validation on every recorded web, and in crawls (docs/critics.md)
DEFAULT_KIND = LogisticModel.kind


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
    kind : one of `TRAINABLE`
    min_examples, max_examples : bounds of a leaf's examples (see `focuscrawl.taxonomy.prune`),
        counted after leaving out what the web does not have; with 1 every topic stays as
        labelled, None is what fits (see `focuscrawl.taxonomy.fitting_minimum`)
    uniform_prior : the same Pr(c) for every class
    calibrate : make calibrated judgements the default of the critic
    random_state : seed of the samples of examples and of the folds
    progress : told how many pages will be read, and of every few that were

    Raises
    ------
    UserError
        If `kind` is unknown, or the examples found make fewer than two classes.
    """
    if kind not in TRAINABLE:
        raise UserError(f"unknown kind of critic {kind!r}: choose {' or '.join(TRAINABLE)}")
    wanted = [label for label in labels if label.split != "test"]
    if not wanted:
        raise UserError("the labels have only test rows: a critic learns from the others")
    found = resolve(web, [label.url for label in wanted])
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
    least = fitting_minimum(tree) if min_examples is None else min_examples
    tree = prune(tree, least, max_examples, random_state)
    pairs = [(url, leaf) for leaf in tree.leaves for url in tree.examples(leaf)]
    progress.start(len(pairs))
    bags = read_bags(web, [url for url, _ in pairs], progress=progress)
    skipped["not HTML"] = bags.count(None)
    usable = [(pair, bag) for pair, bag in zip(pairs, bags, strict=True) if bag]
    skipped["without words"] = len(pairs) - skipped["not HTML"] - len(usable)
    unreadable = {url for (url, _), bag in zip(pairs, bags, strict=True) if not bag}
    readable = {label.topic for label in known if label.url not in unreadable}
    learned = learn_critic(
        usable,
        kind=kind,
        uniform_prior=uniform_prior,
        calibrate=calibrate,
        random_state=random_state,
    )
    return replace(
        learned,
        absent=tuple(
            topic
            for topic in sorted({label.topic for label in wanted})
            if not any(lies_under(path, [topic]) for path in readable)
        ),
        skipped=+skipped,
    )


def learn_critic(
    usable: Sequence[tuple[tuple[str, str], Bag]],
    *,
    kind: str = DEFAULT_KIND,
    uniform_prior: bool = False,
    calibrate: bool = False,
    random_state: int = 0,
) -> TrainedCritic:
    """Train a critic on examples whose words are known.

    Parameters
    ----------
    usable : ((URL, leaf topic), words) of each example; no leaf lies under another
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
    if kind == LogisticModel.kind:
        return _learn_discriminative(
            usable, uniform_prior=uniform_prior, calibrate=calibrate, random_state=random_state
        )
    bags = [bag for _, bag in usable]
    languages = languages_of(bags)
    rows = TrainingRows.from_bags(read_as(bags, languages), topics)
    counts = rows.count()
    if not counts.words:
        raise _alike(len(rows))
    model = KINDS[kind](counts, uniform_prior=uniform_prior, languages=languages)
    folds = _folds(rows.truth, random_state)
    held_out, lengths = _cross_validate(model, rows, folds)
    return TrainedCritic(
        model=model,
        examples=tuple(pair for pair, _ in usable),
        training_set=_digest(usable),
        calibration=fit_calibration(held_out, lengths, rows.truth),
        calibrated=calibrate,
        cross_validation=_summary(held_out, rows.truth, folds),
    )


def _alike(pages: int) -> UserError:
    return UserError(
        f"the {pages} examples that can be read have no words to tell their topics apart by; "
        "name more or longer pages"
    )


def _learn_discriminative(
    usable: Sequence[tuple[tuple[str, str], Bag]],
    *,
    uniform_prior: bool,
    calibrate: bool,
    random_state: int,
) -> TrainedCritic:
    """Train a logistic critic; its log-odds are scaled to be right on held-out pages."""
    bags = [bag for _, bag in usable]
    if all(bag.keys() == bags[0].keys() for bag in bags):
        raise _alike(len(bags))
    languages = languages_of(bags)
    vectors = PageVectors.learn(bags, embeddings=word_vectors_installed(), languages=languages)
    pages = as_matrix(vectors.read(bags), len(vectors.words))
    topics = np.array([leaf for (_, leaf), _ in usable])
    weight = _weights(topics, uniform_prior=uniform_prior)
    held_out, truth, folds = _held_out(pages, topics, weight, random_state)
    scale = fit_scale(held_out, truth)
    lengths = np.array([float(sum(bag.values())) for bag in bags])
    counts = TrainingRows.from_bags(read_as(bags, languages), list(topics)).count()
    reader = NaiveBayes(counts, uniform_prior=uniform_prior, languages=languages)
    return TrainedCritic(
        model=LogisticModel(vectors, fit_logistic(pages, topics, weight).scaled(scale), reader),
        examples=tuple(pair for pair, _ in usable),
        training_set=_digest(usable),
        calibration=fit_calibration(log_normalised(held_out * scale), lengths, truth),
        calibrated=calibrate,
        cross_validation=_summary(held_out, truth, folds),
    )


def held_out_posteriors(
    usable: Sequence[tuple[tuple[str, str], Bag]],
    *,
    kind: str,
    uniform_prior: bool = False,
    random_state: int = 0,
) -> NDArray[np.float64]:
    """Judge every example by a critic that has learned from the others.

    Parameters
    ----------
    usable, kind, uniform_prior, random_state : as in `learn_critic`; of two classes at least

    Returns
    -------
    log Pr(c|u), float64 (n_examples, n_classes), the classes sorted; of a discriminative critic
    scaled as its own are
    """
    bags, topics = [bag for _, bag in usable], [leaf for (_, leaf), _ in usable]
    languages = languages_of(bags)
    if kind != LogisticModel.kind:
        rows = TrainingRows.from_bags(read_as(bags, languages), topics)
        model = KINDS[kind](rows.count(), uniform_prior=uniform_prior, languages=languages)
        return _cross_validate(model, rows, _folds(rows.truth, random_state))[0]
    vectors = PageVectors.learn(bags, embeddings=word_vectors_installed(), languages=languages)
    pages = as_matrix(vectors.read(bags), len(vectors.words))
    named = np.array(topics)
    weight = _weights(named, uniform_prior=uniform_prior)
    held_out, truth, _ = _held_out(pages, named, weight, random_state)
    return log_normalised(held_out * fit_scale(held_out, truth))


def _weights(topics: NDArray[np.str_], *, uniform_prior: bool) -> NDArray[np.float64]:
    """Return what each example counts: with a uniform prior, each class as much."""
    if not uniform_prior:
        return np.ones(len(topics))
    classes, truth, pages_of = np.unique(topics, return_inverse=True, return_counts=True)
    weight: NDArray[np.float64] = len(topics) / (len(classes) * pages_of[truth])
    return weight


def _held_out(
    pages: sparse.csr_matrix,
    topics: NDArray[np.str_],
    weight: NDArray[np.float64],
    random_state: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Judge every page by a linear function fitted to the other folds.

    Returns
    -------
    log-posteriors (n, n_classes), and of each page the number of its class, and its fold
    """
    classes, truth = np.unique(topics, return_inverse=True)
    folds = _folds(truth, random_state)
    held_out = np.full((len(topics), len(classes)), -np.log(1e6))
    for number in np.unique(folds):
        test, rest = np.flatnonzero(folds == number), np.flatnonzero(folds != number)
        if len(set(truth[rest])) > 1:
            learned = fit_logistic(pages[rest], topics[rest], weight[rest])
            columns = np.searchsorted(classes, learned.classes)
            held_out[np.ix_(test, columns)] = learned.log_posteriors(pages[test])
    return held_out, truth, folds


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


def _folds(truth: NDArray[np.int64], random_state: int) -> NDArray[np.int64]:
    """Deal the pages of each class out to `FOLDS` folds, as evenly as they go."""
    generator = np.random.default_rng(random_state)
    fold = np.zeros(len(truth), dtype=np.int64)
    dealt = 0
    for label in range(int(truth.max()) + 1):
        members = np.flatnonzero(truth == label)
        generator.shuffle(members)
        # going on where the class before ended keeps the folds of one size
        fold[members] = (dealt + np.arange(len(members))) % FOLDS
        dealt += len(members)
    return fold


def _cross_validate(
    model: NaiveBayes,
    rows: TrainingRows,
    folds: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Judge every training page by a model that has not seen its fold.

    Returns
    -------
    log-posteriors (n, n_classes) and lengths (n,) in words the model knew. A class whose only
    pages are in the fold gets the log-posterior of a class that nothing speaks for.
    """
    n_classes = len(rows.classes)
    held_out = np.full((len(rows), n_classes), -np.log(1e6))
    lengths = np.zeros(len(rows))
    for number in np.unique(folds):
        test = np.flatnonzero(folds == number)
        counts = rows.count(np.flatnonzero(folds != number))
        learned = type(model)(counts, uniform_prior=model.uniform_prior)
        part = rows.rows(test, counts.words)
        columns = np.searchsorted(rows.classes, counts.classes)
        held_out[np.ix_(test, columns)] = learned.log_posteriors_of_rows(part)
        lengths[test] = part.lengths()
    return held_out, lengths


def _summary(
    held_out: NDArray[np.float64], truth: NDArray[np.int64], folds: NDArray[np.int64]
) -> dict[str, float]:
    right = held_out.argmax(axis=1) == truth
    recall = [right[truth == label].mean() for label in np.unique(truth)]
    return {
        "folds": len(np.unique(folds)),
        "accuracy": round(float(right.mean()), 4),
        "mean_recall": round(float(np.mean(recall)), 4),
    }


def _digest(usable: Sequence[tuple[tuple[str, str], Bag]]) -> str:
    digest = hashlib.sha256()
    for (url, topic), bag in sorted(usable, key=lambda item: item[0]):
        words = " ".join(f"{word}:{bag[word]}" for word in sorted(bag))
        digest.update(f"{url}\n{topic}\n{words}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
