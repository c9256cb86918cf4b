"""What crawls with critics from little really bring, whatever these critics say themselves."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from focuscrawl.crawl import CrawlPlan, open_crawl
from focuscrawl.crawl.replay import replay
from focuscrawl.critic.corpus import read_bags
from focuscrawl.critic.discriminative import LogisticModel
from focuscrawl.critic.files import save_critic
from focuscrawl.critic.little_training import train_from_little
from focuscrawl.critic.loading import load_trained
from focuscrawl.critic.phrase_model import ON_TOPIC, phrases_of, read_phrases
from focuscrawl.critic.trained import TrainedCritic
from focuscrawl.lab.critics import phrase_of
from focuscrawl.lab.planning import critic_of_labels, sample
from focuscrawl.lab.rendering import Grid
from focuscrawl.report.measures import load_pages
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.lab.topic_tasks import Task
    from focuscrawl.webs.protocol import Web

PAGES = 3
DRAWS = 2
STRATEGIES = ("best-first", "apprentice")
_RATIOS = ("ratio", "most")
_WORDS, _NEW, _ALL = CRITICS = ("words", "phrase and pages", "all labels")
_NOTE = (
    "On: labelled pages of the topic among the fetches. Judged: share of all fetches that a "
    "critic of all labels holds for relevant; of its own crawls, too. Means of the draws. Ratio: "
    "of the critic from the phrase and three pages to that from the phrase's words. Most: what "
    "the ratio would be if all fetches were relevant."
)


def study_harvest(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic from three start pages with critics from little, and judge what it brings.

    One critic learns from the phrase alone, as `--kind words` does, another from the phrase and
    the start pages. Neither judges the harvest: labels do, and a discriminative critic of all
    training rows. What that one finds when it guides the crawl is what a critic of some 1,700
    labels would bring. The start pages of the first draw are the first of the seeds, on the topic
    or not; of the others, training rows of the topic at random.

    Returns
    -------
    ``harvest``: one row a ``draw``, ``strategy`` and ``critic``: of the ``fetches``, how many have
    a label of the topic (``on``) or of another (``off``), each content once; ``judged``, the share
    that the critic of all labels holds for relevant
    """
    web = open_web(task.recording)
    phrase = task.phrase or phrase_of(task.topic)
    of_labels = str(critic_of_labels(task.labels, web, LogisticModel.kind))
    rows = []
    for draw in range(DRAWS):
        seeds = start_pages(task, web, draw)
        guides = {
            _WORDS: TrainedCritic(model=read_phrases(phrase)),
            _NEW: train_from_little(phrases_of(phrase), seeds, (), [web]),
            _ALL: None,
        }
        for name, guide in guides.items():
            for strategy in STRATEGIES:
                with tempfile.TemporaryDirectory() as folder:
                    critic, topic = of_labels, task.topic
                    if guide is not None:
                        critic, topic = str(Path(folder, "critic")), ON_TOPIC
                        save_critic(guide, Path(critic))
                    plan = CrawlPlan(
                        topic=topic,
                        seeds=",".join(seeds),
                        critic=critic,
                        strategy=strategy,
                        budget=task.budget,
                        web=task.recording,
                        crawl_dir=str(Path(folder, "crawl")),
                    )
                    replay(open_crawl(plan))
                    pages = load_pages(Path(folder, "crawl"))
                found = {"draw": draw, "strategy": strategy, "critic": name, "fetches": len(pages)}
                rows.append({**found, **_judged(task, web, of_labels, pages)})
    return {"harvest": pd.DataFrame(rows)}


def start_pages(task: Task, web: Web, draw: int) -> Sequence[str]:
    """Return the start pages of a draw, three at most."""
    if draw == 0:
        return task.seeds[:PAGES]
    rows = read_labels(task.labels)
    on = [row.url for row in rows if row.split != "test" and lies_under(row.topic, [task.topic])]
    return sample([url for url in web.resolve(on) if url is not None], PAGES, draw)


def _judged(task: Task, web: Web, of_labels: str, pages: pd.DataFrame) -> Mapping[str, float]:
    """Judge fetched pages, each content once."""
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


def harvest_grid(table: pd.DataFrame) -> Grid:
    """Return the table for people: of each web, a row a topic, then medians and means.

    Parameters
    ----------
    table : rows of `study_harvest`, with ``web`` and ``topic``
    """
    values = table.pivot_table(["on", "judged"], ["web", "topic"], ["strategy", "critic"])
    frame = pd.DataFrame(index=values.index)
    for strategy in STRATEGIES:
        for name in ("on", "judged"):
            for critic in CRITICS:
                frame[f"{strategy}: {name}, {critic}"] = values[name, strategy, critic]
            words, new = (values[name, strategy, critic] for critic in (_WORDS, _NEW))
            frame[f"{strategy}: {name}, ratio"] = new / words.where(words > 0)
        frame[f"{strategy}: judged, most"] = 1.0 / words.where(words > 0)
    is_ratio = frame.columns.str.endswith(_RATIOS)
    rows = []
    for web, topics in frame.groupby(level="web", sort=False):
        rows += [
            [str(web), str(topic), *map(_cell, frame.columns, row)]
            for (_, topic), row in zip(topics.index, topics.to_numpy().tolist(), strict=True)
        ]
        for name, value in (("median", topics.median()), ("mean", topics.mean())):
            said = np.where(is_ratio & (name == "mean"), np.nan, value.to_numpy()).tolist()
            rows.append([str(web), name, *map(_cell, frame.columns, said)])
    head = ["web", "topic", *frame.columns]
    return Grid("harvest", "True harvest", _NOTE, head, rows, frame.reset_index())


def _cell(column: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    is_count = ": on, " in column and not column.endswith(_RATIOS)
    return f"{value:.0f}" if is_count else f"{value:.2f}"
