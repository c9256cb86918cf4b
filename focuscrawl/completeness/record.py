"""The estimates of a crawl, kept in its folder as a table that people and programs read."""

from __future__ import annotations

import csv
import io
import logging
from dataclasses import asdict, fields
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from focuscrawl.completeness.estimate import Estimate
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.plain_files import open_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

logger = logging.getLogger(__name__)

FILE = "completeness.csv"

_READ: dict[str, Callable[[str], Any]] = {
    each.name: float if each.type == "float" else int for each in fields(Estimate)
}
_COLUMNS = [*_READ, "recall", "low", "high"]  # these follow from the others
_LONGEST = 10_000_000  # characters read of a file


class EstimateRecord:
    """Writes the estimates of one crawl down, each as it is made.

    Parameters
    ----------
    path : of the table; what it has of earlier runs is kept
    fetched : what it has of later fetches is dropped: the store does not know of them

    Attributes
    ----------
    latest : the last estimate; None before the first
    """

    def __init__(self, path: Path, fetched: int) -> None:
        self._path = path
        self._failed = False
        found, whole = _read(path)
        kept = [*takewhile(lambda estimate: estimate.fetched <= fetched, found)]
        self.latest = kept[-1] if kept else None
        if len(kept) < len(found) or not whole:
            self._write(kept, anew=True)

    def add(self, estimate: Estimate) -> None:
        """Write an estimate down. A disk that is full keeps no crawl from going on."""
        anew, self.latest = self.latest is None, estimate
        self._write([estimate], anew=anew)

    def _write(self, estimates: Iterable[Estimate], *, anew: bool) -> None:
        text = io.StringIO(newline="")
        rows = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        if anew:
            rows.writeheader()
        for each in estimates:
            low, high = each.interval
            rows.writerow({**asdict(each), "recall": each.recall, "low": low, "high": high})
        try:
            if anew:
                write_whole(self._path, text.getvalue())
            else:
                with open(self._path, "a", encoding="utf-8", opener=open_plain) as file:
                    file.write(text.getvalue())
        except OSError as error:
            if not self._failed:
                logger.warning("%s cannot be written: %s", self._path, error.strerror)
            self._failed = True


def read_estimates(path: Path) -> list[Estimate]:
    """Return the estimates in a table, in the order they were made.

    A line that is none ends it: the crawl was killed while it wrote.

    Raises
    ------
    UserError
        There is something else than a plain file.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Estimate], bool]:
    """Return the same, and whether that is all there is in the file."""
    try:
        with open(path, encoding="utf-8", errors="replace", opener=open_plain) as file:
            text = file.read(_LONGEST)
    except FileNotFoundError:
        return [], True
    whole = text.endswith("\n")  # else the last line may be the beginning of one
    text = text[: text.rfind("\n") + 1]
    found: list[Estimate] = []
    try:
        for row in csv.DictReader(io.StringIO(text, newline="")):
            found.append(Estimate(**{name: of(row[name]) for name, of in _READ.items()}))  # noqa: PERF401 - up to the first that is none
    except (csv.Error, KeyError, TypeError, ValueError):
        whole = False
    return found, whole
