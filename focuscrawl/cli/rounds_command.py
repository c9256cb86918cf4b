"""``focuscrawl rounds``: crawl in rounds, with local processes or on Apache Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from focuscrawl.cli import common_options
from focuscrawl.errors import UserError
from focuscrawl.report.outcomes import describe_stop_reason
from focuscrawl.rounds import crawl_in_rounds, read_plan
from focuscrawl.rounds.folders import write_crawl_folder
from focuscrawl.rounds.tasks import LocalMaster, SparkMaster

if TYPE_CHECKING:
    from focuscrawl.rounds.tasks import Master


_PROCESSES = re.compile(r"processes\[([1-9]\d{0,3})\]")


@click.command()
@click.argument("plan_file", metavar="PLAN.toml", type=common_options.PATH)
@click.option(
    "--out",
    "root",
    required=True,
    metavar="FOLDER|URI",
    help="Folder or URI (such as s3://...) for the Parquet tables of the crawl.",
)
@click.option(
    "--master",
    metavar="MASTER",
    help="Where to run the crawl: in N local processes (processes[N]), or on a Spark master "
    "(local[N], spark://..., yarn or k8s://...).  [default: one local process for each processor "
    "core]",
)
@click.option(
    "--from",
    "earlier_crawl",
    type=common_options.PATH,
    metavar="CRAWL_DIR",
    help="Folder of an earlier crawl that the new crawl continues; the command does not change "
    "the folder.",
)
@common_options.path_option(
    "--folder",
    "New folder for a copy of the crawl; `focuscrawl report` and `focuscrawl collect` can read "
    "the copy.",
    metavar="FOLDER",
)
@click.option(
    "--pages",
    type=click.IntRange(1),
    metavar="N",
    help="With --folder: number of randomly chosen pages in the copy of the crawl.  [default: "
    "all pages]",
)
def rounds(
    plan_file: Path,
    root: str,
    *,
    master: str | None,
    earlier_crawl: Path | None,
    folder: Path | None,
    pages: int | None,
) -> None:
    """Run the crawl that the file PLAN.toml describes, in rounds (batches of fetches).

    In each round, the command fetches the queued URLs with the highest scores, and then trains the
    link classifier. The command saves the data of the crawl in Parquet tables at the end of each
    round. To resume an interrupted crawl after the last saved round, repeat the command.

    \b
    focuscrawl rounds rounds.toml --out rounds/cycling
    focuscrawl rounds rounds.toml --out rounds/cycling --master 'local[2]'
    """
    plan = read_plan(plan_file)
    if pages is not None and folder is None:
        raise UserError("--pages needs --folder: name a folder for the copy of the crawl")
    if folder is not None and (folder / "crawl.db").exists():
        raise UserError(f"{folder} contains a crawl already: name a new folder with --folder")
    with closing(_master(master)) as workers:
        last = crawl_in_rounds(
            plan, root, workers, _print_round, watch=_stage_progress, folder=earlier_crawl
        )
    click.echo(describe_stop_reason(last["stop"], last["fetched"]))
    if folder is not None:
        written = write_crawl_folder(root, folder, pages)
        sample = "" if written == last["fetched"] else f" ({written:,} of its fetches)"
        click.echo(f"Saved a copy of the crawl{sample}: {folder}")


def _master(name: str | None) -> Master:
    if name is None:
        return LocalMaster(len(os.sched_getaffinity(0)))
    found = _PROCESSES.fullmatch(name)
    return SparkMaster(name) if found is None else LocalMaster(int(found[1]))


@contextmanager
def _stage_progress(what: str, tasks: int) -> Iterator[Callable[[int], object]]:
    with tqdm(total=tasks, desc=what, unit=" buckets", leave=False, disable=None) as bar:
        yield bar.update


def _print_round(last: Mapping[str, Any]) -> None:
    rate = last["relevance"] / max(last["fetched"], 1)
    click.echo(f"round {last['round']}: {last['fetched']:,} fetches, harvest rate {rate:.3f}")
