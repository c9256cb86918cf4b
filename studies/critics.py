"""Quality of few-shot critics, and harvest of crawls with them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.critic.calibration import reliability_of_relevance
from focuscrawl.critic.classifiers import LogisticModel, as_matrix
from focuscrawl.critic.corpus import find_urls, read_bags
from focuscrawl.critic.critic_files import load_trained, read_critic, save_critic
from focuscrawl.critic.few_shot import TrainingPages, fit_scorer, vectorize_pages
from focuscrawl.critic.focused_critic import TrainedCritic
from focuscrawl.critic.page_vectors import PageVectors, word_vectors_installed
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC, build_phrase_model, parse_phrases
from focuscrawl.critic.training import train_few_shot, train_on_bags
from focuscrawl.errors import UserError
from focuscrawl.lab.planning import load_or_train_critic, sample
from focuscrawl.lab.study_tables import StudyTable
from focuscrawl.taxonomy import OTHER, lies_under, read_labels
from focuscrawl.webs import open_web
from studies.topic_tasks import crawled

if TYPE_CHECKING:
    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.arrays import Bools, Floats
    from focuscrawl.webs.web_protocol import Web
    from studies.topic_tasks import Task


MOST_TESTED = 2000
_UNLABELLED = 300


class LabelledPages(NamedTuple):
    """Pages shared by the topics of a web.

    Attributes
    ----------
    train, test : list[tuple[str, Bag]]
        Topic and words of each page.
    unlabelled : list[list[Bag]]
        Words of random pages that are not test pages, for each draw.
    """

    train: Sequence[tuple[str, Bag]]
    test: Sequence[tuple[str, Bag]]
    unlabelled: Sequence[Sequence[Bag]]

    @property
    def tested(self) -> list[Bag]:
        """Words of the test pages."""
        return [bag for _, bag in self.test]

    def truth(self, topic: str) -> Bools:
        """Return whether each test page is on a topic."""
        return np.array([lies_under(label, [topic]) for label, _ in self.test], np.bool_)


@lru_cache(maxsize=1)  # a process handles the topics of a web in turn
def read_labelled(recording: str, labels: str, draws: int) -> LabelledPages:
    """Read the labelled pages of a web, with a stratified sample of at most 2,000 test pages.

    Parameters
    ----------
    recording : str
        Path of the web.
    labels : str
        CSV file of page labels.
    draws : int
        Number of samples of 300 unlabelled pages.

    Raises
    ------
    UserError
        The web has no test page.
    """
    web, rows = open_web(recording), read_labels(labels)
    there = [
        (url, row)
        for url, row in zip(find_urls(web, [row.url for row in rows]), rows, strict=True)
        if url is not None
    ]
    train = [(row.topic, url) for url, row in there if row.split != "test"]
    test = by_share([(row.topic, url) for url, row in there if row.split == "test"], MOST_TESTED)
    if not test:
        raise UserError(
            f"{labels}: no page of {recording} has split test: label pages for testing"
        )
    tested = {url for _, url in test}
    others = [url for url in web.urls() if url not in tested]
    return LabelledPages(
        _with_words(web, train),
        _with_words(web, test),
        [_unlabelled(web, others, draw) for draw in range(draws)],
    )


def by_share(pages: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """Draw up to `most` pages, as (topic, URL), stratified by topic."""
    if len(pages) <= most:
        return list(pages)
    mixed = np.random.default_rng(0).permutation(len(pages)).tolist()
    in_order = sorted(mixed, key=lambda i: pages[i][0])
    return [pages[in_order[i * len(pages) // most]] for i in range(most)]


@lru_cache(maxsize=2)  # kinds
def judged_by_labels(
    recording: str, labels: str, draws: int, kind: str
) -> tuple[tuple[str, ...], Floats]:
    """Judge the test pages by a critic trained on all training rows.

    Returns the critic's classes and their probabilities, of shape (n_pages, n_classes). For the
    parameters see `read_labelled`.
    """
    model = read_critic(str(load_or_train_critic(labels, open_web(recording), kind)))[0].model
    pages = read_labelled(recording, labels, draws)
    return model.classes, np.exp(model.log_posteriors(pages.tested))


def _with_words(web: Web, pages: Sequence[tuple[str, str]]) -> list[tuple[str, Bag]]:
    bags = read_bags(web, [url for _, url in pages])
    return [(topic, bag) for (topic, _), bag in zip(pages, bags, strict=True) if bag]


def _unlabelled(web: Web, urls: Sequence[str], draw: int) -> list[Bag]:
    drawn = sample(urls, 2 * _UNLABELLED, draw)
    return [bag for bag in read_bags(web, drawn) if bag][:_UNLABELLED]


DRAWS = 5
PAGES = (3, 5, 20)
#: in the order of tables
CRITICS = ("words", "naive Bayes", "discriminative", "discriminative, no embeddings")


class _Material(NamedTuple):
    """Training material of a few-shot critic: whether a phrase, and the number of pages."""

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
    """Train few-shot critics of a topic, and test the critics on the ``test`` rows.

    Good and bad pages are drawn from the training rows, unlabelled pages from all pages but the
    test pages, of which there are at most 2,000. The phrase is the study's, or the topic's name.

    Returns
    -------
    dict[str, pd.DataFrame]
        ``critics`` has a row for each draw, ``critic`` and training material (``from``). Columns
        are average precision ``ap``, ``best_f1``, ``f1``, ``precision``, ``recall`` of relevance
        above 1/2, and expected calibration error ``ece``.
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
    """Return the phrase of a topic, as "performing arts" for ``/Arts/Performing_Arts``."""
    parts = [part for part in topic.split("/") if part and part != OTHER]
    return parts[-1].replace("_", " ").lower()


