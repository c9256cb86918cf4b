"""Runs the tasks of a crawl in rounds in processes of this machine, or on Apache Spark."""

from __future__ import annotations

import logging
import os
import re
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.processes import process_pool, safe_python_path
from focuscrawl.rounds.buckets import update_bucket
from focuscrawl.rounds.context import load_context
from focuscrawl.rounds.fetching import fetch, import_crawl

logger = logging.getLogger(__name__)

_STAGES = {"fetch": fetch, "update": update_bucket, "import": import_crawl}
_MASTER = re.compile(
    r"local(?:\[(?:\d+|\*)\])?|yarn|k8s://\S+|spark://(?P<hosts>[^\s:,]+:\d+(?:,[^\s:,]+:\d+)*)"
)
_POLL_INTERVAL = 0.5  # seconds between two checks of the progress
_IDLE_TIMEOUT = 20.0  # seconds without a busy worker until a warning is logged
_CONNECT_TIMEOUT = 10.0  # seconds; Spark itself tries for a minute
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # lost executors count as failures of their tasks
    "spark.task.maxFailures": "16",
    # no task runs twice at once, because both would send requests to the same hosts
    "spark.speculation": "false",
    # Python executors import no modules from the working folder
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # tables are files, so no executor is closer to the data
    "spark.locality.wait": "0",
}
_ON_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


class Task(NamedTuple):
    """One stage (such as fetching) of one round (batch) for one bucket (group of hosts)."""

    stage: str
    root: str
    bucket: int
    round: int


def run_task(task: Task) -> dict[str, Any]:
    """Run a task; return its result with the processor time and memory that the task used."""
    start = time.process_time()
    try:
        done = _STAGES[task.stage](load_context(task.root), task.bucket, task.round)
    except UserError as error:  # Spark would repeat the task and print stack traces
        return {"refused": str(error)}
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return done | {"seconds": time.process_time() - start, "megabytes": megabytes}


