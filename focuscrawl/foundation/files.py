"""Safe file access: refusal of links in untrusted folders, atomic replacement, locks, cache.

Symbolic links in the folder of an untrusted crawl could lead to any file of the user, and opening
a pipe would block forever. Symbolic links in paths that the user types are followed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import platformdirs
from filelock import FileLock, Timeout, lock_descriptor

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pyarrow import fs


_MAX_FILE_BYTES = 2 << 30  # of a file that is read into memory

#: `is_locked` holds a lock for an instant; tries of a process to get it, and seconds between them
LOCK_TRIES, LOCK_RETRY_DELAY = 10, 0.01
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_UNUSABLE_PATH = (
    *(errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR),
)


def open_nofollow(name: str, flags: int) -> int:
    """Open a regular file without following a symbolic link; an ``opener`` for `open`.

    Raises
    ------
    UserError
        The path is a link, a pipe or another special file.
    """
    refuse_link(name)
    return open_regular(name, flags | os.O_NOFOLLOW)


def check_regular_file(path: str | Path) -> None:
    """Raise `UserError` if `path` exists and is a symbolic link, a folder or a special file."""
    refuse_link(path)
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - either kind
        raise UserError(f"{path} is not a regular file: remove it")


def open_regular(name: str, flags: int) -> int:
    """Open a regular file or a symbolic link to a regular file; an ``opener`` for `open`.

    Raises
    ------
    UserError
        The path is a pipe or another special file.
    """
    handle = os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UserError(f"{name} is not a regular file: remove it or name another file")
    return handle


def safe_join(root: Path, name: str) -> Path:
    """Return the path of the file `name` in the folder `root`, whether or not the file exists.

    Code that accesses a file in an untrusted folder must get the file's path from this function.
    The user chose the folder `root`, so `root` itself may be a symbolic link.

    Parameters
    ----------
    name : str
        Path relative to `root`, with ``/`` between its parts.

    Raises
    ------
    UserError
        The path or a folder between `root` and the path is a link, or `name` leads out of `root`.
    """
    parts = PurePosixPath(name).parts
    if "\0" in name or any(part in ("..", "/", "//") for part in parts):
        raise UserError(f"{name!r:.200} leads out of {root}: name a path inside the folder")
    path = root
    for part in parts:
        path /= part
        refuse_link(path)
    return path


def read_regular(path: Traversable) -> bytes:
    """Return the content of a regular file (may be a symbolic link) or of a file in a zip archive.

    Raises
    ------
    OSError
        The file cannot be read.
    UserError
        The path is a special file, or the file is larger than 2 GiB.
    """
    if not isinstance(path, Path):
        return path.read_bytes()
    with open(path, "rb", opener=open_regular) as file:
        if os.fstat(file.fileno()).st_size > _MAX_FILE_BYTES:
            limit = f"{_MAX_FILE_BYTES >> 30} GiB"
            raise UserError(f"{path} is larger than {limit}: name another file")
        return file.read()


def refuse_link(path: str | Path) -> None:
    """Raise `UserError` if `path` itself is a symbolic link."""
    if os.path.islink(path):  # noqa: PTH114 - either kind of path
        target = os.readlink(path)  # noqa: PTH115
        raise UserError(
            f"{path} is a link to {target}: focuscrawl follows no links there; remove it"
        )


def refuse_links(path: str | Path, below: str | Path) -> None:
    """Raise `UserError` if `path` or a folder between `below` and `path` is a symbolic link."""
    within = os.path.relpath(path, below)
    for end, letter in enumerate(within + os.sep):
        if letter == os.sep:
            refuse_link(os.path.join(below, within[:end]))  # noqa: PTH118 - either kind of path


@contextmanager
def replace_atomically(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield the path of an empty draft file; the draft replaces `path` if no error is raised.

    The name of the draft is random, so nobody can place a symbolic link or a journal with the same
    name in advance. A symbolic link at `path` is replaced, and the target of the link does not
    change. Drafts of killed processes are removed.

    Parameters
    ----------
    folder : bool
        Whether the draft is a folder, which replaces an empty folder.
    """
    with suppress(OSError):  # a draft that cannot be removed does no harm
        remove_stale_drafts(path, folder=folder)
    draft, lock = _create_draft(path, folder)
    try:
        yield draft
        if not folder:  # a power cut must not leave an empty file under the new name
            with draft.open("rb") as written:
                os.fsync(written.fileno())
        draft.replace(path)
    finally:
        if folder:
            shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)
        os.close(lock)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file completely or not at all; texts are encoded as UTF-8."""
    with replace_atomically(path) as draft:
        draft.write_bytes(content if isinstance(content, bytes) else content.encode())


@contextmanager
def reporting_write_errors(path: str | Path, advice: str = "") -> Iterator[None]:
    """Turn an `OSError` within the ``with`` block into a `UserError` about writing `path`."""
    try:
        yield
    except OSError as error:
        why = f" ({error.strerror}): {advice}" if advice else f": {error.strerror}"
        raise UserError(f"{path} cannot be written{why}") from None


def remove_stale_drafts(path: Path, *, folder: bool = False) -> None:
    """Remove drafts of the file `path` that killed processes left, and the journals of the drafts.

    A draft that another process is writing is locked, and is not removed.

    Parameters
    ----------
    folder : bool
        Whether to remove drafts that are folders, too.
    """
    name = re.compile(rf"(\.{re.escape(path.name)}\.[0-9a-f]+\.draft).*", re.DOTALL)
    for each in [*path.parent.iterdir()]:
        found = name.fullmatch(each.name)
        if found is None or _is_draft_locked(path.with_name(found[1])):
            continue
        if each.is_symlink() or each.is_file():
            each.unlink(missing_ok=True)
        elif folder and each.is_dir() and found[1] == each.name:
            shutil.rmtree(each, ignore_errors=True)


def _create_draft(path: Path, folder: bool) -> tuple[Path, int]:
    """Create and lock a draft; return its path and the handle of the lock."""
    while True:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
        if folder:
            draft.mkdir()
            lock = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
        else:
            create = os.O_CREAT | os.O_EXCL | os.O_RDWR
            lock = os.open(draft, create | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        # before the lock, another process may have removed the draft as a stale one
        if _try_lock(lock) and draft.exists():
            return draft, lock
        os.close(lock)


def _is_draft_locked(draft: Path) -> bool:
    try:
        lock = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # a link, or no such file
        return False
    try:
        return not _try_lock(lock)
    finally:
        os.close(lock)


def _try_lock(handle: int) -> bool:
    """Lock a file or folder; return True also on file systems without locks."""
    try:
        return lock_descriptor(handle, blocking=False)
    except OSError:
        return True


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock file `path`; False if the file does not exist."""
    try:
        lock = open(path, opener=open_nofollow)  # noqa: SIM115 - closed below
    except OSError:
        return False
    with lock:
        for _ in range(LOCK_TRIES):
            if lock_descriptor(lock.fileno(), blocking=False):
                return False
            time.sleep(LOCK_RETRY_DELAY)
    return True