def _without_chance(
    task: Task, pages: LabelledPages, phrase: str
) -> Iterator[tuple[str, str, Floats]]:
    """Judge the test pages by critics that do not depend on a draw."""
    said = np.exp(build_phrase_model(phrase).log_posteriors(pages.tested))
    yield CRITICS[0], "phrase", said[:, 1]
    for critic, kind in zip(CRITICS[1:3], ("flat", "discriminative"), strict=True):
        classes, said = judged_by_labels(task.recording, task.labels, DRAWS, kind)
        marked = [lies_under(path, [task.topic]) for path in classes]
        yield critic, "all labels", said[:, marked].sum(axis=1).clip(0.0, 1.0)


def _from_little(
    pages: LabelledPages, topic: str, phrase: str, draw: int
) -> Iterator[tuple[str, str, Floats]]:
    """Judge the test pages by the critics of one draw; smaller samples are part of larger ones.

    All critics of a draw share the vocabulary of all pages of the draw. This saves reading the
    test pages again for each critic, and changes average precision by about 0.001.
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
    phrases, embeddings = parse_phrases(phrase), word_vectors_installed()
    vectors, drawn = vectorize_pages(
        phrases, good, bad, pages.unlabelled[draw], embeddings=embeddings
    )
    n_words = len(vectors.words)
    tested = as_matrix(vectors.transform(pages.tested), n_words)
    by_words = PageVectors(vectors.words, vectors.idf, None)
    for name, known, columns in (
        (CRITICS[2], vectors, slice(None)),
        (CRITICS[3], by_words, slice(n_words)),
    ):
        if known is by_words and not embeddings:
            break  # the topic has no more pages
        for material in _FROM_LITTLE:
            some = TrainingPages(
                drawn.good[: material.good, columns],
                drawn.bad[: material.bad, columns],
                drawn.unlabelled[:, columns],
            )
            judge = fit_scorer(known, phrases if material.phrase else (), some)
            yield name, str(material), _probability(judge.log_odds(tested[:, columns]))


def _naive_bayes(good: Sequence[Bag], bad: Sequence[Bag], tested: Sequence[Bag]) -> Floats:
    usable = [
        ((str(i), topic), bag)
        for topic, pages in ((ON_TOPIC, good), (OFF_TOPIC, bad))
        for i, bag in enumerate(pages)
    ]
    model = train_on_bags(usable, kind="flat").model
    return np.exp(model.log_posteriors(tested))[:, model.classes.index(ON_TOPIC)]


def _probability(log_odds: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -log_odds))


def measures(relevance: Floats, truth: Bools) -> dict[str, float]:
    """Return the measures of `study_critics` from relevance and truth of pages.

    ``precision`` is NaN if no page has relevance above 1/2.
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


_NAMES = {"ap": "AP", "f1": "F1", "precision": "P", "recall": "R", "ece": "error"}
_NOTE = (
    "Means over topics of means over draws. AP: average precision. F1, P, R: F1, precision and "
    "recall of relevance > 1/2. Error: expected calibration error."
)


def critics_grid(table: pd.DataFrame) -> StudyTable:
    """Return the table of critics from the rows of `study_critics`, with ``web`` and ``topic``."""
    keys = ["critic", "from", "web"]
    by_topic = table.groupby([*keys, "topic"], sort=False)[list(_NAMES)].mean()
    webs = list(dict.fromkeys(table["web"]))
    columns = [(name, web) for web in webs for name in _NAMES]
    means = pd.DataFrame(by_topic.groupby(keys, sort=False).mean().unstack("web", sort=False))
    means = means[columns].sort_index(
        level="critic", key=lambda names: names.map(CRITICS.index), sort_remaining=False
    )
    head = ["critic", "learned from", *(f"{web} {_NAMES[name]}" for name, web in columns)]
    rows = [
        [critic, material, *map(_cell, values)]
        for (critic, material), values in zip(means.index, means.to_numpy(), strict=True)
    ]
    return StudyTable("critics", "Few-shot critics", _NOTE, head, rows, means)


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}".removeprefix("0")


START_PAGES = 3
CRAWL_DRAWS = 2
STRATEGIES = ("best-first", "apprentice")
_RATIOS = ("ratio", "most")
_WORDS, _NEW, _ALL = CRAWL_CRITICS = ("words", "phrase and pages", "all labels")
_HARVEST_NOTE = (
    "On: labelled pages of the topic among the fetches. Judged: share of all fetches, also of its "
    "own crawls, that a critic of all labels judges relevant. Means over draws. Ratio: critic of "
    "the phrase and three pages against critic from the phrase's words. Most: the ratio if all "
    "fetches were relevant."
)


