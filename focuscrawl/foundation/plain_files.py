"""Files in folders that somebody else may have made: nothing there leads elsewhere.

A link in the folder of a stranger's crawl may point to any file of the user's, and a pipe there
keeps who opens it waiting for ever. What the user names is another matter: links are followed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from focuscrawl.errors import UserError


def open_plain(name: str, flags: int) -> int:
    """Open a file that is a file: an opener for `open` and its like.

    Raises
    ------
    UserError
        It is a link or a pipe, or something else that is none.
    """
    refuse_link(name)
    handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UserError(f"{name} is no plain file: remove it")
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


def refuse_link(path: str | Path) -> None:
    """Raise `UserError` if `path` itself is a symbolic link; it need not exist."""
    if os.path.islink(path):  # noqa: PTH114 - either kind of path
        leads = os.readlink(path)  # noqa: PTH115
        raise UserError(f"{path} is a link to {leads}: no link is followed there, remove it")