class Master(Protocol):
    """Interface of objects that run the tasks of a crawl in rounds."""

    def run_tasks(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Run tasks and return the results of the tasks; a task may run more than once.

        Parameters
        ----------
        advance : callable
            Called in any thread with the number of tasks that have finished since the last call.

        Raises
        ------
        UserError
            A task failed with a user error, or its worker died.
        """
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...


class LocalMaster:
    """Runs tasks of a crawl in rounds in processes of this machine.

    Parameters
    ----------
    most : int
        Number of processes; with 1, this process runs the tasks.
    """

    def __init__(self, most: int) -> None:
        self._open = ExitStack()
        self._pool = self._open.enter_context(process_pool(most)) if most > 1 else None

    def run_tasks(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Run tasks in processes of this machine, and return the results of the tasks."""
        kept = []
        try:
            for done in (
                map(run_task, tasks) if self._pool is None else self._pool.map(run_task, tasks)
            ):
                kept.append(done)
                advance(1)
        except BrokenProcessPool:
            raise UserError(
                f"a process died in the stage {tasks[0].stage} of round {tasks[0].round}, "
                "probably "
                "because memory ran out: resume with the same command, or with fewer processes "
                "(--master 'processes[1]')"
            ) from None
        return raise_refusals(kept)

    def close(self) -> None:
        """Stop the processes."""
        self._open.close()


def raise_refusals(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of tasks, or raise the `UserError` with which a task failed."""
    for each in done:
        if "refused" in each:
            raise UserError(each["refused"])
    return done


class SparkMaster:
    """Runs tasks of a crawl in rounds on Apache Spark; keeps Spark's log only after a failure.

    Parameters
    ----------
    master : str
        ``local[2]``, ``spark://HOST:PORT``, ``yarn``, ``k8s://...``

    Raises
    ------
    UserError
        The name is invalid, no master answers, or Spark or Java is not installed.
    """

    def __init__(self, master: str) -> None:
        found = _MASTER.fullmatch(master)
        if found is None:
            raise UserError(
                f"--master {master} is not a valid master: use processes[2], or Spark's local[2], "
                "spark://HOST:PORT, yarn or k8s://..."
            )
        with require_extra("spark", f"--master {master}"):
            from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - an optional dependency
        _find_java(master)
        if found["hosts"]:
            _find_master(master, found["hosts"])
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        of_master = _ON_LOOPBACK if master.startswith("local") else {}
        conf = SparkConf().setMaster(master).setAppName("focuscrawl rounds")
        conf.setAll([*_SETTINGS.items(), *of_master.items()])
        handle, log = tempfile.mkstemp(prefix="focuscrawl-spark-", suffix=".log")
        self._log: Path | None = Path(log)
        with _stderr_to(handle), safe_python_path():
            try:
                self._context = SparkContext(conf=conf)
            except Exception as error:
                why = str(error).splitlines()[0]
                raise UserError(
                    f"Spark cannot start at {master}: {why}; see the log {log}"
                ) from None

    def run_tasks(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Run tasks on Apache Spark and return their results; see `Master.run_tasks`."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with Spark

        here, over = str(Path.cwd()), threading.Event()
        shared = self._context.parallelize(tasks, len(tasks))
        watcher = threading.Thread(target=self._watch, args=(advance, over), daemon=True)
        watcher.start()
        try:
            done: list[dict[str, Any]] = shared.map(
                lambda task: _run_in_folder(here, task)
            ).collect()
        except (Py4JError, OSError) as error:
            log, self._log = self._log, None  # the log file stays
            raise UserError(f"Spark failed: {_reason(error)}; see the log {log}") from error
        finally:
            over.set()
            watcher.join()
        return raise_refusals(done)

    def _watch(self, advance: Callable[[int], object], over: threading.Event) -> None:
        """Report the number of finished tasks; warn if no worker is busy."""
        tracker, shown, idle = self._context.statusTracker(), 0, 0.0
        while not over.wait(_POLL_INTERVAL):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            found = [stage for stage in stages if stage is not None]
            done = sum(stage.numCompletedTasks for stage in found)
            advance(max(0, done - shown))
            shown = max(done, shown)
            busy = sum(stage.numActiveTasks for stage in found)
            idle = 0.0 if busy or not found else idle + _POLL_INTERVAL
            if _IDLE_TIMEOUT <= idle < _IDLE_TIMEOUT + _POLL_INTERVAL:
                logger.warning("no worker of %s is free: waiting for one", self._context.master)

    def close(self) -> None:
        """Stop the Spark application."""
        self._context.stop()
        if self._log is not None:
            self._log.unlink(missing_ok=True)


def _run_in_folder(folder: str, task: Task) -> dict[str, Any]:
    """Run a task in the folder in which the command was started, if the folder exists."""
    if Path(folder).is_dir():
        os.chdir(folder)
    return run_task(task)


def _find_java(master: str) -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java" if not home else str(Path(home, "bin", "java"))) is None:
        where = f" in JAVA_HOME={home}" if home else ""
        raise UserError(
            f"--master {master} needs a Java runtime, which is missing{where}: on Debian, "
            "apt-get install default-jre-headless; or use --master 'processes[2]'"
        )


def _find_master(master: str, hosts: str) -> None:
    why = ""
    for each in hosts.split(","):
        name, _, port = each.rpartition(":")
        try:
            socket.create_connection((name, int(port)), timeout=_CONNECT_TIMEOUT).close()
        except (OSError, OverflowError) as error:
            why = str(error)
        else:
            return
    raise UserError(f"the Spark master {master} does not answer: {why}")


def _reason(error: Exception) -> str:
    """Return the first line of the message of the Java exception."""
    java = getattr(error, "java_exception", None)
    message = str(error if java is None else java.getMessage()).strip()
    return message.splitlines()[0] if message else type(error).__name__


@contextmanager
def _stderr_to(handle: int) -> Iterator[None]:
    """Redirect the standard error of new processes to a file; close `handle`."""
    kept = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
