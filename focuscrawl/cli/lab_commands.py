"""``focuscrawl lab``: compare crawl strategies on recordings of the Web."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from filelock import FileLock, Timeout
from tqdm import tqdm

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import check_output_folder, write_files
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import refuse_link, write_atomically
from focuscrawl.lab.evaluator import load_evaluators
from focuscrawl.lab.planning import plan_runs
from focuscrawl.lab.results import Results, collect_results
from focuscrawl.lab.run_process import crawl_runs, runs_to_crawl
from focuscrawl.lab.study_file import read_study
from focuscrawl.lab.study_report import PAGE, report_files
from focuscrawl.lab.study_tables import format_markdown, format_text

if TYPE_CHECKING:
    from focuscrawl.lab.study import Run


@click.group()
def lab() -> None:
    """Compare crawl strategies on recordings of the Web, such as WARC files."""


@lab.command()
@common_options.STUDY
@common_options.out_option("Folder for the results.", "FOLDER")
@common_options.processes_option("Number of crawls that run at the same time.")
@click.option(
    "--keep/--tidy",
    default=False,
    help="Keep all data of every crawl (--keep), or only a table of the fetches of the crawl "
    "(--tidy).  [default: --tidy]",
)
def run(study_file: Path, out: Path, processes: int, keep: bool) -> None:
    """Run the crawls of the study that STUDY.toml describes.

    The command runs one crawl for each combination of a recording, a topic, start pages and a
    crawl strategy in the study. After an interruption, repeat the command to run the missing
    crawls. The command writes the results to fetches.parquet, runs.parquet and tables.md in the
    folder --out.
    """
    check_output_folder(out)
    study = read_study(study_file)
    runs = plan_runs(study, out)
    evaluators = load_evaluators(study.webs, runs)
    with _lock_folder(out):
        failed = crawl_with_progress(runs, processes, study.title, keep=keep)
        results = collect_results(study, runs, out, failed, evaluators)
    write_atomically(out / "tables.md", format_markdown(results))
    click.echo(format_text(results))
    click.echo(f"wrote fetches.parquet, runs.parquet and tables.md in {out}")
    if failed:
        click.echo(f"{len(failed)} of {len(runs)} crawls failed: repeat the command to retry them")
        raise SystemExit(1)


def _lock_folder(out: Path) -> AbstractContextManager[object]:
    """Allow one `lab run` in a folder at a time; two would overwrite each other's crawls."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        return FileLock(out / ".lock", fallback_to_soft=False).acquire(blocking=False)
    except Timeout:
        raise UserError(
            f"another `lab run` is running in {out}: wait for its end, or name another --out"
        ) from None
    except OSError as error:
        raise UserError(
            f"folder {out} cannot be created ({error.strerror}): name another with --out"
        ) from None


def crawl_with_progress(
    runs: Sequence[Run], processes: int, title: str, *, keep: bool = False
) -> dict[str, str]:
    """Run the missing crawls of `runs`; return the error of each failed crawl by run name."""
    failed: dict[str, str] = {}
    done = len(runs) - len(runs_to_crawl(runs, keep=keep))
    with tqdm(total=len(runs), initial=done, unit="crawl", desc=title) as bar:
        for ended, error in crawl_runs(runs, processes, keep=keep):
            if error is not None:
                failed[ended.name] = error
                bar.set_postfix_str(f"{len(failed)} failed", refresh=False)
            bar.update()
    for name, error in failed.items():
        click.echo(f"failed: {name}: {error}", err=True)
    return failed


@lab.command()
@common_options.RESULTS
@common_options.path_option(
    "--out", "Folder for the report.  [default: DIR/report]", metavar="FOLDER"
)
@click.option("--csv", is_flag=True, help="Also write the tables as CSV files.")
@click.option(
    "--open",
    "show",
    type=click.Choice(["yes", "no"]),
    default="no",
    show_default=True,
    help="Whether to open the report in the browser.",
)
def report(folder: Path, out: Path | None, csv: bool, show: str) -> None:
    """Write a report on the results of `focuscrawl lab run`.

    The command reads the results from the folder DIR. The report is the HTML file report.html,
    which contains all tables and figures. The command also writes each figure to a PNG file.
    """
    results = Results.open(folder)
    files = report_files(results, csv=csv)
    if out is None:
        out = folder / "report"
        refuse_link(out)
    write_files(out, files)
    click.echo(format_text(results))
    click.echo(f"wrote {out / PAGE} and {len(files) - 1} files beside it")
    if show == "yes":
        click.launch(str(out / PAGE))
