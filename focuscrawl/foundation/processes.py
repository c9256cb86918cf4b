"""Starts Python child processes, which exit when their parent process exits.

Child processes import nothing from the current folder. With ``python -m``, with ``python -c`` and
in process pools, Python would search the current folder first, and run any file with the name of a
module. Child processes exit without cleanup, because all records are on disk. A child process that
outlived its parent would send requests to the same hosts as its successor.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import Any

_STDIN = 0  # the parent process holds the other end of this pipe


# for the number of threads of numerical libraries
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: environment variable with the settings, as JSON, of all crawls that child processes start
SETTINGS_VARIABLE = "STUDIO_CRAWL_SETTINGS"
_SAFE = "PYTHONSAFEPATH"
_PATH = "PYTHONPATH"


def use_one_thread() -> None:
    """Set numerical libraries that are loaded later to one thread, unless the user sets more.

    More threads hardly speed up products of small matrices, but wait actively for each other. The
    last bits of a model would depend on their number.
    """
    for name in _THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


def exit_with_parent() -> None:
    """Make this child process of `multiprocessing` exit as soon as its parent exits."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def exit_with_stdin() -> None:
    """Make this child process exit as soon as its standard input is closed."""
    if select.select([_STDIN], [], [], 0)[0]:
        os._exit(1)  # nobody writes to this pipe, so a readable pipe was closed already
    threading.Thread(target=_read_to_the_end, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _read_to_the_end() -> None:
    while os.read(_STDIN, 1):
        pass
    os._exit(1)


def start_python(
    arguments: Sequence[str], *, variables: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[Any]:
    """Start a Python process.

    Parameters
    ----------
    arguments : sequence of str
        Arguments of the interpreter, as in ``-m focuscrawl``.
    variables : mapping of str to str, optional
        Further environment variables.
    **options : Any
        Options of `subprocess.Popen`.
    """
    environment = {**os.environ, **(variables or {})}
    environment |= _search_path(environment)
    # -P protects this process, and the environment variables protect the processes it starts
    return subprocess.Popen([sys.executable, "-P", *arguments], env=environment, **options)


@contextmanager
def process_pool(most: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of up to `most` processes, which exit when this process exits or is killed."""
    # the fork of a process with threads may hang, and numpy has started threads already
    context = multiprocessing.get_context("spawn")
    with (
        safe_python_path(),
        ProcessPoolExecutor(most, context, initializer=exit_with_parent) as pool,
    ):
        yield pool


@contextmanager
def safe_python_path() -> Iterator[None]:
    """Prevent the import of modules in the current folder by child processes of libraries."""
    before = {name: os.environ.get(name) for name in (_SAFE, _PATH)}
    os.environ.update(_search_path(os.environ))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def search_path() -> list[str]:
    """Return the absolute paths in ``sys.path``, from which child processes import modules."""
    return [each for each in sys.path if os.path.isabs(each)]  # noqa: PTH117 - texts


def _search_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables that keep Python from importing from the current folder.

    ``PYTHONPATH`` keeps its absolute entries. An empty or relative entry, as
    ``PYTHONPATH=$PYTHONPATH:/more`` may create, would lead to the current folder.
    """
    named = environment.get(_PATH, "").split(os.pathsep)
    return {_SAFE: "1", _PATH: os.pathsep.join(each for each in named if os.path.isabs(each))}  # noqa: PTH117
