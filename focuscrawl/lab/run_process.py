"""Runs the crawls of a study in parallel, each crawl in its own child process.

Child processes are forked from a server process that has imported all modules. Imports in each
child process would take a third of the time of a crawl of a few hundred pages. A child process
ends after one crawl, so that crawls share no state and the crawl's memory is freed.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from graphlib import TopologicalSorter
from importlib.metadata import entry_points
from multiprocessing import forkserver
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from focuscrawl.foundation.processes import exit_with_parent, safe_python_path
from focuscrawl.lab.results import write_fetches
from focuscrawl.report.measures import load_pages
from focuscrawl.report.outcomes import stop_reason
from focuscrawl.report.status import open_store

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from focuscrawl.lab.study import Run


#: modules that the server process imports; by name, since the lab must not import Scrapy
_PRELOADED = [
    "focuscrawl.lab.run_process",
    "focuscrawl.cli.apprentice_command",
    "focuscrawl.cli.knowledge_commands",
    "focuscrawl.commands.crawl",
    "focuscrawl.spiders.focused",
    "focuscrawl.scheduler",
    "focuscrawl.downloadhandlers.replay",
    "focuscrawl.downloadermiddlewares.focus",
    "focuscrawl.extensions.download_limits",
    "focuscrawl.extensions.progress",
    "focuscrawl.extensions.run_control",
    "focuscrawl.strategies.apprentice_strategy",
]


def crawl_runs(
    runs: Sequence[Run], processes: int, *, keep: bool = False
) -> Iterator[tuple[Run, str | None]]:
    """Run the unfinished crawls of a study, `processes` at a time; yield each finished crawl.

    Parameters
    ----------
    runs : Sequence[Run]
        Runs, each after the runs that it depends on.
    processes : int
        Number of parallel crawls.
    keep : bool
        Keep every crawl. By default only the fetches are kept, and a crawl is deleted when no
        other run needs it.

    Yields
    ------
    tuple[Run, str or None]
        A run and its error message; None if the run succeeded.
    """
    later, todo = _dependent_runs(runs), runs_to_crawl(runs, keep=keep)
    needs = TopologicalSorter(
        {run: [each for each in run.depends_on if each in todo] for run in todo}
    )
    needs.prepare()
    # in the order of the study, a crawl is soon followed by its dependents and can be deleted
    places = {run: i for i, run in enumerate(runs)}
    ready: list[int] = []
    running: dict[object, tuple[Run, ForkServerProcess]] = {}
    failed: dict[Run, Run] = {}  # failed runs, each with the run that caused the failure
    context = multiprocessing.get_context("forkserver")
    if todo:
        context.set_forkserver_preload(_PRELOADED)
        with safe_python_path():
            forkserver.ensure_running()
    try:
        while needs.is_active():
            ready = sorted([*ready, *(places[run] for run in needs.get_ready())])
            if ready and len(running) < processes:
                run = runs[ready.pop(0)]
                lost = [failed[each] for each in run.depends_on if each in failed]
                if lost:
                    failed[run] = lost[0]
                    needs.done(run)
                    yield run, f"skipped, since the crawl of {lost[0].contender.label!r} failed"
                else:
                    process = context.Process(
                        target=execute_run, args=(run,), name=run.name, daemon=True
                    )
                    process.start()
                    running[process.sentinel] = run, process
                continue
            for sentinel in wait([process.sentinel for _, process in running.values()]):
                run, process = running.pop(sentinel)
                process.join()
                needs.done(run)
                error = _failure_reason(run, process.exitcode) if process.exitcode else None
                if error is not None:
                    failed[run] = run
                elif not keep:
                    _remove_crawls([run, *run.depends_on], later)
                yield run, error
    finally:
        for _, process in running.values():  # interrupted
            process.terminate()
        for _, process in running.values():
            process.join()
    if not keep:
        _remove_crawls(runs, later)  # of an earlier call


def runs_to_crawl(runs: Sequence[Run], *, keep: bool = False) -> set[Run]:
    """Return the runs (crawls of a study) that must be executed, or executed again."""
    later = _dependent_runs(runs)
    todo: set[Run] = set()
    for run in reversed(runs):
        needed = keep or any(second in todo for second in later[run])
        if not run.is_done or (needed and run.has_missing_outputs):
            todo.add(run)
    return todo


def _dependent_runs(runs: Iterable[Run]) -> dict[Run, list[Run]]:
    later: dict[Run, list[Run]] = {run: [] for run in runs}
    for run in later:
        for first in run.depends_on:
            later[first].append(run)
    return later


def _remove_crawls(runs: Iterable[Run], later: dict[Run, list[Run]]) -> None:
    for run in runs:
        if run.is_done and all(second.is_done for second in later[run]):
            shutil.rmtree(run.crawl_dir, ignore_errors=True)
            for options in run.apprentice_options:
                shutil.rmtree(run.apprentice_path(options), ignore_errors=True)
            run.knowledge_path.unlink(missing_ok=True)


def execute_run(run: Run) -> None:
    """Run one crawl, write its fetches and cost, and train apprentices that other runs need.

    All output is written to the file ``crawl.log`` of the run. The exit code of the process is not
    0 if a command fails or the crawl stops early.
    """
    start = time.monotonic()
    exit_with_parent()
    shutil.rmtree(run.folder, ignore_errors=True)
    run.folder.mkdir(parents=True)
    (run.folder / "seeds.txt").write_text("\n".join(run.seeds), encoding="utf-8")
    with run.log_path.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["SCRAPY_SETTINGS_MODULE"] = "focuscrawl.settings"
    _run_command(run.crawl_command())
    with closing(open_store(run.crawl_dir)) as store:
        reason = stop_reason(store)
        pages = load_pages(store)
    if reason not in ("budget", "frontier_empty"):
        sys.exit(f"the crawl stopped before its budget: {reason}")
    write_fetches(pages, run.fetches_path)
    run.record_done(_cost(start))
    if run.saves_knowledge:
        if run.knowledge_from is not None:  # what it knew is learned on
            shutil.copyfile(run.knowledge_from.knowledge_path, run.knowledge_path)
        _run_command(run.learn_command())
        run.record_done(_cost(start))
    for options in run.apprentice_options:
        _run_command(run.train_command(options))
        run.record_done(_cost(start))


def _failure_reason(run: Run, exit_code: int | None) -> str:
    """Return why the process of a failed run ended: the signal, or the last error of its log."""
    try:
        lines = run.log_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    if exit_code is not None and exit_code < 0:
        return f"its process was killed by signal {-exit_code}"
    errors = [line for line in lines if " ERROR " in line]
    return (errors or lines or [f"exit code {exit_code}"])[-1]


def _cost(start: float) -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.monotonic() - start,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }


def _run_command(command: list[str]) -> None:
    """Run a console command in this process."""
    (script,) = entry_points(group="console_scripts", name=command[0])
    sys.argv = command
    try:
        script.load()()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
