"""``focuscrawl rounds``: a crawl in rounds, by processes of this machine or by Apache Spark."""

from __future__ import annotations

import os
import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from focuscrawl.cli import common_options
from focuscrawl.errors import UserError
from focuscrawl.report.outcomes import describe_stop_reason
from focuscrawl.rounds import crawl_in_rounds, read_plan
from focuscrawl.rounds.folders import write_folder
from focuscrawl.rounds.tasks import Processes, Spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from focuscrawl.rounds.tasks import Master


_PROCESSES = re.compile(r"processes\[([1-9]\d{0,3})\]")


@click.command()
@click.argument("plan_file", metavar="PLAN.toml", type=common_options.PATH)
@click.option("--out", "root", required=True, help="Folder of the tables, or its URI: s3://...")
@click.option(
    "--master",
    help="Who does the work: processes[2], or Spark's local[2], spark://..., yarn, k8s://...  "
    "[default: a process a core]",
)
@click.option(
    "--from",
    "begun",
    type=common_options.PATH,
    help="Go on from the crawl in this folder, which stays as it is.",
)
@common_options.path_option("--folder", "Write the crawl into this folder, too, for reports.")
@click.option(
    "--pages",
    type=click.IntRange(1),
    help="With --folder: a random sample of so many pages.  [default: all]",
)
def rounds(
    plan_file: Path,
    root: str,
    *,
    master: str | None,
    begun: Path | None,
    folder: Path | None,
    pages: int | None,
) -> None:
    """Crawl in rounds, over tables of Parquet.

    A round fetches the best links of all hosts, then learns from them. It is kept whole or not at
    all: the same command goes on after the last one.

    \b
    focuscrawl rounds rounds.toml --out rounds/cycling
    focuscrawl rounds rounds.toml --out rounds/cycling --master 'local[2]'
    """
    plan = read_plan(plan_file)
    if pages is not None and folder is None:
        raise UserError("--pages is how many pages --folder writes: name a folder, too")
    if folder is not None and (folder / "crawl.db").exists():
        raise UserError(f"{folder} holds a crawl already: name a new folder with --folder")
    with closing(_master(master)) as workers:
        last = crawl_in_rounds(plan, root, workers, _tell, watch=_bar, folder=begun)
    click.echo(describe_stop_reason(last["stop"], last["fetched"]))
    if folder is not None:
        written = write_folder(root, folder, pages)
        of_all = "" if written == last["fetched"] else f", {written:,} of its fetches"
        click.echo(f"as a crawl{of_all}: {folder}")


def _master(name: str | None) -> Master:
    if name is None:
        return Processes(len(os.sched_getaffinity(0)))
    found = _PROCESSES.fullmatch(name)
    return Spark(name) if found is None else Processes(int(found[1]))


@contextmanager
def _bar(what: str, tasks: int) -> Iterator[Callable[[int], object]]:
    """Show on a terminal how many tasks of a stage are done."""
    with tqdm(total=tasks, desc=what, unit=" buckets", leave=False, disable=None) as bar:
        yield bar.update


def _tell(last: Mapping[str, Any]) -> None:
    rate = last["relevance"] / max(last["fetched"], 1)
    click.echo(f"round {last['round']}: {last['fetched']:,} fetches, harvest rate {rate:.3f}")
