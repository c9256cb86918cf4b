"""Changing definitions of topics: two tabs take nothing from each other."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.topics import TopicDefinition, read_definition, write_definition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TRIES = 5

_locks: defaultdict[Path, Lock] = defaultdict(Lock)


def edit_definition(
    path: Path,
    change: Callable[[TopicDefinition], TopicDefinition],
    begin: Callable[[], TopicDefinition] | None = None,
) -> TopicDefinition:
    """Read a definition, change it and write it whole; nobody else here does so meanwhile.

    Where the file has changed since it was read, by an editor or a command, the change is made to
    what is there then.

    Parameters
    ----------
    path : of the file
    change : what is done to the definition; called again where it has to be done again
    begin : makes the definition where there is no file yet; None: there has to be one

    Returns
    -------
    The definition as written

    Raises
    ------
    UserError
        It cannot be read or written, or changes all the time.
    """
    with _locks[path]:
        for _ in range(_TRIES):
            before = _content(path)
            if before is None and begin is not None:
                made = change(begin())
            else:
                made = change(read_definition(path))
            if _content(path) == before:
                write_definition(made, path)
                return made
    raise UserError(f"{path} changes all the time: close what writes it, and do this again")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
