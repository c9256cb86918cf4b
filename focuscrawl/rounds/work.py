"""Tasks, and who does them: processes of this machine; or Apache Spark, see `spark`."""

from __future__ import annotations

import resource
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from focuscrawl.errors import UserError
from focuscrawl.foundation.python_processes import process_pool
from focuscrawl.rounds.context import context_of
from focuscrawl.rounds.fetching import fetch
from focuscrawl.rounds.from_folder import take_over
from focuscrawl.rounds.taking_in import take_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_STAGES = {"fetch": fetch, "take in": take_in, "take over": take_over}


class Task(NamedTuple):
    """A stage of a round, for one bucket."""

    stage: str
    root: str
    bucket: int
    round: int


def do(task: Task) -> dict[str, Any]:
    """Do a task, wherever this is; say what it took: ``seconds`` of processor, ``megabytes``."""
    began = time.process_time()
    try:
        done = _STAGES[task.stage](context_of(task.root), task.bucket, task.round)
    except UserError as error:  # which Spark would try again, and tell with all its stacks
        return {"refused": str(error)}
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return done | {"seconds": time.process_time() - began, "megabytes": megabytes}


class Master(Protocol):
    """Has tasks done."""

    def do_all(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Return what came of each; some may be done more than once.

        Parameters
        ----------
        advance : called, in whatever thread, with how many more are done
        """
        ...

    def close(self) -> None:
        """Let go of whoever did them."""
        ...


class Processes:
    """Has tasks done by processes of this machine.

    Parameters
    ----------
    most : at a time; with 1 this process does them
    """

    def __init__(self, most: int) -> None:
        self._open = ExitStack()
        self._pool = self._open.enter_context(process_pool(most)) if most > 1 else None

    def do_all(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Return what came of each.

        Raises
        ------
        UserError
            A process has died, or there is something to put right.
        """
        kept = []
        try:
            for done in map(do, tasks) if self._pool is None else self._pool.map(do, tasks):
                kept.append(done)
                advance(1)
        except BrokenProcessPool:
            raise UserError(
                f"a process died while it did {tasks[0].stage!r} of round {tasks[0].round}, "
                "as it does where memory runs out: the same command goes on from there; with less "
                "memory take fewer processes (--master 'processes[1]')"
            ) from None
        return came_of(kept)

    def close(self) -> None:
        """End the processes."""
        self._open.close()


def came_of(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what came of tasks; `UserError` if there is something to put right first."""
    for each in done:
        if "refused" in each:
            raise UserError(each["refused"])
    return done