def study_harvest(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic from three start pages with few-shot critics, and measure the harvest.

    One critic is trained on the phrase alone, like `--kind words`, another on the phrase and the
    start pages. Their harvest is measured by labels and by a discriminative critic trained on all
    training rows. A crawl with this critic shows the harvest of a critic of about 1,700 labels.
    The start pages of the first draw are the first seeds, on topic or not; those of other draws
    are random training rows of the topic.

    Returns
    -------
    dict[str, pd.DataFrame]
        ``harvest`` has a row for each ``draw``, ``strategy`` and ``critic``: the number of
        ``fetches`` with a label of the topic (``on``) or of another topic (``off``), without
        duplicates, and the share that the critic of all labels judges relevant (``judged``).
    """
    web = open_web(task.recording)
    phrase = task.phrase or phrase_of(task.topic)
    of_labels = str(load_or_train_critic(task.labels, web, LogisticModel.kind))
    rows = []
    for draw in range(CRAWL_DRAWS):
        seeds = start_pages(task, web, draw)
        guides = {
            _WORDS: TrainedCritic(model=build_phrase_model(phrase)),
            _NEW: train_few_shot(parse_phrases(phrase), seeds, (), [web]),
            _ALL: None,
        }
        for name, guide in guides.items():
            for strategy in STRATEGIES:
                with tempfile.TemporaryDirectory() as folder:
                    critic, topic = of_labels, task.topic
                    if guide is not None:
                        critic, topic = str(Path(folder, "critic")), ON_TOPIC
                        save_critic(guide, Path(critic))
                    plan = {"topic": topic, "critic": critic, "seeds": ",".join(seeds)}
                    pages = crawled(task, Path(folder, "crawl"), strategy=strategy, **plan)
                found = {"draw": draw, "strategy": strategy, "critic": name, "fetches": len(pages)}
                rows.append({**found, **_judged(task, web, of_labels, pages)})
    return {"harvest": pd.DataFrame(rows)}


def start_pages(task: Task, web: Web, draw: int) -> Sequence[str]:
    """Return up to three start pages of a draw."""
    if draw == 0:
        return task.seeds[:START_PAGES]
    rows = read_labels(task.labels)
    on = [row.url for row in rows if row.split != "test" and lies_under(row.topic, [task.topic])]
    return sample([url for url in web.resolve(on) if url is not None], START_PAGES, draw)


def _judged(task: Task, web: Web, of_labels: str, pages: pd.DataFrame) -> Mapping[str, float]:
    """Judge fetched pages without duplicates."""
    fetched = pages["url"][pages["duplicate_of"].isna()].tolist()
    rows = read_labels(task.labels)
    known = web.resolve([row.url for row in rows])
    label_of = {url: row.topic for url, row in zip(known, rows, strict=True) if url is not None}
    labels = [label_of[url] for url in fetched if url in label_of]
    on = sum(lies_under(label, [task.topic]) for label in labels)
    judge = load_trained(of_labels, task.topic)
    bags = [bag for bag in read_bags(web, fetched) if bag]
    relevant = int((judge.judge_bags(bags).relevance > 0.5).sum())
    return {"on": on, "off": len(labels) - on, "judged": relevant / len(pages)}


def harvest_grid(table: pd.DataFrame) -> StudyTable:
    """Return the table of `study_harvest`: for each web a row per topic, medians and means."""
    values = table.pivot_table(["on", "judged"], ["web", "topic"], ["strategy", "critic"])
    frame = pd.DataFrame(index=values.index)
    for strategy in STRATEGIES:
        for name in ("on", "judged"):
            for critic in CRAWL_CRITICS:
                frame[f"{strategy}: {name}, {critic}"] = values[name, strategy, critic]
            words, new = (values[name, strategy, critic] for critic in (_WORDS, _NEW))
            frame[f"{strategy}: {name}, ratio"] = new / words.where(words > 0)
        frame[f"{strategy}: judged, most"] = 1.0 / words.where(words > 0)
    is_ratio = frame.columns.str.endswith(_RATIOS)
    rows = []
    for web, topics in frame.groupby(level="web", sort=False):
        rows += [
            [str(web), str(topic), *map(_harvest_cell, frame.columns, row)]
            for (_, topic), row in zip(topics.index, topics.to_numpy().tolist(), strict=True)
        ]
        for name, value in (("median", topics.median()), ("mean", topics.mean())):
            said = np.where(is_ratio & (name == "mean"), np.nan, value.to_numpy()).tolist()
            rows.append([str(web), name, *map(_harvest_cell, frame.columns, said)])
    head = ["web", "topic", *frame.columns]
    return StudyTable("harvest", "True harvest", _HARVEST_NOTE, head, rows, frame.reset_index())


def _harvest_cell(column: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    is_count = ": on, " in column and not column.endswith(_RATIOS)
    return f"{value:.0f}" if is_count else f"{value:.2f}"
