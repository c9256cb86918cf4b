"""What people ask of a crawl while it runs: a file in its folder, which the crawl looks at."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 4096  # bytes of a file that asks for something


class Command(StrEnum):
    """What a crawl is asked to do."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class RemoteControl(Protocol):
    """What people ask of a crawl, as the crawl sees it.

    Attributes
    ----------
    name : what people call the crawl
    every : seconds between two looks
    """

    name: str
    every: float

    @property
    def wanted(self) -> Command:
        """What is asked at the moment."""
        ...

    def obeyed(self, wanted: Command) -> None:
        """Take note that what was asked is done."""
        ...


class FileControl:
    """Passes on what people want of the crawl in `folder`, whether it runs or not.

    A pause holds until it is taken back, also over a restart. A stop is for the run that sees it.

    Attributes
    ----------
    name : what people call the crawl
    """

    FILE = "control.json"
    every = 0.5  #: seconds between two looks

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._path = folder / self.FILE

    @property
    def wanted(self) -> Command:
        """What is asked at the moment; a file that nobody understands asks nothing."""
        try:
            with open(self._path, "rb", opener=open_plain) as file:
                said = json.loads(file.read(_LONGEST))
            return Command(said["wanted"])
        except (OSError, UserError, ValueError, LookupError, TypeError, RecursionError):
            return Command.RUN

    def ask(self, wanted: Command) -> None:
        """Ask the crawl for something; the file changes as a whole.

        Raises
        ------
        UserError
            The folder cannot be written.
        """
        try:
            if wanted is Command.RUN:
                self._path.unlink(missing_ok=True)
                return
            at = datetime.now(UTC).isoformat(timespec="seconds")
            write_whole(self._path, json.dumps({"wanted": wanted, "at": at}) + "\n")
        except OSError as error:
            raise UserError(
                f"{self._path} cannot be written ({error.strerror}): do it as the user who crawls"
            ) from None

    def obeyed(self, wanted: Command) -> None:
        """Take back a request that was for one run only, if nothing else was asked since."""
        if wanted is Command.STOP and self.wanted is Command.STOP:
            self._path.unlink(missing_ok=True)
