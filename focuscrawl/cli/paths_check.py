"""``focuscrawl paths check``: learn from all sites but one, forage that one; each in turn."""

from __future__ import annotations

import csv
import io
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tqdm import tqdm

from focuscrawl.cli.paths_options import labelled
from focuscrawl.cli.paths_options import training as training_options
from focuscrawl.crawl.seeds import read_seeds
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.lab.leave_one_site_out import Experiment, leave_out
from focuscrawl.paths.forager import EVIDENCE
from focuscrawl.report.plain_text import one_line, table
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.lab.leave_one_site_out import Fold, Forage
    from focuscrawl.paths.extraction import PathSampling
    from focuscrawl.paths.training import TrainingOptions

_RECALLS = (0.5, 0.8, 0.9)


@click.command()
@click.argument("web", metavar="WEB")
@click.option("--goal", "goals", required=True, multiple=True, help="A label; may be repeated.")
@click.option("--starts", required=True, help="Front doors of the sites: URLs, or a file of them.")
@click.option("--site-column", required=True, help="Of --labels, whose page it is.")
@click.option(
    "--budget",
    default=500,
    show_default=True,
    type=click.IntRange(1),
    help="Fetches of each forage.",
)
@click.option("--evidence", default="sum", show_default=True, type=click.Choice(EVIDENCE))
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of results.")
@labelled
@training_options
def check(
    *,
    web: str,
    labels: Path,
    goals: tuple[str, ...],
    starts: str,
    column: str,
    site_column: str,
    budget: int,
    sampling: PathSampling,
    training: TrainingOptions,
    evidence: str,
    random_state: int,
    processes: int,
    out: Path,
) -> None:
    """Measure on a labelled recorded web: learn from all sites but one, and forage that one.

    Writes forages.csv, labels.csv and recall-GOAL.png into --out: goals found by the model of
    paths and by other strategies at equal fetches, and how well the labels of paths are told.

    \b
    focuscrawl paths check pages.warc --labels labels.csv --goal /People \\
        --starts doors.txt --site-column site --out results/paths
    """
    with needs("lab", "focuscrawl paths check"):
        from focuscrawl.lab.figures.recall import recall_figure  # noqa: PLC0415
        from focuscrawl.report.figure_style import png  # noqa: PLC0415
    opened = open_web(web)
    doors = [url for url in opened.resolve(read_seeds(starts, ())) if url is not None]
    if len(doors) < 3:
        raise UserError(f"{starts}: leaving one out takes three sites, {web} has {len(doors)}")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no folder: name another with --out")
    experiment = Experiment(
        web=web,
        labels=str(labels),
        column=column,
        site_column=site_column,
        starts=tuple(doors),
        budget=budget,
        sampling=sampling,
        training=training,
        evidence=evidence,
        random_state=random_state,
    )
    folds = _run(experiment, goals, processes)
    forages = [each for fold in folds for each in fold.forages]
    click.echo("\n".join(_forage_table(forages)))
    click.echo("")
    click.echo("\n".join(_label_table(folds)))
    files = {"forages.csv": _forage_csv(forages), "labels.csv": _label_csv(folds)}
    for goal in goals:
        of_goal = [each for each in forages if each.goal == goal]
        by_strategy = {
            name: [each for each in of_goal if each.strategy == name]
            for name in dict.fromkeys(each.strategy for each in of_goal)
        }
        name = goal.strip("/").replace("/", "-")
        files[f"recall-{name}.png"] = png(recall_figure(by_strategy, goal, budget))
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_bytes(content)
    except OSError as error:
        raise UserError(f"{out} cannot be written ({error.strerror}): name another") from None
    click.echo(f"\nwrote {', '.join(str(out / name) for name in files)}")


def _run(experiment: Experiment, goals: Sequence[str], processes: int) -> list[Fold]:
    tasks = [(goal, site) for goal in goals for site in experiment.starts]
    context = multiprocessing.get_context("spawn")
    with (
        tqdm(total=len(tasks), desc="Foraging", unit=" sites", disable=None) as bar,
        ProcessPoolExecutor(processes, mp_context=context) as pool,
    ):
        running = {pool.submit(leave_out, experiment, *task): task for task in tasks}
        done = {}
        for finished in as_completed(running):
            done[running[finished]] = finished.result()
            bar.update()
    return [done[task] for task in tasks]


def _forage_table(forages: Sequence[Forage]) -> list[str]:
    head = ["goal", "site", "strategy", "reachable", "found", "harvest", "recall"]
    rows = [[*head, *(f"to {recall}" for recall in _RECALLS)]]
    for each in forages:
        harvest, recall = len(each.found) / each.fetches, len(each.found) / max(each.reachable, 1)
        until = [each.until(share) for share in _RECALLS]
        names = [one_line(each.goal), one_line(each.site), each.strategy]
        numbers = [str(each.reachable), str(len(each.found)), f"{harvest:.3f}", f"{recall:.3f}"]
        rows.append([*names, *numbers, *("-" if n is None else str(n) for n in until)])
    return table(rows, left={0, 1, 2})


def _label_table(folds: Sequence[Fold]) -> list[str]:
    """Return the mean F1 over the sites of each goal and model."""
    rows = [["goal", "labels by", "macro F1", "right", "goal F1"]]
    scores = [score for fold in folds for score in fold.labels]
    for goal, model in dict.fromkeys((each.goal, each.model) for each in scores):
        of = [each for each in scores if (each.goal, each.model) == (goal, model)]
        means = [
            sum(x) / len(of)
            for x in zip(*((e.macro, e.micro, e.goal_f1) for e in of), strict=True)
        ]
        rows.append([one_line(goal), model, *(f"{mean:.3f}" for mean in means)])
    return table(rows, left={0, 1})


def _forage_csv(forages: Sequence[Forage]) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["goal", "site", "strategy", "reachable", "fetches", "found_at"])
    for each in forages:
        found = " ".join(map(str, each.found.tolist()))
        rows.writerow([each.goal, each.site, each.strategy, each.reachable, each.fetches, found])
    return text.getvalue().encode()


def _label_csv(folds: Sequence[Fold]) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["goal", "site", "model", "macro_f1", "right", "goal_f1"])
    for fold in folds:
        for s in fold.labels:
            numbers = [f"{x:.6f}" for x in (s.macro, s.micro, s.goal_f1)]
            rows.writerow([s.goal, s.site, s.model, *numbers])
    return text.getvalue().encode()
