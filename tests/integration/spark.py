"""Apache Spark as it is: its programs, a standalone cluster on loopback, crawls on it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from .ports import await_listener, free_port
from .running import ROOT
from .warm import WarmProcess

HOST = "127.0.0.1"
LONG = 1200  # seconds after which a process hangs
PROCESSES = "processes[2]"
_EXECUTOR = "CoarseGrainedExecutorBackend"


def why_not() -> str | None:
    """Return why there is no Spark here; None if there is."""
    if not (ROOT / ".venv-spark" / ".installed").is_file():
        return "Spark is not installed: make .venv-spark/.installed"
    return None if shutil.which("java") else "there is no Java"


def environment() -> dict[str, str]:
    """Return the environment of a process with PySpark, if it is there, and the tests' critic."""
    sites = (ROOT / ".venv-spark").glob("lib/python*/site-packages")
    path = os.pathsep.join(map(str, [ROOT / "tests", ROOT, *sites]))
    return os.environ | {"PYTHONPATH": path, "SPARK_LOCAL_IP": HOST, "OMP_NUM_THREADS": "1"}


def write_plan(path: Path, **given: Any) -> Path:
    """Write a plan of a crawl of the synthetic web."""
    plan = {"topic": "/Sports/Cycling", "web": "demo", "seeds": "models/demo/seeds.csv"} | given
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in plan.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def begin(
    plan: Path,
    root: object,
    *more: str,
    master: str = PROCESSES,
    stderr: int = subprocess.STDOUT,
    **told: str,
) -> subprocess.Popen[str]:
    """Begin ``focuscrawl rounds``; its processes are a group.

    Parameters
    ----------
    told : variables of its environment
    """
    command = [sys.executable, "-m", "focuscrawl", "rounds", str(plan), "--out", str(root)]
    return subprocess.Popen(
        [*command, "--master", master, *more],
        cwd=ROOT,
        env=environment() | told,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )


def crawl(plan: Path, root: object, *more: str, master: str = PROCESSES) -> str:
    """Crawl to the end, in a forked process; return what was said."""
    line = ["rounds", str(plan), "--out", str(root), "--master", master, *more]
    with TemporaryFile("w+", encoding="utf-8") as out:
        with WarmProcess(
            line,
            cwd=ROOT,
            env=environment(),
            stdout=out.fileno(),
            stderr=out.fileno(),
            program="focuscrawl",
        ) as process:
            code = process.wait(LONG)
        out.seek(0)
        said = out.read()
    assert code == 0, said
    return said


def refused(plan: Path, root: Path, master: str, **told: str) -> str:
    """Begin a crawl that the user has to put right; return the line that says so."""
    process = begin(plan, root, master=master, stderr=subprocess.PIPE, **told)
    _, said = process.communicate(timeout=LONG)
    assert process.returncode == 2, said
    (line,) = said.splitlines()
    return line


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Run a standalone cluster, workers of one core each; give its master's URL."""
    (programs,) = (ROOT / ".venv-spark").glob("lib/python*/site-packages/pyspark/bin")
    port = free_port()
    master = f"spark://{HOST}:{port}"
    told = environment() | {"SPARK_WORKER_DIR": str(folder / "work"), "SPARK_NO_DAEMONIZE": "1"}
    with ExitStack() as stack:

        def run(name: str, *arguments: str) -> None:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [str(programs / "spark-class"), *arguments], stdout=log, stderr=log, env=told
            )
            stack.enter_context(process)
            stack.callback(process.kill)

        classes = "org.apache.spark.deploy"
        ports = ("--webui-port", "0")
        run("master", f"{classes}.master.Master", *("--host", HOST, "--port", str(port)), *ports)
        await_listener(port)
        for n in range(workers):
            size = ("--cores", "1", "--memory", "1g", "--host", HOST)
            run(f"worker-{n}", f"{classes}.worker.Worker", *size, *ports, master)
        yield master


def executors(master: str) -> list[int]:
    """Return the processes of executors of a master's applications."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text(encoding="utf-8", errors="replace")
            if _EXECUTOR in command and master.rpartition(":")[2] in _parents(int(folder.name)):
                found.append(int(folder.name))
        except OSError:
            continue  # it has ended
    return found


def _parents(pid: int) -> str:
    """Return the command line of the worker that began an executor."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (parent,) = (line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))
    return Path(f"/proc/{parent}/cmdline").read_text(encoding="utf-8", errors="replace")


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process and all that it began."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=LONG)


def rounds_done(root: Path) -> int:
    """Return how many rounds are over."""
    return len([*root.glob("rounds/[0-9]*.json")])


def wait_for(root: Path, rounds: int, process: subprocess.Popen[str]) -> bool:
    """Wait until so many rounds are over; False if the crawl has ended."""
    while rounds_done(root) < rounds:
        if process.poll() is not None:
            return False
        time.sleep(0.02)
    return True
