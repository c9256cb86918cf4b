"""Whether a process holds a lock: the kernel drops it with the process, however that ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from filelock import lock_descriptor

from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from pathlib import Path

#: others look for an instant whether a lock is taken: tries, and seconds between them
TRIES, BETWEEN = 10, 0.01


def is_held(path: Path) -> bool:
    """Tell whether a process holds the lock at `path`, which need not exist."""
    try:
        lock = open(path, opener=open_plain)  # noqa: SIM115 - closed below
    except OSError:
        return False
    with lock:
        for _ in range(TRIES):
            if lock_descriptor(lock.fileno(), blocking=False):
                return False
            time.sleep(BETWEEN)
    return True
