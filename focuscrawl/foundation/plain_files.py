"""Files in folders that somebody else may have made: nothing there leads elsewhere.

A link in the folder of a stranger's crawl may point to any file of the user's, and a pipe there
keeps who opens it waiting for ever. What the user names is another matter: links are followed.
"""

from __future__ import annotations

import os
import stat
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


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


def refuse_link(path: str | Path) -> None:
    """Raise `UserError` if `path` itself is a symbolic link; it need not exist."""
    if os.path.islink(path):  # noqa: PTH114 - either kind of path
        leads = os.readlink(path)  # noqa: PTH115
        raise UserError(f"{path} is a link to {leads}: no link is followed there, remove it")


def has_link(folder: str, name: str) -> bool:
    """Tell whether `name`, of a file below `folder`, is a link, or leads through one."""
    places = accumulate(name.split("/"), "{}/{}".format, initial=folder)
    return any(map(os.path.islink, islice(places, 1, None)))
