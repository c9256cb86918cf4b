"""How well critics from little judge: from a phrase, a few pages, both, or all labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.critic.discriminative import as_matrix
from focuscrawl.critic.from_little import LittlePages, learn_judge, read_little
from focuscrawl.critic.page_vectors import PageVectors
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, phrases_of, read_phrases
from focuscrawl.critic.reliability import reliability_of_relevance
from focuscrawl.critic.training import learn_critic
from focuscrawl.critic.word_vectors import word_vectors_installed
from focuscrawl.lab.labelled_pages import judged_by_labels, read_labelled
from focuscrawl.taxonomy import OTHER, lies_under

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.arrays import Bools, Floats
    from focuscrawl.lab.labelled_pages import LabelledPages
    from focuscrawl.lab.topic_tasks import Task

DRAWS = 5
PAGES = (3, 5, 20)
#: in the order of tables
CRITICS = ("words", "naive Bayes", "discriminative", "discriminative, no embeddings")


class _Material(NamedTuple):
    """What a critic from little learns from: the phrase or not, so many pages."""

    phrase: bool
    good: int
    bad: int = 0

    def __str__(self) -> str:
        said = ["phrase"] if self.phrase else []
        said += [f"{n} {kind}" for n, kind in ((self.good, "good"), (self.bad, "bad")) if n]
        return ", ".join(said)


_FROM_LITTLE = (
    _Material(True, 0),
    *(_Material(phrase, n) for n in PAGES for phrase in (False, True)),
    _Material(True, PAGES[-1], PAGES[-1]),
)


def study_critics(task: Task) -> dict[str, pd.DataFrame]:
    """Train critics of a topic from what people have, and test them on the ``test`` rows.

    Good and bad pages are drawn from the training rows, unlabelled ones from all pages but those
    tested; of these there are 2,000 at most. A topic's phrase is that of the study, or its name.

    Returns
    -------
    ``critics``: one row a draw, ``critic`` and what it learned ``from``: average precision
    ``ap``, ``best_f1``; and of R > 1/2 ``f1``, ``precision``, ``recall``; expected calibration
    error ``ece``
    """
    pages = read_labelled(task.recording, task.labels, DRAWS)
    phrase, truth = task.phrase or phrase_of(task.topic), pages.truth(task.topic)
    rows = [
        {"critic": critic, "from": material, "draw": draw, **measures(relevance, truth)}
        for draw in range(DRAWS)
        for critic, material, relevance in (
            *_from_little(pages, task.topic, phrase, draw),
            *(_without_chance(task, pages, phrase) if draw == 0 else ()),
        )
    ]
    return {"critics": pd.DataFrame(rows)}


def phrase_of(topic: str) -> str:
    """Return the name of a topic as a phrase: ``/Arts/Performing_Arts`` is "performing arts"."""
    parts = [part for part in topic.split("/") if part and part != OTHER]
    return parts[-1].replace("_", " ").lower()


def _without_chance(
    task: Task, pages: LabelledPages, phrase: str
) -> Iterator[tuple[str, str, Floats]]:
    """Judge the test pages by what does not depend on a draw."""
    said = np.exp(read_phrases(phrase).log_posteriors(pages.tested))
    yield CRITICS[0], "phrase", said[:, 1]
    for critic, kind in zip(CRITICS[1:3], ("flat", "discriminative"), strict=True):
        classes, said = judged_by_labels(task.recording, task.labels, DRAWS, kind)
        marked = [lies_under(path, [task.topic]) for path in classes]
        yield critic, "all labels", said[:, marked].sum(axis=1).clip(0.0, 1.0)


def _from_little(
    pages: LabelledPages, topic: str, phrase: str, draw: int
) -> Iterator[tuple[str, str, Floats]]:
    """Judge the test pages by critics of one draw; those of fewer pages learn from the same.

    All of them know the words of all pages drawn, which saves reading the test pages for each
    one anew and changes average precision by some 0.001.
    """
    generator = np.random.default_rng(draw)
    sides: Mapping[bool, list[Bag]] = {True: [], False: []}
    for label, bag in pages.train:
        sides[lies_under(label, [topic])].append(bag)
    good, bad = (
        [side[i] for i in generator.permutation(len(side))[: PAGES[-1]].tolist()]
        for side in (sides[True], sides[False])
    )
    for n in PAGES:
        yield CRITICS[1], f"{n} good, {n} bad", _naive_bayes(good[:n], bad[:n], pages.tested)
    phrases, embeddings = phrases_of(phrase), word_vectors_installed()
    vectors, drawn = read_little(phrases, good, bad, pages.unlabelled[draw], embeddings=embeddings)
    n_words = len(vectors.words)
    tested = as_matrix(vectors.read(pages.tested), n_words)
    by_words = PageVectors(vectors.words, vectors.idf, None)
    for name, known, columns in (
        (CRITICS[2], vectors, slice(None)),
        (CRITICS[3], by_words, slice(n_words)),
    ):
        if known is by_words and not embeddings:
            break  # that was it
        for material in _FROM_LITTLE:
            some = LittlePages(
                drawn.good[: material.good, columns],
                drawn.bad[: material.bad, columns],
                drawn.unlabelled[:, columns],
            )
            judge = learn_judge(known, phrases if material.phrase else (), some)
            yield name, str(material), _probability(judge.log_odds(tested[:, columns]))


def _naive_bayes(good: Sequence[Bag], bad: Sequence[Bag], tested: Sequence[Bag]) -> Floats:
    usable = [
        ((str(i), topic), bag)
        for topic, pages in ((ON_TOPIC, good), (OFF_TOPIC, bad))
        for i, bag in enumerate(pages)
    ]
    model = learn_critic(usable, kind="flat").model
    return np.exp(model.log_posteriors(tested))[:, model.classes.index(ON_TOPIC)]


def _probability(log_odds: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -log_odds))


def measures(relevance: Floats, truth: Bools) -> dict[str, float]:
    """Measure R (n,) of pages against whether each is on the topic (n,).

    Returns
    -------
    ``ap``, ``best_f1``, ``f1``, ``precision``, ``recall``, ``ece`` (see `study_critics`);
    ``precision`` is NaN if no page has R > 1/2
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve  # noqa: PLC0415

    precisions, recalls, _ = precision_recall_curve(truth, relevance)
    both = np.maximum(precisions + recalls, 1e-12)
    found = relevance > 0.5
    right = float((found & truth).sum())
    return {
        "ap": float(average_precision_score(truth, relevance)),
        "best_f1": float((2.0 * precisions * recalls / both).max()),
        "f1": 2.0 * right / float(found.sum() + truth.sum()),
        "precision": right / float(found.sum()) if found.any() else np.nan,
        "recall": right / float(truth.sum()),
        "ece": reliability_of_relevance(relevance, truth).ece,
    }
