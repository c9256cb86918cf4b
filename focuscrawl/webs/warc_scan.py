"""The frame of a WARC file: where its records start and end, plain or one gzip member each.

Written here rather than left to `warcio` because a recording may be cut anywhere (a killed
crawl, a full disk): every whole record must be found, and how much was lost must be said.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, BinaryIO

from focuscrawl.errors import UserError
from focuscrawl.webs.warc import PLAIN_START, Record
from focuscrawl.webs.warc_frames import (
    OneStreamError,
    end_of_empty_member,
    find,
    read_member,
    read_plain,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)

_GZIP = b"\x1f\x8b\x08"
_GZIP_START = re.compile(re.escape(_GZIP))
# What a search of a damaged stretch may read of places where no record starts, after all: so
# many bytes, and so many for each byte of the file up to there. A try costs at least as much
# as a kilobyte.
_MOST_WASTED = 1 << 28
_WASTED_A_BYTE = 256
_TRY = 1 << 10


def warn_of_damage(
    path: Path, size: int, records: int, truncated_at: int | None, damaged: int
) -> None:
    """Say in the log what of a WARC file of `size` bytes could not be read; as `Scan` has it."""
    if truncated_at is not None:
        logger.warning(
            "%s is cut or damaged at byte %d of %d: its %d whole records are used",
            path, truncated_at, size, records,
        )  # fmt: skip
    if damaged:
        logger.warning("%s: %d unreadable stretches are left out", path, damaged)


class Scan:
    """Iterates once over the whole records of a WARC file.

    Attributes
    ----------
    gzipped : whether each record is a gzip member
    records : whole records met so far
    end : offset behind the last of them
    truncated_at : offset of the first byte that nothing could be read from up to the end of
        the file; None if the file ends with a whole record
    damaged : stretches *inside* the file that could not be read, and were stepped over

    Raises
    ------
    UserError
        If the file is empty, or does not start as a WARC file does.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        file.seek(0)
        start = file.read(len(_GZIP) + 2)
        if not start:
            raise UserError(f"{path} is empty: it is no recorded web")
        self.gzipped = start.startswith(_GZIP)
        if not self.gzipped and start != b"WARC/":
            raise UserError(f"{path} is not a WARC file: name a .warc or .warc.gz file")
        self.records = 0
        self.end = 0
        self.truncated_at: int | None = None
        self.damaged = 0
        self._wasted = 0

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in the order of the file."""
        while (record := self._next(self.end)) is not None:
            self.records += 1
            self.end = record.offset + record.length
            yield record

    def _next(self, at: int) -> Record | None:
        record = self._try(at)
        if record is None:
            after = self._skip_nothing(at)
            record, at = (self._try(after) if after > at else None), after
        if record is not None or self._at_end(at):
            return record
        pattern = _GZIP_START if self.gzipped else PLAIN_START
        start = find(self._file, at + 1, pattern)
        while start is not None and self._wasted <= _MOST_WASTED + _WASTED_A_BYTE * start:
            record = self._try(start)
            if record is not None:
                self.damaged += 1
                return record
            start = find(self._file, start + 1, pattern)
        self.truncated_at = at
        return None

    def _try(self, at: int) -> Record | None:
        try:
            record = (read_member if self.gzipped else read_plain)(self._file, at)
        except OneStreamError:
            raise UserError(
                f"{self._path} is compressed as one stream, not record by record: "
                f"run `warcio recompress {self._path} NEW.warc.gz` and use that"
            ) from None
        if isinstance(record, int):
            self._wasted += max(record, _TRY)
            return None
        return record

    def _skip_nothing(self, at: int) -> int:
        """Return where empty lines end, or empty gzip members."""
        if self.gzipped:
            while (end := end_of_empty_member(self._file, at)) is not None:
                at = end
            return at
        self._file.seek(at)
        while self._file.read(1) in {b"\r", b"\n"}:
            at += 1
        return at

    def _at_end(self, at: int) -> bool:
        self._file.seek(at)
        return not self._file.read(1)
