"""Files in folders that somebody else may have made: nothing there leads elsewhere.

A link in the folder of a stranger's crawl may point to any file of the user's, and a pipe there
keeps who opens it waiting for ever. What the user names is another matter: links are followed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_LARGEST = 2 << 30  # bytes of a file that is read whole


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
