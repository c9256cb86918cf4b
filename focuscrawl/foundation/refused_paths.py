"""What the file system refuses, as an error that the user can put right."""

from __future__ import annotations

import errno

from focuscrawl.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_OF_A_PATH = (
    *(errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR),
)


def as_user_error(error: OSError) -> UserError | None:
    """Return what the user is told of `error`; None: it is nothing that a user can put right."""
    where = "" if error.filename is None else f"{error.filename}: "
    if error.errno in _FULL:
        return UserError(f"{where}the disk is full: make room")
    if error.errno in _OF_A_PATH and where:
        why = str(error.strerror).lower()
        return UserError(f"{where}{why}: name another path, or have this one made usable")
    return None