@contextmanager
def update_lock(path: Path, timeout: float = 60.0, busy: str = "") -> Iterator[None]:
    """Lock a file against other programs while the ``with`` block reads and rewrites the file.

    The lock is a hidden file in the same folder, and is removed at the end of the block.

    Parameters
    ----------
    path : Path
        The file, which need not exist; its folder has to exist.
    timeout : float
        Seconds to wait for other programs.
    busy : str
        Error message for the timeout.

    Raises
    ------
    UserError
        The timeout is over, or the lock file is a link.
    OSError
        The folder cannot be written.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(path.parent))
    name = path.with_name(f".{path.name}.lock")
    refuse_link(name)
    lock = FileLock(name, timeout, poll_interval=LOCK_RETRY_DELAY, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            busy or f"another program is changing {path}: try again when it has finished"
        ) from None
    try:
        yield
    finally:
        name.unlink(missing_ok=True)  # a waiting process notices that and creates a new lock file
        lock.release()


def as_user_error(error: OSError) -> UserError | None:
    """Return the error as a one-line `UserError`; None if the user cannot solve the problem."""
    where = "" if error.filename is None else f"{error.filename}: "
    if error.errno in _DISK_FULL:
        return UserError(f"{where}the disk is full: free some space")
    if error.errno in _UNUSABLE_PATH and where:
        why = str(error.strerror).lower()
        return UserError(f"{where}{why}: name another path, or change its permissions")
    return None


def cache_dir() -> Path:
    """Return the cache folder: ``FOCUSCRAWL_CACHE``, or the platform's default folder."""
    named = os.environ.get("FOCUSCRAWL_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("focuscrawl")


def open_file_system(place: str) -> tuple[fs.FileSystem, str]:
    """Return the PyArrow file system of a path or URI, and the path within the file system.

    Parameters
    ----------
    place : str
        A local path or a URI: ``s3://bucket/folder?endpoint_override=host:9000``, ``hdfs://...``

    Raises
    ------
    UserError
        There is no such file system, or the URI contains a password.
    """
    with require_extra("parquet", place if "@" not in place else "a URI"):
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import fs  # noqa: PLC0415
    if "://" not in place:
        return fs.LocalFileSystem(), place
    try:
        if urlsplit(place).password is not None:
            scheme = place.partition("://")[0]
            raise UserError(
                f"{scheme}://...: a URI is logged and must not contain a password; set keys in "
                "environment variables such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        found, path = fs.FileSystem.from_uri(place)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = first_line(error) if "@" not in place else "check that it is a valid URI"
        shown = place if "@" not in place else f"{place.partition('://')[0]}://..."
        raise UserError(f"cannot open the file system of {shown}: {why}") from None
    return found, path


def refuse_special_file(files: fs.FileSystem, path: str, below: str | None = None) -> None:
    """Refuse a local path that is not a regular file, because opening a pipe would block.

    Parameters
    ----------
    path : str
        Path of the file, which need not exist.
    below : str or None
        Folder below which no part of the path may be a link.

    Raises
    ------
    UserError
        The path is a pipe, a device or a folder, or contains a link.
    """
    if files.type_name != "local":
        return
    if below is not None:
        refuse_links(path, below)
    if Path(path).exists() and not Path(path).is_file():
        raise UserError(f"{path} is not a regular file: remove it or name another file")


def first_line(error: BaseException) -> str:
    """Return the first line of a PyArrow error message, without the details for programmers."""
    return (str(error).splitlines() or [type(error).__name__])[0].partition(". Detail: ")[0]
