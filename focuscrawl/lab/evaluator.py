"""Evaluates crawls by page labels and by a second classifier that does not guide the crawl.

A crawl also collects off-topic pages that the crawl's critic (classifier) wrongly judges relevant.
The lab therefore also measures results by page labels and by a second classifier. The lab uses the
``test`` rows of the label table, on which no critic is trained. The second classifier is of
another kind than the critic, and is trained on the ``test`` rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.critic.classifiers import LogisticModel, NaiveBayes
from focuscrawl.critic.corpus import find_urls, read_bags
from focuscrawl.critic.critic_files import read_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.errors import UserError
from focuscrawl.lab.planning import cache_critic, critic_cache_folder
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import TopicModel
    from focuscrawl.foundation.arrays import Floats
    from focuscrawl.lab.study import Run, StudyWeb
    from focuscrawl.taxonomy import Label
    from focuscrawl.webs.web_protocol import Web

_EXAMPLES_PER_TOPIC = 400  # at most, to train the judge


class Evaluation(NamedTuple):
    """Relevance of n pages by page labels and by an independent classifier.

    Attributes
    ----------
    judged : NDArray[np.float64] of shape (n,)
        Relevance by the evaluator's classifier; 0 for answers that are not HTML pages.
    labelled : NDArray[np.float64] of shape (n,)
        1 for on-topic labels, 0 for off-topic labels, NaN for pages without a label.
    """

    judged: Floats
    labelled: Floats


class Evaluator:
    """Measures the relevance of fetched pages by page labels and by an independent classifier.

    Parameters
    ----------
    web : Web
        Recording (saved web pages) that contains the pages.
    labels : Sequence[Label]
        Labels of the web's pages. Only ``test`` rows are used.
    judge : TopicModel
        Classifier of pages.
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

    def evaluate(self, topic: str, urls: Sequence[str]) -> Evaluation:
        """Evaluate pages for a topic; each page is read and classified once for all crawls.

        Parameters
        ----------
        topic : str
            Path of the topic.
        urls : Sequence[str]
            URLs in the spelling of the web.
        """
        self._read(urls)
        marked = [lies_under(path, [topic]) for path in self._judge.classes]
        posteriors = np.array([self._posteriors[url] for url in urls])
        labels = [self._labels.get(url) for url in urls]
        return Evaluation(
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


def load_evaluators(webs: Sequence[StudyWeb], runs: Sequence[Run]) -> dict[str, Evaluator]:
    """Return a dict from the name of each recording of a study to its evaluator.

    A recording has no entry if the study file gives no evaluator for it and its ``test`` labels
    are too few to train an evaluator.

    Raises
    ------
    UserError
        An evaluator that the study file names cannot be read.
    """
    critics = {run.web: run.critic for run in runs}
    evaluators = {
        web.name: create_evaluator(
            open_web(web.recording), web.labels, critic=critics[web.name], judge=web.evaluator
        )
        for web in webs
    }
    return {name: evaluator for name, evaluator in evaluators.items() if evaluator is not None}


def create_evaluator(web: Web, labels: str, *, critic: str, judge: str | None) -> Evaluator | None:
    """Return the evaluator for a web's crawls; None if the labels have too few ``test`` rows.

    Parameters
    ----------
    web : Web
        Recording (saved web pages) that the crawls replay.
    labels : str
        CSV file of page labels.
    critic : str
        Critic that guides the crawls.
    judge : str or None
        Trained critic used as the second classifier. With None a classifier is trained on the
        ``test`` rows: logistic regression if `critic` is naive Bayes, naive Bayes otherwise.
    """
    rows = read_labels(labels)
    if judge is None:
        try:
            critic_kind = read_critic(critic)[0].model.kind
        except UserError:  # the critic is a user's callable
            critic_kind = LogisticModel.kind
        other = NaiveBayes.kind if critic_kind == LogisticModel.kind else LogisticModel.kind
        folder = _load_or_train(web, labels, rows, other)
        if folder is None:
            return None
        judge = str(folder)
    return Evaluator(web, rows, read_critic(judge)[0].model)


def _load_or_train(web: Web, labels: str, rows: Sequence[Label], kind: str) -> Path | None:
    folder = critic_cache_folder(labels, web, f"-{kind}-of-test")
    if not folder.exists():
        tested = _sample_per_topic([row for row in rows if row.split == "test"])
        try:
            trained = train_critic([row._replace(split="train") for row in tested], web, kind=kind)
        except UserError:
            return None
        cache_critic(trained, folder)
    return folder


def _sample_per_topic(rows: Sequence[Label]) -> list[Label]:
    by_topic: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        by_topic.setdefault(row.topic, []).append(number)
    generator = np.random.default_rng(0)
    chosen = [
        generator.permutation(numbers)[:_EXAMPLES_PER_TOPIC] for numbers in by_topic.values()
    ]
    return [rows[i] for i in sorted(np.concatenate(chosen).tolist())] if chosen else []
