"""Python processes: started in one way, ending with the one that started them.

They import nothing from the current folder: ``python -m`` and ``python -c``, which process pools
use as well, look there first, and in a stranger's folder a file with the name of any module would
be run. They end as if killed, as everything recorded is on disk: beside a process that does the
same again, a live host would be asked by two.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_STDIN = 0  # of which whoever began this process holds the other end


#: variable of the environment: settings, as JSON, of all crawls that processes of ours begin
SETTINGS = "STUDIO_CRAWL_SETTINGS"
_SAFE = "PYTHONSAFEPATH"
_PATH = "PYTHONPATH"


def end_with_parent() -> None:
    """Let this process, one of `multiprocessing`, end as soon as its parent has."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def end_with_stdin() -> None:
    """Let this process end as soon as standard input does, from now on."""
    if select.select([_STDIN], [], [], 0)[0]:
        os._exit(1)  # nothing is ever written there: it has ended before
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
    arguments : of the interpreter, as in ``-m focuscrawl``
    variables : of the environment, beside those that there are
    options : of `subprocess.Popen`
    """
    environment = {**os.environ, **(variables or {})}
    environment |= _search_path(environment)
    # -P says for this process what the environment says for those that it starts in turn
    return subprocess.Popen([sys.executable, "-P", *arguments], env=environment, **options)


@contextmanager
def process_pool(most: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of fresh processes, which end with this one, however that ends.

    Parameters
    ----------
    most : processes at a time
    """
    # a fork of a process with threads may hang, and those of numpy are there already
    context = multiprocessing.get_context("spawn")
    with safe_starts(), ProcessPoolExecutor(most, context, initializer=end_with_parent) as pool:
        yield pool


@contextmanager
def safe_starts() -> Iterator[None]:
    """Have Python processes that a library starts meanwhile import nothing from here, too."""
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
    """Return where this process finds modules, for one that has to find the same ones.

    Folders only that are named from the root: others depend on where the process is.
    """
    return [each for each in sys.path if os.path.isabs(each)]  # noqa: PTH117 - texts


def _search_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that say where Python looks for modules.

    What the user has put into ``PYTHONPATH`` stays. An empty or relative entry there would be
    the current folder, or one in it; ``PYTHONPATH=$PYTHONPATH:/more`` makes one.
    """
    named = environment.get(_PATH, "").split(os.pathsep)
    return {_SAFE: "1", _PATH: os.pathsep.join(each for each in named if os.path.isabs(each))}  # noqa: PTH117
