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
from focuscrawl.lab.planning import critic_of_labels
from focuscrawl.lab.rendering import Grid
from focuscrawl.report.measures import load_pages
from focuscrawl.taxonomy import lies_under, read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.lab.topic_tasks import Task
    from focuscrawl.webs.protocol import Web

PAGES = 3
STRATEGIES = ("best-first", "apprentice")
_WORDS, _NEW = CRITICS = ("words", "phrase and pages")
_NOTE = (
    "On: labelled pages of the topic among the fetches. Judged: share of all fetches that a "
    "critic of all labels holds for relevant. Ratio: of the critic from the phrase and three "
    "pages to that from the phrase's words."
)


def study_harvest(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl a topic from three start pages with critics from little, and judge what it brings.

    One critic learns from the phrase alone, as `--kind words` does, the other from the phrase and
    the start pages. Neither judges the harvest: labels do, and a discriminative critic of all
    training rows, which takes no part.

    Returns
    -------
    ``harvest``: one row a ``strategy`` and ``critic``: of the ``fetches``, how many have a label
    of the topic (``on``) or of another (``off``), each content once; ``judged``, the share that
    the critic of all labels holds for relevant
    """
    web = open_web(task.recording)
    seeds, phrase = task.seeds[:PAGES], task.phrase or phrase_of(task.topic)
    critics = {
        _WORDS: TrainedCritic(model=read_phrases(phrase)),
        _NEW: train_from_little(phrases_of(phrase), seeds, (), [web]),
    }
    rows = []
    for name, critic in critics.items():
        for strategy in STRATEGIES:
            fetched, n = _crawl(task, critic, seeds, strategy)
            found = {"strategy": strategy, "critic": name, "fetches": n}
            rows.append({**found, **_judged(task, web, fetched, n)})
    return {"harvest": pd.DataFrame(rows)}


def _crawl(
    task: Task, critic: TrainedCritic, seeds: Sequence[str], strategy: str
) -> tuple[list[str], int]:
    """Crawl; return the URLs of distinct contents, and how many fetches it made."""
    with tempfile.TemporaryDirectory() as name:
        save_critic(critic, Path(name, "critic"))
        plan = CrawlPlan(
            topic=ON_TOPIC,
            seeds=",".join(seeds),
            critic=str(Path(name, "critic")),
            strategy=strategy,
            budget=task.budget,
            web=task.recording,
            crawl_dir=str(Path(name, "crawl")),
        )
        replay(open_crawl(plan))
        pages = load_pages(Path(name, "crawl"))
    return pages["url"][pages["duplicate_of"].isna()].tolist(), len(pages)


def _judged(task: Task, web: Web, fetched: Sequence[str], n: int) -> Mapping[str, float]:
    rows = read_labels(task.labels)
    known = web.resolve([row.url for row in rows])
    label_of = {url: row.topic for url, row in zip(known, rows, strict=True) if url is not None}
    labels = [label_of[url] for url in fetched if url in label_of]
    on = sum(lies_under(label, [task.topic]) for label in labels)
    judge = load_trained(str(critic_of_labels(task.labels, web, LogisticModel.kind)), task.topic)
    bags = [bag for bag in read_bags(web, fetched) if bag]
    relevant = int((judge.judge_bags(bags).relevance > 0.5).sum())
    return {"on": on, "off": len(labels) - on, "judged": relevant / n}


def harvest_grid(table: pd.DataFrame) -> Grid:
    """Return the table for people: a row a topic, then the median of the ratios.

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
            words, new = (values[name, strategy, critic] for critic in CRITICS)
            frame[f"{strategy}: {name}, ratio"] = new / words.where(words > 0)
    rows = [
        [str(topic), *map(_cell, frame.columns, row)]
        for (_, topic), row in zip(frame.index, frame.to_numpy().tolist(), strict=True)
    ]
    ratio = [column.endswith("ratio") for column in frame.columns]
    medians = np.where(ratio, frame.median().to_numpy(), np.nan).tolist()
    rows.append(["median", *map(_cell, frame.columns, medians)])
    return Grid(
        "harvest", "True harvest", _NOTE, ["topic", *frame.columns], rows, frame.reset_index()
    )


def _cell(column: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:.0f}" if ": on, " in column and "ratio" not in column else f"{value:.2f}"
