"""Tasks, and who does them: processes of this machine, or Apache Spark."""

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
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.processes import process_pool, safe_starts
from focuscrawl.rounds.context import context_of
from focuscrawl.rounds.fetching import fetch, take_over
from focuscrawl.rounds.taking_in import take_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


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


_MASTER = re.compile(
    r"local(?:\[(?:\d+|\*)\])?|yarn|k8s://\S+|spark://(?P<hosts>[^\s:,]+:\d+(?:,[^\s:,]+:\d+)*)"
)
logger = logging.getLogger(__name__)

_LOOK = 0.5  # seconds between two looks at what is done
_IDLE = 20.0  # seconds after which it is said that nobody does anything
_PATIENCE = 10.0  # seconds in which a master answers; Spark itself tries for a minute
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # executors that are lost count as failures of what they did
    "spark.task.maxFailures": "16",
    # nobody does what somebody does already: a live host would be asked by both
    "spark.speculation": "false",
    # an executor's Python imports nothing from the folder that it works in
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # nothing is near to anything: tables are files
    "spark.locality.wait": "0",
}
_ON_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


class Spark:
    """Has tasks done by Apache Spark.

    What Spark says goes into a file, which is removed unless something failed.

    Parameters
    ----------
    master : ``local[2]``, ``spark://HOST:PORT``, ``yarn``, ``k8s://...``

    Raises
    ------
    UserError
        That is no master, nobody answers there, or Spark or Java is not installed.
    """

    def __init__(self, master: str) -> None:
        found = _MASTER.fullmatch(master)
        if found is None:
            raise UserError(
                f"--master {master} is no master: take processes[2], or Spark's local[2], "
                "spark://HOST:PORT, yarn or k8s://..."
            )
        with needs("spark", f"--master {master}"):
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
        with _stderr_to(handle), safe_starts():
            try:
                self._context = SparkContext(conf=conf)
            except Exception as error:
                why = str(error).splitlines()[0]
                raise UserError(f"no Spark at {master}: {why} (its log: {log})") from None

    def do_all(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        """Return what came of each."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with Spark

        here = str(Path.cwd())
        shared = self._context.parallelize(tasks, len(tasks))
        try:
            with self._watched(advance):
                done: list[dict[str, Any]] = shared.map(lambda task: _do(task, here)).collect()
        except (Py4JError, OSError) as error:
            log, self._log = self._log, None  # is kept
            raise UserError(f"Spark gave up: {_reason(error)} (its log: {log})") from error
        return came_of(done)

    @contextmanager
    def _watched(self, advance: Callable[[int], object]) -> Iterator[None]:
        """Tell how many tasks are done, within the ``with`` block, and if nobody does any."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(advance, over), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch(self, advance: Callable[[int], object], over: threading.Event) -> None:
        tracker, shown, idle = self._context.statusTracker(), 0, 0.0
        while not over.wait(_LOOK):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            found = [stage for stage in stages if stage is not None]
            done = sum(stage.numCompletedTasks for stage in found)
            advance(max(0, done - shown))
            shown = max(done, shown)
            at_work = sum(stage.numActiveTasks for stage in found)
            idle = 0.0 if at_work or not found else idle + _LOOK
            if _IDLE <= idle < _IDLE + _LOOK:
                logger.warning(
                    "%s has no worker free: this waits until one is", self._context.master
                )

    def close(self) -> None:
        """End the application."""
        self._context.stop()
        if self._log is not None:
            self._log.unlink(missing_ok=True)


def _do(task: Task, folder: str) -> dict[str, Any]:
    """Do a task in the folder of whoever started the crawl, where there is one."""
    if Path(folder).is_dir():
        os.chdir(folder)
    return do(task)


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
    """Return the line of Spark's own exception, without its stack."""
    java = getattr(error, "java_exception", None)
    said = str(error if java is None else java.getMessage()).strip()
    return said.splitlines()[0] if said else type(error).__name__


@contextmanager
def _stderr_to(handle: int) -> Iterator[None]:
    """Have a file for the standard error of what is started meanwhile; closes `handle`."""
    kept = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
