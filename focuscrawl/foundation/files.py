"""Files in folders that may be a stranger's: no links, replaced whole, locked; the cache.

A link in the folder of a stranger's crawl may point to any file of the user's, and a pipe there
keeps who opens it waiting for ever. What the user names is another matter: links are followed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from errno import ENOENT
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import platformdirs
from filelock import FileLock, Timeout, lock_descriptor

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from pyarrow import fs


_LARGEST = 2 << 30  # bytes of a file that is read whole


#: others look for an instant whether a lock is taken: tries, and seconds between them
TRIES, BETWEEN = 10, 0.01
_FULL = (errno.ENOSPC, errno.EDQUOT)
_OF_A_PATH = (
    *(errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR),
)


def open_plain(name: str, flags: int) -> int:
    """Open a file that is a file: an opener for `open` and its like.

    Raises
    ------
    UserError
        It is a link or a pipe, or something else that is none.
    """
    refuse_link(name)
    return open_regular(name, flags | os.O_NOFOLLOW)


def check_plain(path: str | Path) -> None:
    """Raise `UserError` if `path` is a link, a pipe or a folder; it need not exist."""
    refuse_link(path)
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - either kind
        raise UserError(f"{path} is no plain file: remove it")


def open_regular(name: str, flags: int) -> int:
    """Open a file that is a file, or a link to one: an opener for `open` and its like.

    Raises
    ------
    UserError
        It is a pipe, or something else that is none.
    """
    handle = os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UserError(f"{name} is no plain file: remove it, or name another")
    return handle


def plain_below(root: Path, name: str) -> Path:
    """Return a path below a folder, which leads nowhere else; it need not exist.

    Whatever is read, written or removed in a folder that somebody else may have made is named by
    this. `root` itself is what the user named, and may be a link.

    Parameters
    ----------
    name : from `root`, with ``/``

    Raises
    ------
    UserError
        The path or a folder on the way there is a link, or `name` leads out of `root`.
    """
    parts = PurePosixPath(name).parts
    if "\0" in name or any(part in ("..", "/", "//") for part in parts):
        raise UserError(f"{name!r:.200} leads out of {root}: name a path in it")
    path = root
    for part in parts:
        path /= part
        refuse_link(path)
    return path


def read_regular(path: Traversable) -> bytes:
    """Return the content of a file that is a file, or a link to one, or lies in an archive.

    Raises
    ------
    OSError
        It cannot be read.
    UserError
        It is no plain file, or larger than anything that is held in memory.
    """
    if not isinstance(path, Path):
        return path.read_bytes()
    with open(path, "rb", opener=open_regular) as file:
        if os.fstat(file.fileno()).st_size > _LARGEST:
            raise UserError(f"{path} is larger than {_LARGEST >> 30} GiB: name another")
        return file.read()


def refuse_link(path: str | Path) -> None:
    """Raise `UserError` if `path` itself is a symbolic link; it need not exist."""
    if os.path.islink(path):  # noqa: PTH114 - either kind of path
        leads = os.readlink(path)  # noqa: PTH115
        raise UserError(f"{path} is a link to {leads}: no link is followed there, remove it")


def refuse_links(path: str | Path, below: str | Path) -> None:
    """Raise `UserError` if `path`, or a folder on the way to it from `below`, is a link."""
    within = os.path.relpath(path, below)
    for end, letter in enumerate(within + os.sep):
        if letter == os.sep:
            refuse_link(os.path.join(below, within[:end]))  # noqa: PTH118 - either kind of path


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


def as_user_error(error: OSError) -> UserError | None:
    """Return what the user is told of `error`; None: it is nothing that a user can put right."""
    where = "" if error.filename is None else f"{error.filename}: "
    if error.errno in _FULL:
        return UserError(f"{where}the disk is full: make room")
    if error.errno in _OF_A_PATH and where:
        why = str(error.strerror).lower()
        return UserError(f"{where}{why}: name another path, or have this one made usable")
    return None


def cache_dir() -> Path:
    """Return the cache folder: ``FOCUSCRAWL_CACHE``, or the platform's own place for caches."""
    named = os.environ.get("FOCUSCRAWL_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("focuscrawl")


def file_system_of(place: str) -> tuple[fs.FileSystem, str]:
    """Return the file system that a place is on, and the path there.

    Parameters
    ----------
    place : a local path, or a URI: ``s3://bucket/folder?endpoint_override=host:9000``,
        ``hdfs://...``

    Raises
    ------
    UserError
        There is no such file system, or a password is in the URI.
    """
    with needs("parquet", place if "@" not in place else "a URI"):
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import fs  # noqa: PLC0415
    if "://" not in place:
        return fs.LocalFileSystem(), place
    try:
        if urlsplit(place).password is not None:
            scheme = place.partition("://")[0]
            raise UserError(
                f"{scheme}://...: a URI is written down in many places, so it holds no password: "
                "leave keys to the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        found, path = fs.FileSystem.from_uri(place)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = first_line(error) if "@" not in place else "is it written as a URI?"
        shown = place if "@" not in place else f"{place.partition('://')[0]}://..."
        raise UserError(f"{shown} is on no file system: {why}") from None
    return found, path


def refuse_odd(files: fs.FileSystem, path: str, below: str | None = None) -> None:
    """Refuse a local file that is none: a pipe would keep who opens it waiting.

    Parameters
    ----------
    path : may not be there
    below : a folder that names the file, and lets nobody out: there may be no link on the way

    Raises
    ------
    UserError
        It is a pipe, a device or a folder, or there is a link.
    """
    if files.type_name != "local":
        return
    if below is not None:
        refuse_links(path, below)
    if Path(path).exists() and not Path(path).is_file():
        raise UserError(f"{path} is no plain file: remove it, or name another")


def first_line(error: BaseException) -> str:
    """Return what PyArrow says of an error, without what it adds for programmers."""
    return (str(error).splitlines() or [type(error).__name__])[0].partition(". Detail: ")[0]
