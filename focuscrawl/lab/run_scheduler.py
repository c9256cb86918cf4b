"""Crawls the runs of a study, several at a time, each after those it needs."""

from __future__ import annotations

import heapq
import shutil
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
    later = _needed_by(runs)
    waiting = _Waiting(runs, unfinished(runs, keep=keep), later)
    under_way: dict[object, tuple[Run, ForkServerProcess]] = {}
    if waiting.ready:
        prepare()
    try:
        while waiting.ready or under_way:
            while waiting.ready and len(under_way) < processes:
                run = waiting.pop()
                process = begin(run)
                under_way[process.sentinel] = run, process
            for sentinel in wait([process.sentinel for _, process in under_way.values()]):
                run, process = under_way.pop(sentinel)
                process.join()
                if process.exitcode:
                    yield run, last_words(run, process.exitcode)
                    for second in waiting.give_up_after(run):
                        yield second, f"the crawl it needs failed: {run.contender.label}"
                else:
                    waiting.release_after(run)
                    if not keep:
                        _tidy([run, *run.after], later)
                    yield run, None
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


class _Waiting:
    """Runs that have not begun; those that can are ready.

    They leave in the order of the study: so a crawl is soon followed by those that need it, and
    is not kept for longer than it must be.
    """

    def __init__(self, runs: Sequence[Run], todo: set[Run], later: dict[Run, list[Run]]) -> None:
        self._runs = runs
        self._places = {run: i for i, run in enumerate(runs)}
        self._later = later
        self._needs = {run: {first for first in run.after if first in todo} for run in todo}
        self.ready = [i for i, run in enumerate(runs) if run in todo and not self._needs[run]]

    def pop(self) -> Run:
        """Take the first run that is ready."""
        return self._runs[heapq.heappop(self.ready)]

    def release_after(self, done: Run) -> None:
        """Make those ready that needed nothing else."""
        for run in self._later[done]:
            needs = self._needs.get(run, set())
            if done in needs:
                needs.remove(done)
                if not needs:
                    heapq.heappush(self.ready, self._places[run])

    def give_up_after(self, failed: Run) -> Iterator[Run]:
        """Take out those that cannot begin any more, and yield them."""
        for run in self._later[failed]:
            if self._needs.pop(run, None) is not None:
                yield run
                yield from self.give_up_after(run)


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
            shutil.rmtree(run.apprentice, ignore_errors=True)
            run.knowledge.unlink(missing_ok=True)
