"""What people ask of a crawl while it runs: a file in its folder, which the crawl looks at."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


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
            said = json.loads(self._path.read_bytes())
            return Command(said["wanted"])
        except (OSError, ValueError, LookupError, TypeError):
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
            text = json.dumps({"wanted": wanted, "at": at})
            handle, draft = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self.FILE}.")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
            os.replace(draft, self._path)  # noqa: PTH105 - both are in one folder
        except OSError as error:
            raise UserError(
                f"{self._path} cannot be written ({error.strerror}): do it as the user who crawls"
            ) from None

    def obeyed(self, wanted: Command) -> None:
        """Take back a request that was for one run only, if nothing else was asked since."""
        if wanted is Command.STOP and self.wanted is Command.STOP:
            self._path.unlink(missing_ok=True)
