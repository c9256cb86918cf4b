"""Work on every topic of a study, in child processes, with results kept between calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from focuscrawl import __version__
from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.critic import load_critic
from focuscrawl.foundation.processes import process_pool
from focuscrawl.lab.judged_web import judge_web
from focuscrawl.lab.planning import (
    ReachablePages,
    check_strategies,
    draw_seeds,
    load_or_train_critic,
    slug,
)
from focuscrawl.lab.results import report_damage
from focuscrawl.lab.study import read_run_record
from focuscrawl.report.measures import load_pages
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.lab.study import Study

    Work = Callable[["Task"], Mapping[str, pd.DataFrame]]

_TERMS = "terms.json"


@dataclass(frozen=True)
class Task:
    """Work on one topic of a web, with the seeds of the first draw.

    Attributes
    ----------
    kind : str
        Kind of work, which names the folder.
    web, recording, critic, topic, seeds :
        As in `focuscrawl.lab.study.Run`.
    labels : str
        As in `focuscrawl.lab.study.StudyWeb`.
    budget : int
        Fetches at which the study compares.
    phrase : str or None
        Phrase of the topic, if the study has one.
    folder : Path
        Folder of the tables ``NAME.parquet``.
    """

    kind: str
    web: str
    recording: str
    critic: str
    topic: str
    seeds: tuple[str, ...]
    labels: str
    budget: int
    folder: str
    phrase: str = ""

    @property
    def name(self) -> str:
        """Name of the task in messages."""
        return f"{self.kind} of {self.web} {self.topic}"

    @property
    def conditions(self) -> dict[str, Any]:
        """Inputs that determine the tables; tables with other inputs are not reused."""
        terms = {**asdict(self), "seeds": list(self.seeds), "focuscrawl": __version__}
        del terms["folder"], terms["labels"]  # may be moved; the critic tells labels apart
        return terms

    @property
    def is_done(self) -> bool:
        """Whether an earlier call has finished the task with the same conditions."""
        return read_run_record(Path(self.folder, _TERMS)) == self.conditions


def crawled(task: Task, folder: Path, **plan: Any) -> pd.DataFrame:
    """Start or resume a crawl of a task's web in a folder; return its fetches.

    `plan` overrides the task's topic, seeds, critic and budget.
    """
    whole: dict[str, Any] = {
        "topic": task.topic,
        "seeds": ",".join(task.seeds),
        "critic": task.critic,
        "budget": task.budget,
        "web": task.recording,
        "crawl_dir": str(folder),
    }
    replay(open_crawl(CrawlConfig(**whole | plan)))
    return load_pages(folder)


def plan_tasks(study: Study, out: Path, kind: str) -> list[Task]:
    """Return a task for each web and topic of `study`, with tables in ``out/kind``.

    Raises
    ------
    UserError
        The study names an unknown strategy, option, web or topic, or a web has no seeds.
    """
    check_strategies(study)
    tasks: list[Task] = []
    for study_web in study.webs:
        web = open_web(study_web.recording)
        critic = study_web.critic or str(
            load_or_train_critic(
                study_web.labels, web, study_web.kind, all_words=study_web.all_words
            )
        )
        judges = {topic: load_critic(critic, topic) for topic in study_web.topics}
        for topic, judge in judges.items():
            seeds = draw_seeds(study_web, web, topic, 0)
            whole = judge_web(web, judge) if study.budget < 1 and judge.classes else None
            reach = ReachablePages(whole, None if whole is None else whole.relevance(topic), seeds)
            tasks.append(
                Task(
                    kind=kind,
                    web=study_web.name,
                    recording=study_web.recording,
                    critic=critic,
                    topic=topic,
                    seeds=tuple(seeds),
                    labels=study_web.labels,
                    budget=reach.budget(study.budget, study.most),
                    folder=str(out / kind / study_web.name / slug(topic)),
                    phrase=study_web.phrases.get(topic, ""),
                )
            )
    return tasks


def do_all(
    work: Work, tasks: Sequence[Task], processes: int
) -> Iterator[tuple[Task, Exception | None]]:
    """Do unfinished tasks, `processes` at a time; yield each task when it ends.

    `work` returns the tables of a task by name, and must be a module-level function, since it runs
    in a child process.
    """
    waiting = [task for task in tasks if not task.is_done]
    with process_pool(processes) as pool:
        under_way = {pool.submit(_do, work, task): task for task in waiting}
        try:
            for ended in as_completed(under_way):
                error = ended.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield under_way[ended], error
        finally:
            pool.shutdown(cancel_futures=True)  # after an interrupt, start no more tasks


def read_tables(folder: Path, name: str) -> pd.DataFrame | None:
    """Return the tables called `name` of all tasks in `folder`; None if there are none."""
    found = sorted(folder.glob(f"*/*/{name}.parquet"))
    tables = []
    for path in found:
        if (path.parent / _TERMS).exists():
            again = f"remove {path.parent} and repeat the command that created it"
            with report_damage(path, again):
                table = pd.read_parquet(path)
                tables.append(table.astype({"web": object, "topic": object}))
    return pd.concat(tables, ignore_index=True) if tables else None


def _do(work: Work, task: Task) -> None:
    folder = Path(task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _TERMS).unlink(missing_ok=True)
    for name, table in work(task).items():
        whose = {"web": task.web, "topic": task.topic}
        table.assign(**whose).to_parquet(folder / f"{name}.parquet", index=False)
    (folder / _TERMS).write_text(json.dumps(task.conditions), encoding="utf-8")
