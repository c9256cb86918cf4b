"""Files, and folders, that appear whole or not at all: written under another name first."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filelock import lock_descriptor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def draft_of(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Give an empty draft, which takes the place of `path` if nothing goes wrong.

    Nobody can know its name before: no link waits there to be followed, and no journal to be
    rolled back. A link at `path` is replaced, and what it leads to stays as it is. Drafts of
    processes that were killed are removed (`discard_drafts`).

    Parameters
    ----------
    folder : the draft is a folder, and takes the place of an empty one
    """
    with suppress(OSError):  # what cannot be removed is in nobody's way
        discard_drafts(path, folder=folder)
    draft, lock = _begin(path, folder)
    try:
        yield draft
        if not folder:  # a power cut must not leave the new name and no content
            with draft.open("rb") as written:
                os.fsync(written.fileno())
        draft.replace(path)
    finally:
        if folder:
            shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)
        os.close(lock)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all; a text as UTF-8."""
    with draft_of(path) as draft:
        draft.write_bytes(content if isinstance(content, bytes) else content.encode())


def discard_drafts(path: Path, *, folder: bool = False) -> None:
    """Remove the drafts of processes that were killed, with what belongs to them.

    A process that writes one has it locked.

    Parameters
    ----------
    folder : drafts that are folders; False: those that are files
    """
    name = re.compile(rf"(\.{re.escape(path.name)}\.[0-9a-f]+\.draft).*", re.DOTALL)
    for each in [*path.parent.iterdir()]:
        found = name.fullmatch(each.name)
        if found is None or _is_being_written(path.with_name(found[1])):
            continue
        if each.is_symlink() or each.is_file():
            each.unlink(missing_ok=True)
        elif folder and each.is_dir() and found[1] == each.name:
            shutil.rmtree(each, ignore_errors=True)


def _begin(path: Path, folder: bool) -> tuple[Path, int]:
    """Make a draft, and lock it."""
    while True:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
        if folder:
            draft.mkdir()
            lock = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
        else:
            made = os.O_CREAT | os.O_EXCL | os.O_RDWR
            lock = os.open(draft, made | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        # in the meantime others may have taken it for one that was left behind
        if _lock(lock) and draft.exists():
            return draft, lock
        os.close(lock)


def _is_being_written(draft: Path) -> bool:
    try:
        lock = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # it is a link, or there is none
        return False
    try:
        return not _lock(lock)
    finally:
        os.close(lock)


def _lock(handle: int) -> bool:
    """Lock a file or folder; True, too, where a file system knows no locks."""
    try:
        return lock_descriptor(handle, blocking=False)
    except OSError:
        return True
