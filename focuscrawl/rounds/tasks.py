"""Tasks of a round, and the masters that run them: processes of this machine, or Apache Spark."""

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
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.processes import process_pool, safe_python_path
from focuscrawl.rounds.bucket_update import update_bucket
from focuscrawl.rounds.context import load_context
from focuscrawl.rounds.fetching import fetch, import_crawl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


logger = logging.getLogger(__name__)

_STAGES = {"fetch": fetch, "take in": update_bucket, "take over": import_crawl}
_MASTER = re.compile(
    r"local(?:\[(?:\d+|\*)\])?|yarn|k8s://\S+|spark://(?P<hosts>[^\s:,]+:\d+(?:,[^\s:,]+:\d+)*)"
)
_LOOK = 0.5  # seconds between two looks at the progress
_IDLE = 20.0  # seconds without a busy worker after which a warning is logged
_PATIENCE = 10.0  # seconds in which a master answers; Spark itself tries for a minute
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # executors that are lost count as failures of their tasks
    "spark.task.maxFailures": "16",
    # no task runs twice at a time: a live host would be asked by both
    "spark.speculation": "false",
    # an executor's Python imports nothing from the folder that it works in
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # nothing is near to anything: tables are files
    "spark.locality.wait": "0",
}
_ON_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


class Task(NamedTuple):
    """A stage of a round, for one bucket."""

    stage: str
    root: str
    bucket: int
    round: int


def run_task(task: Task) -> dict[str, Any]:
    """Run a task; its result has ``seconds`` of processor and ``megabytes``, too."""
    start = time.process_time()
    try:
        done = _STAGES[task.stage](load_context(task.root), task.bucket, task.round)
    except UserError as error:  # which Spark would try again, and print with all its stacks
        return {"refused": str(error)}
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return done | {"seconds": time.process_time() - start, "megabytes": megabytes}


class Master(Protocol):
    """Runs tasks."""

    def run_tasks(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Return the results of tasks; some may run more than once.

        Parameters
        ----------
        advance : called, in any thread, with the number of tasks that are done since the last call

        Raises
        ------
        UserError
            A task was refused, or its worker is gone.
        """
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...


class LocalMaster:
    """Runs tasks in processes of this machine.

    Parameters
    ----------
    most : at a time; with 1 this process runs them
    """

    def __init__(self, most: int) -> None:
        self._open = ExitStack()
        self._pool = self._open.enter_context(process_pool(most)) if most > 1 else None

    def run_tasks(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Return the results of tasks; see `Master.run_tasks`."""
        kept = []
        try:
            for done in (
                map(run_task, tasks) if self._pool is None else self._pool.map(run_task, tasks)
            ):
                kept.append(done)
                advance(1)
        except BrokenProcessPool:
            raise UserError(
                f"a process died while it did {tasks[0].stage!r} of round {tasks[0].round}, "
                "as it does where memory runs out: the same command goes on from there; with less "
                "memory take fewer processes (--master 'processes[1]')"
            ) from None
        return raise_refusals(kept)

    def close(self) -> None:
        """Stop the processes."""
        self._open.close()


def raise_refusals(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results of `run_task`; `UserError` if a task was refused."""
    for each in done:
        if "refused" in each:
            raise UserError(each["refused"])
    return done


class SparkMaster:
    """Runs tasks on Apache Spark, whose log is a file that is removed unless something failed.

    Parameters
    ----------
    master : ``local[2]``, ``spark://HOST:PORT``, ``yarn``, ``k8s://...``

    Raises
    ------
    UserError
        That is no master, none answers there, or Spark or Java is not installed.
    """

    def __init__(self, master: str) -> None:
        found = _MASTER.fullmatch(master)
        if found is None:
            raise UserError(
                f"--master {master} is no master: take processes[2], or Spark's local[2], "
                "spark://HOST:PORT, yarn or k8s://..."
            )
        with require_extra("spark", f"--master {master}"):
            from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - 450 MB, and for few
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
                raise UserError(f"no Spark at {master}: {why} (its log: {log})") from None

    def run_tasks(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Return the results of tasks; see `Master.run_tasks`."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with Spark

        here, over = str(Path.cwd()), threading.Event()
        shared = self._context.parallelize(tasks, len(tasks))
        watcher = threading.Thread(target=self._watch, args=(advance, over), daemon=True)
        watcher.start()
        try:
            done: list[dict[str, Any]] = shared.map(lambda task: _do_in(here, task)).collect()
        except (Py4JError, OSError) as error:
            log, self._log = self._log, None  # is kept
            raise UserError(f"Spark gave up: {_reason(error)} (its log: {log})") from error
        finally:
            over.set()
            watcher.join()
        return raise_refusals(done)

    def _watch(self, advance: Callable[[int], object], over: threading.Event) -> None:
        """Report how many tasks are done; warn if no worker is busy."""
        tracker, shown, idle = self._context.statusTracker(), 0, 0.0
        while not over.wait(_LOOK):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            found = [stage for stage in stages if stage is not None]
            done = sum(stage.numCompletedTasks for stage in found)
            advance(max(0, done - shown))
            shown = max(done, shown)
            busy = sum(stage.numActiveTasks for stage in found)
            idle = 0.0 if busy or not found else idle + _LOOK
            if _IDLE <= idle < _IDLE + _LOOK:
                logger.warning(
                    "%s has no worker free: this waits until one is", self._context.master
                )

    def close(self) -> None:
        """Stop the application."""
        self._context.stop()
        if self._log is not None:
            self._log.unlink(missing_ok=True)


def _do_in(folder: str, task: Task) -> dict[str, Any]:
    """Run a task in the folder that the crawl was started in, where there is one."""
    if Path(folder).is_dir():
        os.chdir(folder)
    return run_task(task)


def _find_java(master: str) -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java" if not home else str(Path(home, "bin", "java"))) is None:
        where = f" in JAVA_HOME={home}" if home else ""
        raise UserError(
            f"--master {master} needs a Java runtime, and there is none{where}: on Debian, "
            "apt-get install default-jre-headless; or take --master 'processes[2]'"
        )


def _find_master(master: str, hosts: str) -> None:
    why = ""
    for each in hosts.split(","):
        name, _, port = each.rpartition(":")
        try:
            socket.create_connection((name, int(port)), timeout=_PATIENCE).close()
        except (OSError, OverflowError) as error:
            why = str(error)
        else:
            return
    raise UserError(f"no Spark answers at {master}: {why}")


def _reason(error: Exception) -> str:
    """Return the first line of Spark's own exception."""
    java = getattr(error, "java_exception", None)
    message = str(error if java is None else java.getMessage()).strip()
    return message.splitlines()[0] if message else type(error).__name__


@contextmanager
def _stderr_to(handle: int) -> Iterator[None]:
    """Use a file as the standard error of what is started meanwhile; closes `handle`."""
    kept = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
