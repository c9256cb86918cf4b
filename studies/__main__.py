"""Command line ``python -m studies`` for studies of the papers' findings; see README.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tqdm import tqdm

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import check_output_folder, write_files
from focuscrawl.cli.lab_commands import crawl_with_progress
from focuscrawl.cli.main import OneLineErrorGroup
from focuscrawl.errors import UserError
from focuscrawl.lab.evaluator import load_evaluators
from focuscrawl.lab.planning import plan_runs
from focuscrawl.lab.results import Results, collect_results
from focuscrawl.lab.study_file import read_study
from focuscrawl.report.figures import png
from studies.authorities import study_agreement
from studies.critics import critics_grid, harvest_grid, study_critics, study_harvest
from studies.feedback import study_feedback, study_restored
from studies.figures import FIGURES
from studies.findings import findings, format_markdown
from studies.knowledge_bases import bases_table, study_bases
from studies.limits import MAX_COST, compare_limits
from studies.page_figures import agreement_table, draw_agreement
from studies.page_studies import study_pages
from studies.paths_check import check
from studies.specificity import study_specificity
from studies.takeover import take_over
from studies.topic_tasks import do_all, plan_tasks, read_tables

if TYPE_CHECKING:
    import pandas as pd

    from focuscrawl.lab.study import Study
    from focuscrawl.lab.study_tables import StudyTable
    from studies.topic_tasks import Work


@click.group(cls=OneLineErrorGroup)
def studies() -> None:
    """Studies of single findings of the papers, on recorded webs."""


studies.add_command(check, "paths")

_TOPS = (5, 10, 25, 50, 100)
#: extra work for figures, besides the crawls of a study, by the name of the command
BESIDE: dict[str, Work] = {
    "pages": study_pages,
    "takeover": take_over,
    "authorities": study_agreement,
}


def _on_every_topic(work: Work) -> Callable[[Callable[[Path], None]], click.Command]:
    """Return a decorator that creates a command which does `work` on every topic of a study.

    The function's name is the name of the command and of its folder in OUT. The command calls the
    function with this folder at the end.
    """

    def command(show: Callable[[Path], None]) -> click.Command:
        kind = show.__name__

        @studies.command(kind)
        @common_options.STUDY
        @common_options.out_option("Folder for the results.", "FOLDER")
        @common_options.processes_option("Number of topics at a time.")
        @wraps(show)
        def done(study_file: Path, out: Path, processes: int) -> None:
            check_output_folder(out)
            do_on_every_topic(work, kind, read_study(study_file), out, processes)
            show(out / kind)

        return done

    return command


def do_on_every_topic(work: Work, kind: str, study: Study, out: Path, processes: int) -> None:
    """Do `work` on every topic of a study and write tables to the folder `kind` in `out`.

    Raises
    ------
    UserError
        The work failed on a topic.
    """
    tasks = plan_tasks(study, out, kind)
    failed = []
    before = sum(task.is_done for task in tasks)
    with tqdm(total=len(tasks), initial=before, unit="topic", desc=kind) as bar:
        for task, error in do_all(work, tasks, processes):
            if error is not None:
                failed.append(f"{task.name}: {error}")
            bar.update()
    for line in failed:
        click.echo(f"failed: {line}", err=True)
    if failed:
        raise UserError(
            f"{len(failed)} of {len(tasks)} topics failed: run the command again to retry them"
        )
    click.echo(f"wrote {out / kind}")


@_on_every_topic(study_pages)
def pages(_: Path) -> None:
    """Study the words around links, for every web and topic of a study.

    The study shows which words, at which distance, predict the relevance of a link's target.
    Tables go to OUT/pages. Finished topics are not repeated.
    """


@_on_every_topic(take_over)
def takeover(_: Path) -> None:
    """Crawl every topic of a study best-first, and with an apprentice in the second half.

    Tables go to OUT/takeover. Finished topics are not repeated.
    """


@_on_every_topic(study_feedback)
def feedback(folder: Path) -> None:
    """Crawl every topic of a study with a weak critic, judge twenty pages, and continue.

    Tables go to OUT/feedback. Finished topics are not repeated.
    """
    table = read_tables(folder, "feedback")
    if table is not None:
        columns = ["web", "topic", "strategy"]
        click.echo(table.groupby(columns, sort=False).mean(numeric_only=True).round(2).to_string())


@_on_every_topic(study_critics)
def critics(folder: Path) -> None:
    """Train critics of every topic from a phrase, a few pages and all labels, and test them.

    Tables go to OUT/critics. Finished topics are not repeated.
    """
    table = read_tables(folder, "critics")
    if table is not None:
        _show(critics_grid(table), folder)


@_on_every_topic(study_harvest)
def harvest(folder: Path) -> None:
    """Crawl every topic of a study with few-shot critics, and measure the harvest.

    Tables go to OUT/harvest. Finished topics are not repeated.
    """
    table = read_tables(folder, "harvest")
    if table is not None:
        _show(harvest_grid(table), folder)


@_on_every_topic(study_agreement)
def authorities(folder: Path) -> None:
    """Compare crawls from disjoint seeds, for every topic of a study.

    The study compares the best authorities, the URLs and servers that both crawls fetched, and
    the citations of the top hubs. Tables and a figure go to OUT/authorities. Finished topics are
    not repeated.
    """
    table = read_tables(folder, "agreement")
    if table is not None:
        picture = folder / "overlap.png"
        means = agreement_table(table)
        picture.write_bytes(png(draw_agreement(means)))
        means = means[means["top"].isin(_TOPS)]
        means = means.pivot_table("overlap", ["web", "topic", "of"], "top", sort=False)
        rest = table.groupby(["web", "topic", "of"], sort=False)[["fetched", "chance"]].mean()
        click.echo(means.join(rest).round(2).to_string())
        click.echo(f"wrote {picture}")
    shared, promised = read_tables(folder, "shared"), read_tables(folder, "unvisited")
    if shared is not None:
        click.echo("\nShare that crawls from disjoint seeds have in common, by number of fetches:")
        click.echo(_by_size(shared))
    if promised is not None:
        click.echo("\nRelevance of unvisited URLs that the top hubs cite, and of all queued URLs:")
        click.echo(_by_size(promised))


def _by_size(table: pd.DataFrame) -> str:
    """Return means over pairs of crawls, for numbers of fetches that several crawls reached."""
    groups = table.groupby(["web", "topic", "fetches"], sort=True)
    means = groups.mean(numeric_only=True)[groups.size() > 1]
    return str(means.drop(columns="pair").round(2).to_string())


@_on_every_topic(study_bases)
def bases(folder: Path) -> None:
    """Crawl every topic of a study with each knowledge base of `learnable` alone, and with all.

    Tables go to OUT/bases. Finished topics are not repeated.
    """
    table = read_tables(folder, "bases")
    if table is not None:
        click.echo(bases_table(table).round(3).to_string(index=False))


@_on_every_topic(study_specificity)
def specificity(folder: Path) -> None:
    """Crawl every topic of a study and the classes above it, and without the largest hosts.

    Tables go to OUT/specificity. Finished topics are not repeated.
    """
    for name, key in (("specificity", "above"), ("unfocused", "without")):
        table = read_tables(folder, name)
        if table is not None:
            means = table.groupby(["web", key]).mean(numeric_only=True)
            means["topics"] = table.groupby(["web", key]).size()
            click.echo(means.round(3).to_string())


@_on_every_topic(study_restored)
def restored(folder: Path) -> None:
    """Crawl every topic of a study until its harvest rate falls, and follow the alarm's advice.

    Tables go to OUT/restored. Finished topics are not repeated.
    """
    table = read_tables(folder, "restored")
    if table is None or table.empty:
        click.echo("no crawl had an alarm that proposed a class")
        return
    click.echo(table.set_index(["web", "topic"]).round(2).to_string())
    click.echo(table.mean(numeric_only=True).round(2).to_string())


@studies.command("findings")
@common_options.RESULTS
@click.option("--topics/--summary", default=False, help="Also print the numbers of each topic.")
def find(folder: Path, topics: bool) -> None:
    """Print which findings of the papers hold in the results of a study."""
    click.echo(format_markdown(findings(Results.open(folder)), topics=topics))


@studies.command("limits")
@common_options.RESULTS
def show_limits(folder: Path) -> None:
    """Print what the limits against traps cost each crawl, and on how many topics over 0.01."""
    table = compare_limits(Results.open(folder))
    click.echo(table.round(3).to_string(index=False))
    by_topic = table.groupby(["web", "topic", "strategy"]).mean(numeric_only=True)
    costs = (by_topic.filter(like="+") > MAX_COST).sum()
    words = ", ".join(f"{str(name)[1:]}: {n}" for name, n in costs.items())
    same = (table["parted"] == 0).sum()
    click.echo(
        f"{same} of {len(table)} pairs of crawls are equal. Over {MAX_COST} lost by {words}."
    )


def _show(grid: StudyTable, folder: Path) -> None:
    """Print a table, and write the table as Markdown to a folder."""
    path = folder / "table.md"
    path.write_text(f"{grid.markdown()}\n\n{grid.note}\n", encoding="utf-8")
    click.echo(f"{grid.text()}\n\n{grid.note}\nwrote {path}")


@studies.command()
@click.argument("name", metavar="FIGURE", type=click.Choice(list(FIGURES)))
@common_options.STUDY
@common_options.out_option("Folder for the results.", "FOLDER")
@common_options.processes_option("Number of crawls at a time.")
def figure(name: str, study_file: Path, out: Path, processes: int) -> None:
    r"""Draw one figure of the papers, and run the crawls and work that the figure needs.

    The command runs the strategies of the study that the figure shows and writes OUT/FIGURE.png.
    Finished runs are not repeated; other results in OUT stay.

    \b
    python -m studies figure a02-10-loss-paper studies/paper_apprentice.toml --out results/paper
    """
    check_output_folder(out)
    study, wanted = read_study(study_file), FIGURES[name]
    there = [contender.label for contender in study.contenders]
    labels = wanted.strategies or tuple(there)
    lacking = [label for label in labels if label not in there]
    if lacking:
        raise UserError(
            f"{study_file} lacks strategies of the figure {name}: add strategies labelled "
            + " and ".join(map(repr, lacking))
        )
    runs = plan_runs(study, out)
    shown = {run for run in runs if run.contender.label in labels}
    for run in reversed(runs):  # each run comes after the runs it depends on
        if run in shown:
            shown.update(run.depends_on)
    needed = [run for run in runs if run in shown]
    evaluators = load_evaluators(study.webs, runs)
    failed = crawl_with_progress(needed, processes, study.title)
    if wanted.beside is not None:
        do_on_every_topic(BESIDE[wanted.beside], wanted.beside, study, out, processes)
    drawn = wanted.of(collect_results(study, runs, out, failed, evaluators))
    if drawn is None:
        raise UserError(f"{study_file}: the crawls have no data for the figure {name}")
    path = out / f"{name}.png"
    path.write_bytes(png(drawn))
    click.echo(f"wrote {path}: {wanted.title}")
    if failed:
        raise SystemExit(1)


@studies.command("figures")
@common_options.RESULTS
def all_figures(folder: Path) -> None:
    """Draw every figure of the papers that the results in DIR allow, into DIR/figures."""
    results = Results.open(folder)
    drawn = {name: each.of(results) for name, each in FIGURES.items()}
    files = {f"{name}.png": png(figure) for name, figure in drawn.items() if figure is not None}
    write_files(folder / "figures", files)
    click.echo(f"wrote {len(files)} figures in {folder / 'figures'}")


if __name__ == "__main__":
    studies()
