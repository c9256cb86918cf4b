"""The token of a folder's studio: the same after a restart, so that open tabs go on."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

import platformdirs

from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.locks import changing
from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from pathlib import Path

_BYTES = 32
_FORM = re.compile(r"[\w-]{43}", re.ASCII)


def token_of(root: Path) -> str:
    """Return the token for the studio of `root`; whoever knows it may use that.

    It is kept with what belongs to the user, readable by nobody else, and not in `root`, which
    somebody else may have made. Where it cannot be kept it is another one each time.
    """
    name = sha256(os.fsencode(root)).hexdigest()[:32]
    path = platformdirs.user_state_path("focuscrawl") / "studio" / name
    before = os.umask(0o077)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with changing(path):  # another studio of the folder may begin, too
            token = _kept(path)
            if token is None:
                token = secrets.token_urlsafe(_BYTES)
                write_whole(path, token + "\n")
        return token
    except (OSError, UserError):
        return _kept(path) or secrets.token_urlsafe(_BYTES)
    finally:
        os.umask(before)


def _kept(path: Path) -> str | None:
    with suppress(OSError, ValueError, UserError):
        with open(path, encoding="ascii", opener=open_plain) as file:
            kept = file.read(2 * _BYTES).strip()
            private = os.fstat(file.fileno()).st_mode & 0o077 == 0
        if private and _FORM.fullmatch(kept):
            return kept
    return None
