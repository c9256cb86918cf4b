"""Processes that end with the one that began them, however that ended.

What they do would be done again beside them: a live host would be asked by two. They end as if
killed, as everything recorded is on disk.
"""

from __future__ import annotations

import os
import select
import threading
from multiprocessing import parent_process

_STDIN = 0  # of which whoever began this process holds the other end


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
