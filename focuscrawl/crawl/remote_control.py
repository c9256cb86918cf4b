"""What people ask of a crawl while it runs: a file in its folder, which the crawl looks at."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.locks import changing
from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LONGEST = 4096  # bytes of a file that asks for something


class Command(StrEnum):
    """What a crawl is asked to do."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class FileControl:
    """Passes on what people want of the crawl in `folder`, whether it runs or not.

    A pause holds until it is taken back, also over a restart. A stop is for the run that sees it,
    and so is another budget.

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
            return Command(self._asked()["wanted"])
        except (ValueError, LookupError, TypeError):
            return Command.RUN

    @property
    def budget(self) -> int | None:
        """Another budget that is asked for, 0 for no limit; None: none is."""
        budget = self._asked().get("budget")
        if isinstance(budget, bool) or not isinstance(budget, int):
            return None
        return budget if budget >= 0 else None

    def ask(self, wanted: Command) -> None:
        """Ask the crawl for something; the file changes as a whole.

        Raises
        ------
        UserError
            The folder cannot be written.
        """
        with self._changing():
            self._write(wanted, self.budget)

    def extend(self, budget: int) -> None:
        """Give the crawl that runs another budget, 0 for none; raises as `ask` does."""
        with self._changing():
            self._write(self.wanted, budget)

    def obeyed(self, wanted: Command) -> None:
        """Take back a request that was for one run only, if nothing else was asked since."""
        if wanted is Command.STOP and self.wanted is Command.STOP:
            with self._changing():
                if self.wanted is Command.STOP:
                    self._path.unlink(missing_ok=True)

    def extended(self, budget: int) -> None:
        """Take back a budget, if no other was asked for since."""
        with self._changing():
            if self.budget == budget:
                self._write(self.wanted, None)

    def _asked(self) -> dict[str, Any]:
        try:
            with open(self._path, "rb", opener=open_plain) as file:
                said = json.loads(file.read(_LONGEST))
        except (OSError, UserError, ValueError, RecursionError):
            return {}
        return said if isinstance(said, dict) else {}

    def _write(self, wanted: Command, budget: int | None) -> None:
        if wanted is Command.RUN and budget is None:
            self._path.unlink(missing_ok=True)
            return
        at = datetime.now(UTC).isoformat(timespec="seconds")
        asked: dict[str, Any] = {"wanted": wanted, "at": at}
        if budget is not None:
            asked["budget"] = budget
        write_whole(self._path, json.dumps(asked) + "\n")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with changing(self._path):
                yield
        except OSError as error:
            raise UserError(
                f"{self._path} cannot be written ({error.strerror}): do it as the user who crawls"
            ) from None
