"""The process of a run: crawl, keep its fetches, train what others begin with.

Processes are forked from one that has everything imported: a crawl of a few hundred pages would
otherwise spend a third of its time on imports. Each of them ends with its run, so that runs
share nothing and give back their memory.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import sys
import time
from contextlib import closing, contextmanager
from importlib.metadata import entry_points
from multiprocessing import forkserver
from typing import TYPE_CHECKING

from focuscrawl.foundation.parent_end import end_with_parent
from focuscrawl.foundation.python_processes import safe_starts
from focuscrawl.lab.results import keep_fetches
from focuscrawl.report.measures import load_pages
from focuscrawl.report.stop_reasons import stop_reason
from focuscrawl.report.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.context import ForkServerProcess

    from focuscrawl.lab.runs import Run

#: imported once, by name: the lab knows Scrapy as a command only
_PRELOADED = [
    "focuscrawl.lab.run_process",
    "focuscrawl.cli.apprentice",
    "focuscrawl.cli.knowledge",
    "focuscrawl.commands.crawl",
    "focuscrawl.spiders.focused",
    "focuscrawl.scheduler",
    "focuscrawl.downloadhandlers",
    "focuscrawl.downloadermiddlewares.focus",
    "focuscrawl.extensions.html_only",
    "focuscrawl.extensions.progress",
    "focuscrawl.extensions.stop_reason",
    "focuscrawl.strategies.apprentice",
]
#: threads for a product of small matrices only get in the way of the other crawls
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def prepare() -> None:
    """Start the process that the others are forked from."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOADED)
    with _single_threaded(), safe_starts():
        forkserver.ensure_running()


def begin(run: Run) -> ForkServerProcess:
    """Begin a run in a process of its own; it is done if the exit code is 0."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=work, args=(run,), name=run.name, daemon=True)
    process.start()
    return process


def work(run: Run) -> None:
    """Crawl, keep one row a fetch and what it cost, and train the apprentices that are needed.

    Everything said goes to the run's log. Ends the process with another exit code than 0 if a
    command does, or if the crawl was over before its time.
    """
    began = time.monotonic()
    end_with_parent()
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
    run.finish(_cost(began))
    if run.remembers:
        if run.knows is not None:  # what it knew is learned on
            shutil.copyfile(run.knows.knowledge, run.knowledge)
        _call(run.learn_command())
        run.finish(_cost(began))
    for options in run.teaches:
        _call(run.train_command(options))
        run.finish(_cost(began))


def last_words(run: Run, exit_code: int | None) -> str:
    """Return the last that the process of a failed run said."""
    try:
        lines = run.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    if exit_code is not None and exit_code < 0:
        return f"its process was killed (signal {-exit_code})"
    errors = [line for line in lines if " ERROR " in line]
    return (errors or lines or [f"exit code {exit_code}"])[-1]


def _cost(began: float) -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.monotonic() - began,
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
    """Have processes started here compute in one thread, unless the user says otherwise."""
    new = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(new, "1"))
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]
