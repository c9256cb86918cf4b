"""How well critics from little judge: from a phrase, a few pages, both, or all labels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.critic.corpus import read_bags, resolve
from focuscrawl.critic.files import read_critic
from focuscrawl.critic.from_little import learn_from_little
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, phrases_of, read_phrases
from focuscrawl.critic.reliability import reliability_of_relevance
from focuscrawl.critic.training import learn_critic
from focuscrawl.critic.word_vectors import word_vectors_installed
from focuscrawl.lab.planning import critic_of_labels, sample
from focuscrawl.taxonomy import OTHER, lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.critic.focused_critic import TopicModel
    from focuscrawl.foundation.arrays import Bools, Floats
    from focuscrawl.lab.topic_tasks import Task
    from focuscrawl.webs.protocol import Web

    _Learn = Callable[[int], TopicModel]

DRAWS = 5
PAGES = (3, 5, 20)
_UNLABELLED = 300


class _Setting(NamedTuple):
    """What all critics of a topic share.

    Attributes
    ----------
    phrase : of the topic
    on, off : training pages of the topic, and of the others
    unlabelled : by draw, pages that are no test pages
    pages, truth : the test pages, and whether they are on the topic
    """

    web: Web
    topic: str
    phrase: str
    on: Sequence[Bag]
    off: Sequence[Bag]
    unlabelled: Sequence[Sequence[Bag]]
    pages: Sequence[Bag]
    truth: Bools


def study_critics(task: Task) -> dict[str, pd.DataFrame]:
    """Train critics of a topic from what people have, and test them on the ``test`` rows.

    Good and bad pages are drawn from the training rows, unlabelled ones from all pages but the
    test rows. A topic's phrase is that of the study, or its name.

    Returns
    -------
    ``critics``: one row a draw, ``critic`` and what it learned ``from``: average precision
    ``ap``, ``best_f1``; and of R > 1/2 ``f1``, ``precision``, ``recall``; expected calibration
    error ``ece``
    """
    setting = _read(task)
    words, learn = partial(_words, setting), partial(_from_little, setting)
    critics: list[tuple[str, str, _Learn]] = [
        ("words", "phrase", words),
        ("discriminative", "phrase", partial(learn, words=True)),
    ]
    for n in PAGES:
        critics += [
            ("naive Bayes", f"{n} good, {n} bad", partial(_naive_bayes, setting, n=n)),
            ("discriminative", f"{n} good", partial(learn, good=n)),
            ("discriminative", f"phrase, {n} good", partial(learn, good=n, words=True)),
        ]
    n = PAGES[-1]
    both = partial(learn, good=n, bad=n, words=True)
    critics.append(("discriminative", f"phrase, {n} good, {n} bad", both))
    rows = [
        {"critic": critic, "from": material, "draw": draw, **_tested(setting, learn(draw))}
        for critic, material, learn in critics
        for draw in range(DRAWS)
    ]
    for critic, kind in (("naive Bayes", "flat"), ("discriminative", "discriminative")):
        folder = critic_of_labels(task.labels, setting.web, kind)
        tested = _tested(setting, read_critic(str(folder))[0].model)
        rows.append({"critic": critic, "from": "all labels", "draw": 0, **tested})
    return {"critics": pd.DataFrame(rows)}


def phrase_of(topic: str) -> str:
    """Return the name of a topic as a phrase: ``/Arts/Performing_Arts`` is "performing arts"."""
    parts = [part for part in topic.split("/") if part and part != OTHER]
    return parts[-1].replace("_", " ").lower()


def _read(task: Task) -> _Setting:
    web = open_web(task.recording)
    labels = read_labels(task.labels)
    known = [
        (url, lies_under(label.topic, [task.topic]), label.split == "test")
        for url, label in zip(resolve(web, [each.url for each in labels]), labels, strict=True)
        if url is not None
    ]
    bags = read_bags(web, [url for url, _, _ in known])
    read = [(bag, yes, test) for bag, (_, yes, test) in zip(bags, known, strict=True) if bag]
    tests = {url for url, _, test in known if test}
    others = [url for url in web.urls() if url not in tests]
    return _Setting(
        web=web,
        topic=task.topic,
        phrase=task.phrase or phrase_of(task.topic),
        on=[bag for bag, yes, test in read if yes and not test],
        off=[bag for bag, yes, test in read if not yes and not test],
        unlabelled=[_unlabelled(web, others, draw) for draw in range(DRAWS)],
        pages=[bag for bag, _, test in read if test],
        truth=np.array([yes for _, yes, test in read if test], np.bool_),
    )


def _unlabelled(web: Web, urls: Sequence[str], draw: int) -> list[Bag]:
    drawn = sample(urls, 2 * _UNLABELLED, draw)
    return [bag for bag in read_bags(web, drawn) if bag][:_UNLABELLED]


def _words(setting: _Setting, _: int) -> TopicModel:
    return read_phrases(setting.phrase)


def _from_little(
    setting: _Setting, draw: int, good: int = 0, bad: int = 0, *, words: bool = False
) -> TopicModel:
    rng = np.random.default_rng(draw)
    return learn_from_little(
        phrases_of(setting.phrase) if words else (),
        sample(setting.on, good, rng),
        sample(setting.off, bad, rng),
        setting.unlabelled[draw],
        embeddings=word_vectors_installed(),
    )


def _naive_bayes(setting: _Setting, draw: int, n: int) -> TopicModel:
    rng = np.random.default_rng(draw)
    usable = [
        ((str(i), topic), bag)
        for topic, pages in ((ON_TOPIC, setting.on), (OFF_TOPIC, setting.off))
        for i, bag in enumerate(sample(pages, n, rng))
    ]
    return learn_critic(usable, kind="flat").model


def _tested(setting: _Setting, model: TopicModel) -> dict[str, float]:
    asked = setting.topic if model.classes != (OFF_TOPIC, ON_TOPIC) else ON_TOPIC
    marked = [lies_under(path, [asked]) for path in model.classes]
    said = np.exp(model.log_posteriors(setting.pages))[:, marked].sum(axis=1).clip(0.0, 1.0)
    return measures(said, setting.truth)


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
