"""From a study to its runs: critics, draws of seeds, budgets."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl import __version__
from focuscrawl.cache import cache_dir
from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.critic import load_critic
from focuscrawl.critic.files import save_critic
from focuscrawl.critic.training import train_critic
from focuscrawl.errors import UserError
from focuscrawl.lab.runs import Run
from focuscrawl.lab.whole import whole_web
from focuscrawl.taxonomy import read_labels
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.lab.study import Study, StudyWeb
    from focuscrawl.lab.whole import WholeWeb
    from focuscrawl.webs.protocol import Web


def plan_runs(study: Study, out: Path) -> list[Run]:
    """Return every run of `study`, to be kept under `out`."""
    runs = []
    for study_web in study.webs:
        web = open_web(study_web.recording)
        critic = study_web.critic or str(_critic(study_web, web))
        whole = whole_web(web, load_critic(critic, study_web.topics[0]))
        for topic in study_web.topics:
            of_topic = out / "runs" / study_web.name / topic.strip("/").replace("/", "_")
            for draw in range(study.draws):
                seeds = draw_seeds(study_web, web, topic, draw)
                budget = _budget(study, whole, topic, seeds)
                runs += [
                    Run(
                        web=study_web.name,
                        recording=study_web.recording,
                        critic=critic,
                        topic=topic,
                        draw=draw,
                        budget=budget,
                        seeds=tuple(seeds),
                        contender=contender,
                        folder=of_topic / str(draw) / contender.label.replace("/", "_"),
                    )
                    for contender in study.contenders
                ]
    return runs


def draw_seeds(study_web: StudyWeb, web: Web, topic: str, draw: int) -> list[str]:
    """Return the start URLs of a draw: those of the seeds file, then samples of the examples."""
    if draw == 0:
        found = read_seeds(study_web.seeds, (topic,))
    else:
        examples = [
            label.url
            for label in read_labels(Path(study_web.labels))
            if label.split != "test" and f"{label.topic}/".startswith(f"{topic}/")
        ]
        known = [url for url in web.resolve(examples) if url is not None]
        if not known:
            raise UserError(f"{study_web.labels} has no example of {topic} to draw seeds from")
        size = min(study_web.seeds_per_draw, len(known))
        chosen = np.random.default_rng(draw).choice(len(known), size, replace=False)
        found = [known[i] for i in sorted(chosen)]
    return [url for url in web.resolve(found) if url is not None]


def _budget(study: Study, whole: WholeWeb, topic: str, seeds: list[str]) -> int:
    if study.budget >= 1:
        return int(study.budget)
    if not any(f"{path}/".startswith(f"{topic}/") for path in whole.classes):
        raise UserError(f"the critic knows no topic {topic}: name one of its own in the study")
    relevance = whole.relevance(topic)
    reachable = whole.reachable(whole.numbers(seeds))
    relevant = int((relevance[reachable] > 0.5).sum())
    return max(1, min(study.most, round(study.budget * relevant)))


def _critic(study_web: StudyWeb, web: Web) -> Path:
    """Return the critic of the web's own labels, trained when it is not in the cache yet."""
    labels = hashlib.sha256(Path(study_web.labels).read_bytes()).hexdigest()
    folder = cache_dir() / "critics" / f"{web.fingerprint[:16]}-{labels[:16]}-{__version__}"
    if not folder.exists():
        trained = train_critic(read_labels(Path(study_web.labels)), web)
        save_critic(trained, folder, force=True)
    return folder
