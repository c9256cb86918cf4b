"""A second opinion: whether pages are on a topic, by labels and by a judge that guides no crawl.

A crawl also finds the mistakes of its critic. So results are measured once more by the labels of
rows that no critic learned from (``test``), and by a classifier of another family than the
critic's, trained on these rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.classifiers import LogisticModel, NaiveBayes
from focuscrawl.critic.corpus import find_urls, read_bags
from focuscrawl.critic.critic_files import read_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.errors import UserError
from focuscrawl.lab.planning import critic_folder, keep_critic
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from focuscrawl.critic.focused_critic import TopicModel
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.lab.study import Run, StudyWeb
    from focuscrawl.taxonomy import Label
    from focuscrawl.webs.web_protocol import Web

_MOST = 400  # examples of a class that the judge learns from


class Opinion(NamedTuple):
    """The relevance of n pages by an evaluator.

    Attributes
    ----------
    judged : float64 (n,), R by the judge; 0 for what is no page
    labelled : float64 (n,), 1 on the topic, 0 off it, by label; NaN for pages without
    """

    judged: Floats
    labelled: Floats


class Evaluator:
    """Judges what crawls of a web have fetched.

    Parameters
    ----------
    web : where the pages are
    labels : of the web; only ``test`` rows are looked at
    judge : of pages
    """

    def __init__(self, web: Web, labels: Sequence[Label], judge: TopicModel) -> None:
        self._web = web
        self._judge = judge
        tested = [label for label in labels if label.split == "test"]
        found = find_urls(web, [label.url for label in tested])
        self._labels = {
            url: label.topic for url, label in zip(found, tested, strict=True) if url is not None
        }
        self._posteriors: dict[str, Floats] = {}

    def evaluate(self, topic: str, urls: Sequence[str]) -> Opinion:
        """Judge pages.

        Parameters
        ----------
        urls : as the web has them; each is read and judged once, for all runs
        """
        self._read(urls)
        marked = [lies_under(path, [topic]) for path in self._judge.classes]
        posteriors = np.array([self._posteriors[url] for url in urls])
        labels = [self._labels.get(url) for url in urls]
        return Opinion(
            posteriors.reshape(len(urls), len(marked))[:, marked].sum(axis=1).clip(0.0, 1.0),
            np.array([np.nan if of is None else lies_under(of, [topic]) for of in labels]),
        )

    def _read(self, urls: Sequence[str]) -> None:
        new = [url for url in dict.fromkeys(urls) if url not in self._posteriors]
        known = [url for url, at in zip(new, self._web.resolve(new), strict=True) if at == url]
        bags = dict(zip(known, read_bags(self._web, known), strict=True))
        read = [url for url in new if bags.get(url)]
        judged = np.exp(self._judge.log_posteriors([bags[url] or {} for url in read]))
        self._posteriors.update(dict.fromkeys(new, np.zeros(len(self._judge.classes))))
        self._posteriors.update(zip(read, judged, strict=True))


def evaluators_of(webs: Sequence[StudyWeb], runs: Sequence[Run]) -> dict[str, Evaluator]:
    """Return the evaluators of a study's webs by name; without webs that have none.

    Raises
    ------
    UserError
        The evaluator that a web names cannot be read.
    """
    critics = {run.web: run.critic for run in runs}
    made = {
        web.name: make_evaluator(
            open_web(web.recording), web.labels, critic=critics[web.name], judge=web.evaluator
        )
        for web in webs
    }
    return {name: evaluator for name, evaluator in made.items() if evaluator is not None}


def make_evaluator(web: Web, labels: str, *, critic: str, judge: str | None) -> Evaluator | None:
    """Return the evaluator of a web's crawls.

    Parameters
    ----------
    labels : CSV file
    critic : that guides the crawls
    judge : a trained critic; None: one is trained on the ``test`` rows, logistic regression where
        `critic` is naive Bayes, naive Bayes where it is anything else

    Returns
    -------
    None if `judge` is None and the ``test`` rows are too few to learn from
    """
    rows = read_labels(labels)
    if judge is None:
        try:
            of_critic = read_critic(critic)[0].model.kind
        except UserError:  # a program
            of_critic = LogisticModel.kind
        other = NaiveBayes.kind if of_critic == LogisticModel.kind else LogisticModel.kind
        folder = _trained(web, labels, rows, other)
        if folder is None:
            return None
        judge = str(folder)
    return Evaluator(web, rows, read_critic(judge)[0].model)


def _trained(web: Web, labels: str, rows: Sequence[Label], kind: str) -> Path | None:
    """Return the judge of a web's test rows, trained when it is not in the cache yet."""
    folder = critic_folder(labels, web, f"-{kind}-of-test")
    if not folder.exists():
        tested = _sampled([row for row in rows if row.split == "test"])
        try:
            trained = train_critic([row._replace(split="train") for row in tested], web, kind=kind)
        except UserError:
            return None
        keep_critic(trained, folder)
    return folder


def _sampled(rows: Sequence[Label]) -> list[Label]:
    """Return at most so many rows of each class, in their order."""
    by_topic: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        by_topic.setdefault(row.topic, []).append(number)
    generator = np.random.default_rng(0)
    chosen = [generator.permutation(numbers)[:_MOST] for numbers in by_topic.values()]
    return [rows[i] for i in sorted(np.concatenate(chosen).tolist())] if chosen else []
