"""Tasks, and who does them: processes of this machine, or a cluster of Apache Spark."""

from __future__ import annotations

import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from focuscrawl.errors import UserError
from focuscrawl.rounds.context import context_of
from focuscrawl.rounds.fetching import fetch
from focuscrawl.rounds.taking_in import take_in

if TYPE_CHECKING:
    from collections.abc import Sequence

_STAGES = {"fetch": fetch, "take in": take_in}


class Task(NamedTuple):
    """A stage of a round, for one bucket."""

    stage: str
    root: str
    bucket: int
    round: int


def do(task: Task) -> dict[str, Any]:
    """Do a task, wherever this is; say what it took: ``seconds`` of processor, ``megabytes``."""
    began = time.process_time()
    done = _STAGES[task.stage](context_of(task.root), task.bucket, task.round)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return done | {"seconds": time.process_time() - began, "megabytes": megabytes}


class Master(Protocol):
    """Has tasks done."""

    def do_all(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Return what came of each; some may be done more than once."""
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
        self._pool = None
        if most > 1:
            self._pool = ProcessPoolExecutor(most, mp_context=get_context("forkserver"))

    def do_all(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Return what came of each."""
        return [*map(do, tasks)] if self._pool is None else [*self._pool.map(do, tasks)]

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown()


class Spark:
    """Has tasks done by Apache Spark.

    Parameters
    ----------
    master : ``local[2]``, ``spark://...``, ``yarn``, ``k8s://...``
    """

    def __init__(self, master: str) -> None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            from pyspark.sql import SparkSession  # noqa: PLC0415 - 450 MB, and for few
        except ModuleNotFoundError:
            raise UserError(
                f"--master {master} needs Apache Spark: pip install pyspark, and a Java runtime; "
                "or take --master 'processes[2]'"
            ) from None
        try:
            builder = SparkSession.builder.master(master).appName("focuscrawl rounds")
            self._session = builder.config("spark.ui.enabled", "false").getOrCreate()
        except Exception as error:
            raise UserError(f"no Spark at {master}: {str(error).splitlines()[0]}") from None

    def do_all(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Return what came of each."""
        context = self._session.sparkContext
        done: list[dict[str, Any]] = context.parallelize(tasks, len(tasks)).map(do).collect()
        return done

    def close(self) -> None:
        """End the session."""
        self._session.stop()
