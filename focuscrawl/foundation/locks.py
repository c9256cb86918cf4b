"""Locks on files, which the kernel drops with the process, however that ends."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from errno import ENOENT
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout, lock_descriptor

from focuscrawl.errors import UserError
from focuscrawl.foundation.plain_files import open_plain, refuse_link

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@contextmanager
def changing(path: Path, patience: float = 60.0, busy: str = "") -> Iterator[None]:
    """Keep others from changing a file while it is read, changed and written.

    Every program that writes a file which others write, too, reads and writes it within one
    ``with`` block. The lock is a hidden file beside it, which is removed at the end.

    Parameters
    ----------
    path : of the file, which need not be there; its folder has to be
    patience : seconds to wait for others
    busy : what to say if they take longer

    Raises
    ------
    UserError
        Others take longer, or a link is in the place of the lock.
    OSError
        The folder cannot be written.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(path.parent))
    name = path.with_name(f".{path.name}.lock")
    refuse_link(name)
    lock = FileLock(name, patience, poll_interval=BETWEEN, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            busy or f"{path} is being changed by another program: do this again after that"
        ) from None
    try:
        yield
    finally:
        name.unlink(missing_ok=True)  # who waits for it sees that it is gone, and makes it anew
        lock.release()
