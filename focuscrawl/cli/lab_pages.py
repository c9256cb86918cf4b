"""``focuscrawl lab``: ``pages``, ``takeover``, ``feedback``, ``critics``, ``harvest``, ...

All but ``findings`` do some work on every topic of a study, beside its crawls; they keep tables.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

import click
from tqdm import tqdm

from focuscrawl.cli import options
from focuscrawl.cli.output import check_folder
from focuscrawl.errors import UserError
from focuscrawl.lab.agreement import study_agreement
from focuscrawl.lab.critics import study_critics
from focuscrawl.lab.critics_table import critics_grid
from focuscrawl.lab.feedback import study_feedback
from focuscrawl.lab.figures.authorities import agreement_table, draw_agreement
from focuscrawl.lab.findings import findings, markdown_of
from focuscrawl.lab.knowledge_bases import bases_table, study_bases
from focuscrawl.lab.page_studies.study import study_pages
from focuscrawl.lab.restored_harvest import study_restored
from focuscrawl.lab.results import Results
from focuscrawl.lab.studyfile import read_study
from focuscrawl.lab.takeover_study import take_over
from focuscrawl.lab.topic_tasks import do_all, plan_tasks, read_tables
from focuscrawl.lab.true_harvest import harvest_grid, study_harvest
from focuscrawl.report.figure_style import png

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

    from focuscrawl.lab.rendering import Grid
    from focuscrawl.lab.study import Study
    from focuscrawl.lab.topic_tasks import Work

_TOPS = (5, 10, 25, 50, 100)
#: what figures are made of beside the crawls of a study, by the name of its command
BESIDE: dict[str, Work] = {
    "pages": study_pages,
    "takeover": take_over,
    "authorities": study_agreement,
}


def _on_every_topic(work: Work) -> Callable[[Callable[[Path], None]], click.Command]:
    """Make a command that does `work` on every topic of a study.

    Its name is that of the function it is made of, which also names the folder in OUT, and is
    called with that folder when all is done.
    """

    def command(show: Callable[[Path], None]) -> click.Command:
        kind = show.__name__

        @click.command()
        @options.STUDY
        @options.out("Folder of results.")
        @options.processes("Topics")
        @wraps(show)
        def done(study_file: Path, out: Path, processes: int) -> None:
            check_folder(out)
            do_on_every_topic(work, kind, read_study(study_file), out, processes)
            show(out / kind)

        return done

    return command


def do_on_every_topic(work: Work, kind: str, study: Study, out: Path, processes: int) -> None:
    """Do `work` on every topic of a study; tables go to the folder `kind` in `out`.

    Raises
    ------
    UserError
        It failed on a topic.
    """
    tasks = plan_tasks(study, out, kind)
    failed = []
    before = sum(task.done for task in tasks)
    with tqdm(total=len(tasks), initial=before, unit="topic", desc=kind) as bar:
        for task, error in do_all(work, tasks, processes):
            if error is not None:
                failed.append(f"{task.name}: {error}")
            bar.update()
    for line in failed:
        click.echo(f"failed: {line}", err=True)
    if failed:
        raise UserError(f"{len(failed)} of {len(tasks)} topics failed; try the same again")
    click.echo(f"wrote {out / kind}")


@_on_every_topic(study_pages)
def pages(_: Path) -> None:
    """Study what surrounds links, for every web and topic of a study.

    Which words, at which distance, tell where a link leads. Tables go to OUT/pages. Topics that
    are done are not repeated.
    """


@_on_every_topic(take_over)
def takeover(_: Path) -> None:
    """Crawl every topic of a study best-first, and by an apprentice from half-way on.

    Tables go to OUT/takeover. Topics that are done are not repeated.
    """


@_on_every_topic(study_feedback)
def feedback(folder: Path) -> None:
    """Crawl every topic of a study with a poor critic, judge twenty pages, and crawl on.

    Tables go to OUT/feedback. Topics that are done are not repeated.
    """
    table = read_tables(folder, "feedback")
    if table is not None:
        columns = ["web", "topic", "strategy"]
        click.echo(table.groupby(columns, sort=False).mean(numeric_only=True).round(2).to_string())


@_on_every_topic(study_critics)
def critics(folder: Path) -> None:
    """Train critics of every topic from a phrase, a few pages and all labels, and test them.

    Tables go to OUT/critics. Topics that are done are not repeated.
    """
    table = read_tables(folder, "critics")
    if table is not None:
        _show(critics_grid(table), folder)


@_on_every_topic(study_harvest)
def harvest(folder: Path) -> None:
    """Crawl every topic of a study with critics from little, and judge what they bring.

    Tables go to OUT/harvest. Topics that are done are not repeated.
    """
    table = read_tables(folder, "harvest")
    if table is not None:
        _show(harvest_grid(table), folder)


@_on_every_topic(study_agreement)
def authorities(folder: Path) -> None:
    """Compare crawls from disjoint seeds, for every topic of a study.

    Their best authorities, the URLs and servers both fetched, what their top hubs cite.

    Tables and a picture go to OUT/authorities. Topics that are done are not repeated.
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
        click.echo("\nin common after so many fetches, from disjoint seeds:")
        click.echo(_by_size(shared))
    if promised is not None:
        click.echo("\nunvisited URLs that the top hubs cite, beside all that wait:")
        click.echo(_by_size(promised))


def _by_size(table: pd.DataFrame) -> str:
    """Return means over pairs, of the sizes that most of them came to."""
    groups = table.groupby(["web", "topic", "fetches"], sort=True)
    means = groups.mean(numeric_only=True)[groups.size() > 1]
    return str(means.drop(columns="pair").round(2).to_string())


@_on_every_topic(study_bases)
def bases(folder: Path) -> None:
    """Crawl every topic of a study with each knowledge base of `learnable` alone, and with all.

    Tables go to OUT/bases. Topics that are done are not repeated.
    """
    table = read_tables(folder, "bases")
    if table is not None:
        click.echo(bases_table(table).round(3).to_string(index=False))


@_on_every_topic(study_restored)
def restored(folder: Path) -> None:
    """Crawl every topic of a study until its harvest falls, and do what the alarm proposes.

    Tables go to OUT/restored. Topics that are done are not repeated.
    """
    table = read_tables(folder, "restored")
    if table is None or table.empty:
        click.echo("no crawl had an alarm that proposed a class")
        return
    click.echo(table.set_index(["web", "topic"]).round(2).to_string())
    click.echo(table.mean(numeric_only=True).round(2).to_string())


@click.command("findings")
@options.RESULTS
@click.option("--topics/--summary", default=False, help="Also every topic's numbers.")
def find(folder: Path, topics: bool) -> None:
    """Say which findings of the papers hold in the results of a study."""
    click.echo(markdown_of(findings(Results.open(folder)), topics=topics))


def _show(grid: Grid, folder: Path) -> None:
    """Print a table, and leave it as Markdown in a folder."""
    path = folder / "table.md"
    path.write_text(f"{grid.markdown()}\n\n{grid.note}\n", encoding="utf-8")
    click.echo(f"{grid.text()}\n\n{grid.note}\nwrote {path}")
