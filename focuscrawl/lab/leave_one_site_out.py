"""Leave one site out: learn the paths of the others, then forage it [C 4, METHODS 9].

Everything about the site left out is used for nothing but measuring. Crawls go without limits
against traps, as in all studies: what strategies choose themselves is compared.
"""

from __future__ import annotations

import tempfile
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.crawl import CrawlPlan, open_crawl
from focuscrawl.crawl.link_filter import may_be_page
from focuscrawl.critic.files import save_critic
from focuscrawl.critic.naive_bayes import NaiveBayes
from focuscrawl.critic.training import train_critic
from focuscrawl.lab.label_scores import score_labels
from focuscrawl.lab.replay import replay
from focuscrawl.paths.extraction import PathSampling, extract_paths
from focuscrawl.paths.features import PathReader
from focuscrawl.paths.files import save_model
from focuscrawl.paths.page_labels import PageLabels, read_page_labels
from focuscrawl.paths.training import TrainingOptions, observe, train
from focuscrawl.paths.web_pages import WebPages
from focuscrawl.store import CrawlStore
from focuscrawl.store.history import History
from focuscrawl.taxonomy import Label
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

PATHS = "paths"
#: strategies that `paths` is compared with; they have a naive Bayes critic of the same labels
CONTENDERS = ("apprentice", "best-first", "breadth-first")


@dataclass(frozen=True)
class Experiment:
    """What is left out, and how the rest is learned.

    Attributes
    ----------
    web, labels, column, site_column : as in ``focuscrawl paths extract``
    starts : the front doors of all sites
    budget : fetches of each forage
    sampling, training : of paths, and of the model
    evidence : see `focuscrawl.paths.forager.Forager`
    random_state : of everything random
    """

    web: str
    labels: str
    column: str
    site_column: str | None
    starts: tuple[str, ...]
    budget: int = 500
    sampling: PathSampling = field(default_factory=PathSampling)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    evidence: str = "sum"
    random_state: int = 0


@dataclass(frozen=True)
class Forage:
    """What a strategy found on the site left out.

    Attributes
    ----------
    goal, site, strategy : of what, where, by whom
    reachable : goals that links lead to from the front door
    fetches : how many there were
    found : int64 (n,), the fetches that brought goals, from 1
    """

    goal: str
    site: str
    strategy: str
    reachable: int
    fetches: int
    found: NDArray[np.int64]

    def until(self, recall: float) -> int | None:
        """Return the fetches it took to this recall, None if it was not reached."""
        wanted = max(int(np.ceil(recall * self.reachable - 1e-9)), 1)
        return int(self.found[wanted - 1]) if len(self.found) >= wanted else None


@dataclass(frozen=True)
class Fold:
    """All results of one goal and one site left out."""

    forages: list[Forage]
    labels: list[dict[str, object]]  # see `focuscrawl.lab.label_scores`


def leave_out(experiment: Experiment, goal: str, site: str) -> Fold:
    """Learn `goal` from all sites but that of the front door `site`, and forage that."""
    web = open_web(experiment.web)
    pages = WebPages(web)
    table = read_page_labels(
        Path(experiment.labels),
        web.resolve,
        label=experiment.column,
        site=experiment.site_column,
    )

    def links(url: str) -> list[str]:
        return [to for to in pages.links(url) if may_be_page(to)]

    walks = {
        start: extract_paths(
            start,
            links,
            table.goals(goal, start),
            table.labels,
            sampling=experiment.sampling,
            random_state=experiment.random_state,
        )
        for start in experiment.starts
    }
    reader = PathReader(experiment.training.reading, forgets=False)
    known = [path for start in experiment.starts if start != site for path in walks[start]]
    corpus = observe(known, pages, reader)
    model = train(corpus, experiment.training)
    scores = score_labels(model, corpus, observe(walks[site], pages, reader), goal, site)
    goals = table.goals(goal, site) & _reachable(site, links)
    with tempfile.TemporaryDirectory() as scratch:
        save_model(model, Path(scratch, PATHS), {"paths": len(corpus.paths)})
        _save_critic(experiment, table, site, Path(scratch, "critic"))
        forages = [
            _forage(experiment, goal, site, goals=goals, strategy=strategy, scratch=Path(scratch))
            for strategy in (PATHS, *CONTENDERS)
        ]
    return Fold(forages, scores)


def _reachable(start: str, links: Callable[[str], list[str]]) -> set[str]:
    seen, waiting = {start}, deque([start])
    while waiting:
        for to in links(waiting.popleft()):
            if to not in seen:
                seen.add(to)
                waiting.append(to)
    return seen


def _save_critic(experiment: Experiment, table: PageLabels, site: str, out: Path) -> None:
    """Train naive Bayes on the labelled pages of the other sites."""
    others = {table.sites.get(start) for start in experiment.starts if start != site}
    rows = [
        Label(url, f"/{label.strip('/')}", "train")
        for url, label in table.labels.items()
        if table.sites.get(url) in others and label
    ]
    critic = train_critic(
        rows,
        open_web(experiment.web),
        kind=NaiveBayes.kind,
        min_examples=1,
        random_state=experiment.random_state,
    )
    save_critic(critic, out)


def _forage(
    experiment: Experiment,
    goal: str,
    site: str,
    *,
    goals: set[str],
    strategy: str,
    scratch: Path,
) -> Forage:
    by_paths = strategy == PATHS
    folder = scratch / f"crawl-{strategy}"
    crawl = open_crawl(
        CrawlPlan(
            topic="/goal" if by_paths else f"/{goal.strip('/')}",
            seeds=site,
            critic=str(scratch / (PATHS if by_paths else "critic")),
            strategy=strategy,
            options={"evidence": experiment.evidence} if by_paths else {},
            budget=experiment.budget,
            web=experiment.web,
            crawl_dir=str(folder),
            random_state=experiment.random_state,
            limits=False,
            near_duplicates=False,
        )
    )
    replay(crawl)
    with closing(CrawlStore.open(folder / "crawl.db", read_only=True)) as store:
        fetched = [fetch.name for fetch in History(store).first_fetches()]
    found = [seq for seq, each in enumerate(fetched, 1) if each in goals]
    return Forage(goal, site, strategy, len(goals), len(fetched), np.array(found, np.int64))
