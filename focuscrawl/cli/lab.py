"""``focuscrawl lab``: compare strategies on recorded webs."""

from __future__ import annotations

import os
from pathlib import Path

import click
from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.lab.planning import plan_runs
from focuscrawl.lab.runs import crawl_all
from focuscrawl.lab.study import read_study
from focuscrawl.lab.table import collect, markdown


@click.group()
def lab() -> None:
    """Compare strategies on recorded webs."""


@lab.command()
@click.argument("study_file", metavar="STUDY.toml", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of results.")
@click.option("--processes", default=os.cpu_count() or 1, show_default=True)
@click.option("--keep/--tidy", default=False, help="Keep every crawl, not only its fetches.")
def run(study_file: Path, out: Path, processes: int, keep: bool) -> None:
    """Crawl every web, topic, draw and strategy of a study.

    Runs that are done are not repeated: after an interruption the same command goes on.
    """
    study = read_study(study_file)
    runs = plan_runs(study, out)
    failed = []
    done = sum(run.done for run in runs)
    with tqdm(total=len(runs), initial=done, unit="crawl", desc=study.title) as bar:
        for ended, error in crawl_all(runs, processes, keep=keep):
            bar.update()
            if error is not None:
                failed.append(f"{ended.name}: {error}")
    for line in failed:
        click.echo(f"failed: {line}", err=True)
    results = collect(runs)
    if results.empty:
        raise UserError(f"no run of {study_file} succeeded")
    results.to_csv(out / "losses.csv", index=False)
    text = markdown(results, study.baseline)
    (out / "losses.md").write_text(text, encoding="utf-8")
    click.echo(text)
    click.echo(f"wrote {out / 'losses.csv'}, {out / 'losses.md'}")
    if failed:
        click.echo(f"{len(failed)} of {len(runs)} runs failed; the same command repeats them")
        raise SystemExit(1)
