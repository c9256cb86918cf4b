"""Crawls the runs of a study, several at a time, each after those it needs."""

from __future__ import annotations

import shutil
from graphlib import TopologicalSorter
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from focuscrawl.lab.run_process import begin, last_words, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from multiprocessing.context import ForkServerProcess

    from focuscrawl.lab.runs import Run


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
    # they begin in the order of the study: so a crawl is soon followed by those that need it, and
    # is not kept for longer than it must be
    places = {run: i for i, run in enumerate(runs)}
    ready: list[int] = []
    under_way: dict[object, tuple[Run, ForkServerProcess]] = {}
    failed: dict[Run, Run] = {}  # what went wrong, and with what
    if todo:
        prepare()
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
                    process = begin(run)
                    under_way[process.sentinel] = run, process
                continue
            for sentinel in wait([process.sentinel for _, process in under_way.values()]):
                run, process = under_way.pop(sentinel)
                process.join()
                needs.done(run)
                error = last_words(run, process.exitcode) if process.exitcode else None
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
