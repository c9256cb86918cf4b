"""Crawls with a poor critic before and after twenty judgements of a person [F99 section 2]."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from focuscrawl.crawl import CrawlPlan, open_crawl
from focuscrawl.critic import load_critic
from focuscrawl.critic.corpus import read_bags
from focuscrawl.critic.files import save_critic
from focuscrawl.critic.focused_critic import FocusedCritic
from focuscrawl.critic.phrase_model import OFF_TOPIC, ON_TOPIC
from focuscrawl.critic.training import train_critic
from focuscrawl.feedback import apply_definition, suggest
from focuscrawl.lab.planning import sample
from focuscrawl.lab.replay import replay
from focuscrawl.lab.whole_web import whole_web
from focuscrawl.report.measures import load_pages
from focuscrawl.report.stores import open_store
from focuscrawl.taxonomy import Label, lies_under, read_labels
from focuscrawl.topics import TopicDefinition, train_definition
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Mapping

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.lab.topic_tasks import Task
    from focuscrawl.webs.protocol import Web

JUDGEMENTS = 20
EXAMPLES = 5  # of either kind that the poor critic learns from
DRAWS = 2
STRATEGIES = ("best-first", "apprentice")


class _Setting(NamedTuple):
    """What all crawls of a topic share."""

    task: Task
    web: Web
    labels: list[Label]  # those of pages that the web has, as it spells them
    truth: Mapping[str, float]  # R by the study's critic
    tested: list[tuple[Bag, bool]]  # the test rows, and whether they are on the topic


def study_feedback(task: Task) -> dict[str, pd.DataFrame]:
    """Crawl with a critic of ten pages, judge twenty pages, crawl on with and without.

    The person is the label of a page; of a page without one, the study's critic, which has
    learned from all training rows. By that critic the harvest is measured, too. The critic of
    ten pages is tested on the ``test`` rows of the labels; without any, nothing is said of it.

    Returns
    -------
    ``feedback``: one row a draw and strategy: ``judged``, ``good`` (of these); ``precision``,
    ``recall`` on the test rows and ``harvest``, as ``..._before`` (before the judgements) and
    ``..._after``; ``harvest_without``: of the same fetches, had nobody been asked;
    ``precision_unasked``, ``recall_unasked``: of a critic trained anew without a judgement
    """
    web = open_web(task.recording)
    critic = load_critic(task.critic, task.topic)
    whole = whole_web(web, critic)
    truth = dict(zip(whole.urls, whole.relevance(task.topic).tolist(), strict=True))
    labels = read_labels(task.labels)
    known = web.resolve([label.url for label in labels])
    labels = [
        label._replace(url=url)
        for url, label in zip(known, labels, strict=True)
        if url is not None
    ]
    setting = _Setting(task, web, labels, truth, _tested(task, web, labels))
    rows = []
    for draw in range(DRAWS):
        with tempfile.TemporaryDirectory() as name:
            save_critic(
                train_critic(_ten_pages(setting, draw), web, kind="flat"), Path(name, "poor")
            )
            definition = TopicDefinition(critic=str(Path(name, "poor")), topics=(ON_TOPIC,))
            rows += [
                {"draw": draw, **_crawl(setting, definition, strategy, Path(name))}
                for strategy in STRATEGIES
            ]
    return {"feedback": pd.DataFrame(rows)}


def _ten_pages(setting: _Setting, draw: int) -> list[Label]:
    """Sample the examples of the poor critic from the training rows."""
    rng = np.random.default_rng(draw)
    sides: dict[bool, list[str]] = {True: [], False: []}
    for label in setting.labels:
        if label.split != "test":
            sides[lies_under(label.topic, [setting.task.topic])].append(label.url)
    return [
        Label(url, topic, "train")
        for topic, side in ((ON_TOPIC, True), (OFF_TOPIC, False))
        for url in sample(sides[side], EXAMPLES, rng)
    ]


def _crawl(
    setting: _Setting, definition: TopicDefinition, strategy: str, scratch: Path
) -> dict[str, object]:
    task, n = setting.task, setting.task.budget
    first, second = scratch / strategy, scratch / f"{strategy}-after"
    plan = CrawlPlan(
        topic=ON_TOPIC,
        seeds=",".join(task.seeds),
        critic=str(scratch / "poor"),
        strategy=strategy,
        budget=n,
        web=task.recording,
        crawl_dir=str(first),
    )
    replay(open_crawl(plan))
    shutil.copytree(first, second)
    with closing(open_store(second)) as store:
        pages = suggest(store, JUDGEMENTS)
    label_of = {each.url: lies_under(each.topic, [task.topic]) for each in setting.labels}
    verdict = {
        page.url: label_of.get(page.url, setting.truth.get(page.url, 0.0) > 0.5) for page in pages
    }
    judged = definition.judging(
        [url for url, yes in verdict.items() if yes],
        [url for url, yes in verdict.items() if not yes],
    )
    applied = apply_definition(judged, second)
    before, without = _go_on(setting, plan, first, n)
    _, after = _go_on(setting, plan, second, n)
    found: dict[str, object] = {
        "strategy": strategy,
        "judged": len(verdict),
        "good": sum(verdict.values()),
        "harvest_before": before,
        "harvest_without": without,
        "harvest_after": after,
    }
    unasked, _ = train_definition(definition, [setting.web])
    save_critic(unasked, scratch / "unasked", force=True)
    critics = {"before": "poor", "unasked": "unasked", "after": str(applied.critic)}
    for when, critic in critics.items():
        judge = load_critic(str(scratch / critic), ON_TOPIC)
        assert isinstance(judge, FocusedCritic)
        said = judge.judge_bags([bag for bag, _ in setting.tested]).relevance > 0.5
        true = np.array([on_topic for _, on_topic in setting.tested], np.bool_)
        found[f"precision_{when}"] = float(true[said].mean()) if said.any() else np.nan
        found[f"recall_{when}"] = float(said[true].mean()) if true.any() else np.nan
    return found


def _tested(task: Task, web: Web, labels: list[Label]) -> list[tuple[Bag, bool]]:
    """Read the pages of the test rows."""
    rows = [label for label in labels if label.split == "test"]
    bags = read_bags(web, [label.url for label in rows])
    return [
        (bag, lies_under(label.topic, [task.topic]))
        for bag, label in zip(bags, rows, strict=True)
        if bag is not None
    ]


def _go_on(setting: _Setting, plan: CrawlPlan, folder: Path, n: int) -> tuple[float, float]:
    """Crawl as much again; return the true harvest of either half."""
    replay(open_crawl(replace(plan, crawl_dir=str(folder), budget=2 * n)))
    pages = load_pages(folder)
    first = pages["duplicate_of"].isna()
    true = pages["url"].map(setting.truth).fillna(0.0).where(first, 0.0).to_numpy(np.float64)
    return float(true[:n].sum() / n), float(true[n:].sum() / n)
