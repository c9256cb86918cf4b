"""Tasks, and who does them: processes of this machine, or a cluster of Apache Spark."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.rounds.context import context_of
from focuscrawl.rounds.fetching import fetch
from focuscrawl.rounds.taking_in import take_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MASTERS = re.compile(
    r"local|local\[(?:\*|[1-9]\d*)\]|spark://[^:/]+:\d+(?:,[^:/]+:\d+)*|yarn|k8s://.+"
)
_PATIENCE = 10.0  # seconds, until a master answers
_LOOPBACK = "127.0.0.1"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.task.maxFailures": "16",  # of executors: what is done already is not done again
    "spark.ui.showConsoleProgress": "false",
}
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
    try:
        done = _STAGES[task.stage](context_of(task.root), task.bucket, task.round)
    except UserError as error:  # which Spark would try again, and tell with all its stacks
        return {"refused": str(error)}
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
        return _came_of(map(do, tasks) if self._pool is None else self._pool.map(do, tasks))

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown()


class Spark:
    """Has tasks done by Apache Spark.

    Parameters
    ----------
    master : ``local[2]``, ``spark://...``, ``yarn``, ``k8s://...``

    Raises
    ------
    UserError
        There is no such master, nobody answers there, or Spark is not installed.
    """

    def __init__(self, master: str) -> None:
        if not _MASTERS.fullmatch(master):
            raise UserError(
                f"--master {master} is none of processes[2], local[2], spark://HOST:PORT, yarn, "
                "k8s://https://HOST:PORT"
            )
        # what it finds about pandas, which is not used
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        with needs("spark", f"--master {master}"):
            from pyspark.sql import SparkSession  # noqa: PLC0415 - 450 MB, and for few
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            raise UserError(
                f"--master {master} needs a Java runtime (on Debian: apt-get install "
                "default-jre-headless), or take --master 'processes[2]'"
            )
        _look_for(master)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        log = Path(__file__).with_name("log4j2.properties").as_uri()
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={log}")
        builder = SparkSession.builder.master(master).appName("focuscrawl rounds")
        for name, value in _SETTINGS.items():
            builder = builder.config(name, value)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
            builder = builder.config("spark.driver.host", _LOOPBACK)
            builder = builder.config("spark.driver.bindAddress", _LOOPBACK)
        try:
            self._session = builder.getOrCreate()
        except Exception as error:
            why = str(error).strip().splitlines() or [type(error).__name__]
            raise UserError(f"no Spark at {master}: {why[0]}") from None

    def do_all(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Return what came of each."""
        context = self._session.sparkContext
        return _came_of(context.parallelize(tasks, len(tasks)).map(do).collect())

    def close(self) -> None:
        """End the session."""
        self._session.stop()


def _look_for(master: str) -> None:
    """See that somebody listens at a master of Spark's own, which Spark tries for minutes."""
    for address in master.removeprefix("spark://").split(",") if "spark://" in master else ():
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), _PATIENCE):
                return
        except OSError as error:
            why = error.strerror or str(error)
    if "spark://" in master:
        raise UserError(f"no Spark at {master}: {why}")


def _came_of(done: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what came of tasks; the first that the user has to put right ends them."""
    kept = [*done]
    for each in kept:
        if "refused" in each:
            raise UserError(each["refused"])
    return kept
