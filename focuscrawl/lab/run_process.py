"""The runs of a study, each in a process of its own, several at a time.

Processes are forked from one that has everything imported: a crawl of a few hundred pages would
otherwise spend a third of its time on imports. Each of them ends with its run, so that runs share
nothing and give back their memory.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import sys
import time
from contextlib import closing, contextmanager
from graphlib import TopologicalSorter
from importlib.metadata import entry_points
from multiprocessing import forkserver
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from focuscrawl.foundation.processes import exit_with_parent, safe_python_path
from focuscrawl.lab.results import keep_fetches
from focuscrawl.report.measures import load_pages
from focuscrawl.report.outcomes import stop_reason
from focuscrawl.report.status import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from multiprocessing.context import ForkServerProcess

    from focuscrawl.lab.study import Run


#: imported once, by name: the lab knows Scrapy as a command only
_PRELOADED = [
    "focuscrawl.lab.run_process",
    "focuscrawl.cli.apprentice_command",
    "focuscrawl.cli.knowledge_commands",
    "focuscrawl.commands.crawl",
    "focuscrawl.spiders.focused",
    "focuscrawl.scheduler",
    "focuscrawl.downloadhandlers",
    "focuscrawl.downloadermiddlewares.focus",
    "focuscrawl.extensions.download_limits",
    "focuscrawl.extensions.progress",
    "focuscrawl.extensions.run_control",
    "focuscrawl.strategies.apprentice_strategy",
]
#: threads for a product of small matrices only get in the way of the other crawls
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def crawl_all(
    runs: Sequence[Run], processes: int, *, keep: bool = False
) -> Iterator[tuple[Run, str | None]]:
    """Crawl what is to be crawled, `processes` at a time; yield each run as it ends.

    Parameters
    ----------
    runs : each behind those it needs
    keep : keep every crawl; otherwise only the fetches of those that no other waits for

    Yields
    ------
    A run, and why it failed; None if it did not
    """
    later, todo = _needed_by(runs), unfinished(runs, keep=keep)
    needs = TopologicalSorter({run: [each for each in run.after if each in todo] for run in todo})
    needs.prepare()
    # they start in the order of the study: so a crawl is soon followed by those that need it, and
    # is not kept for longer than it must be
    places = {run: i for i, run in enumerate(runs)}
    ready: list[int] = []
    under_way: dict[object, tuple[Run, ForkServerProcess]] = {}
    failed: dict[Run, Run] = {}  # what went wrong, and with what
    context = multiprocessing.get_context("forkserver")
    if todo:
        context.set_forkserver_preload(_PRELOADED)
        with _single_threaded(), safe_python_path():
            forkserver.ensure_running()
    try:
        while needs.is_active():
            ready = sorted([*ready, *(places[run] for run in needs.get_ready())])
            if ready and len(under_way) < processes:
                run = runs[ready.pop(0)]
                lost = [failed[each] for each in run.after if each in failed]
                if lost:
                    failed[run] = lost[0]
                    needs.done(run)
                    yield run, f"the crawl it needs failed: {lost[0].contender.label}"
                else:
                    process = context.Process(target=work, args=(run,), name=run.name, daemon=True)
                    process.start()
                    under_way[process.sentinel] = run, process
                continue
            for sentinel in wait([process.sentinel for _, process in under_way.values()]):
                run, process = under_way.pop(sentinel)
                process.join()
                needs.done(run)
                error = _last_words(run, process.exitcode) if process.exitcode else None
                if error is not None:
                    failed[run] = run
                elif not keep:
                    _tidy([run, *run.after], later)
                yield run, error
    finally:
        for _, process in under_way.values():  # interrupted
            process.terminate()
        for _, process in under_way.values():
            process.join()
    if not keep:
        _tidy(runs, later)  # what an earlier call left


def unfinished(runs: Sequence[Run], *, keep: bool = False) -> set[Run]:
    """Return the runs to crawl: those not done, and those whose crawl is needed and gone."""
    later = _needed_by(runs)
    todo: set[Run] = set()
    for run in reversed(runs):
        needed = keep or any(second in todo for second in later[run])
        if not run.done or (needed and run.gone):
            todo.add(run)
    return todo


def _needed_by(runs: Iterable[Run]) -> dict[Run, list[Run]]:
    later: dict[Run, list[Run]] = {run: [] for run in runs}
    for run in later:
        for first in run.after:
            later[first].append(run)
    return later


def _tidy(runs: Iterable[Run], later: dict[Run, list[Run]]) -> None:
    for run in runs:
        if run.done and all(second.done for second in later[run]):
            shutil.rmtree(run.crawl_dir, ignore_errors=True)
            for options in run.teaches:
                shutil.rmtree(run.apprentice(options), ignore_errors=True)
            run.knowledge.unlink(missing_ok=True)


def work(run: Run) -> None:
    """Crawl, keep one row a fetch and the cost, and train the apprentices that are needed.

    All output goes to the run's log. The process ends with another exit code than 0 if a command
    does, or if the crawl was over before its time.
    """
    start = time.monotonic()
    exit_with_parent()
    shutil.rmtree(run.folder, ignore_errors=True)
    run.folder.mkdir(parents=True)
    (run.folder / "seeds.txt").write_text("\n".join(run.seeds), encoding="utf-8")
    with run.log.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["SCRAPY_SETTINGS_MODULE"] = "focuscrawl.settings"
    _call(run.crawl_command())
    with closing(open_store(run.crawl_dir)) as store:
        reason = stop_reason(store)
        pages = load_pages(store)
    if reason not in ("budget", "frontier_empty"):
        sys.exit(f"the crawl ended early: {reason}")
    keep_fetches(pages, run.fetches)
    run.finish(_cost(start))
    if run.remembers:
        if run.knows is not None:  # what it knew is learned on
            shutil.copyfile(run.knows.knowledge, run.knowledge)
        _call(run.learn_command())
        run.finish(_cost(start))
    for options in run.teaches:
        _call(run.train_command(options))
        run.finish(_cost(start))


def _last_words(run: Run, exit_code: int | None) -> str:
    """Return the last line that the process of a failed run logged."""
    try:
        lines = run.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    if exit_code is not None and exit_code < 0:
        return f"its process was killed (signal {-exit_code})"
    errors = [line for line in lines if " ERROR " in line]
    return (errors or lines or [f"exit code {exit_code}"])[-1]


def _cost(start: float) -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.monotonic() - start,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }


def _call(command: list[str]) -> None:
    """Run a console command in this process, as if it had been typed."""
    (script,) = entry_points(group="console_scripts", name=command[0])
    sys.argv = command
    try:
        script.load()()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let processes started here compute in one thread, unless the user's environment differs."""
    new = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(new, "1"))
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]
