"""``focuscrawl lab pages``, ``takeover``, ``feedback``, ``findings``: the papers' figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.lab.agreement import study_agreement
from focuscrawl.lab.feedback import study_feedback
from focuscrawl.lab.figures.agreement import agreement_table, draw_agreement
from focuscrawl.lab.findings import findings, markdown_of
from focuscrawl.lab.page_studies.study import study_pages
from focuscrawl.lab.results import Results
from focuscrawl.lab.studyfile import read_study
from focuscrawl.lab.takeover_study import take_over
from focuscrawl.lab.topic_tasks import do_all, plan_tasks, read_tables
from focuscrawl.report.figure_style import png

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from focuscrawl.lab.topic_tasks import Task

_TOPS = (5, 10, 25, 50, 100)
_STUDY = click.argument("study_file", metavar="STUDY.toml", type=click.Path(path_type=Path))
_OUT = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder of results."
)
_PROCESSES = click.option(
    "--processes",
    default=len(os.sched_getaffinity(0)),
    show_default="cores",
    type=click.IntRange(min=1),
    help="Topics at a time.",
)


@click.command()
@_STUDY
@_OUT
@_PROCESSES
def pages(study_file: Path, out: Path, processes: int) -> None:
    """Study what surrounds links, for every web and topic of a study.

    Which words, at which distance, tell where a link leads. Tables go to OUT/pages. Topics that
    are done are not repeated.
    """
    _do("pages", study_pages, study_file, out, processes)


@click.command()
@_STUDY
@_OUT
@_PROCESSES
def takeover(study_file: Path, out: Path, processes: int) -> None:
    """Crawl every topic of a study best-first, and by an apprentice from half-way on.

    Tables go to OUT/takeover. Topics that are done are not repeated.
    """
    _do("takeover", take_over, study_file, out, processes)


@click.command()
@_STUDY
@_OUT
@_PROCESSES
def feedback(study_file: Path, out: Path, processes: int) -> None:
    """Crawl every topic of a study with a poor critic, judge twenty pages, and crawl on.

    Tables go to OUT/feedback. Topics that are done are not repeated.
    """
    _do("feedback", study_feedback, study_file, out, processes)
    table = read_tables(out / "feedback", "feedback")
    if table is not None:
        columns = ["web", "topic", "strategy"]
        click.echo(table.groupby(columns, sort=False).mean(numeric_only=True).round(2).to_string())


@click.command()
@_STUDY
@_OUT
@_PROCESSES
def authorities(study_file: Path, out: Path, processes: int) -> None:
    """Compare the best authorities of crawls from disjoint seeds, for every topic of a study.

    Tables and a picture go to OUT/authorities. Topics that are done are not repeated.
    """
    _do("authorities", study_agreement, study_file, out, processes)
    table = read_tables(out / "authorities", "agreement")
    if table is not None:
        picture = out / "authorities" / "overlap.png"
        means = agreement_table(table)
        picture.write_bytes(png(draw_agreement(means)))
        means = means[means["top"].isin(_TOPS)]
        means = means.pivot_table("overlap", ["web", "topic", "of"], "top", sort=False)
        rest = table.groupby(["web", "topic", "of"], sort=False)[["fetched", "chance"]].mean()
        click.echo(means.join(rest).round(2).to_string())
        click.echo(f"wrote {picture}")


@click.command("findings")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--topics/--summary", default=False, help="Also every topic's numbers.")
def find(folder: Path, topics: bool) -> None:
    """Say which findings of the papers hold in the results of a study."""
    click.echo(markdown_of(findings(Results.open(folder)), topics=topics))


def _do(
    kind: str,
    work: Callable[[Task], Mapping[str, pd.DataFrame]],
    study_file: Path,
    out: Path,
    processes: int,
) -> None:
    tasks = plan_tasks(read_study(study_file), out, kind)
    failed = []
    done = sum(task.done for task in tasks)
    with tqdm(total=len(tasks), initial=done, unit="topic", desc=kind) as bar:
        for task, error in do_all(work, tasks, processes):
            if error is not None:
                failed.append(f"{task.name}: {error}")
            bar.update()
    for line in failed:
        click.echo(f"failed: {line}", err=True)
    if failed:
        raise UserError(f"{len(failed)} of {len(tasks)} topics failed; try the same again")
    click.echo(f"wrote {out / kind}")
