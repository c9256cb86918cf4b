"""The frame of a WARC file: where its records start and end, plain or one gzip member each.

Written here rather than left to `warcio` because a recording may be cut anywhere (a killed
crawl, a full disk): every whole record must be found, and how much was lost must be said.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_GZIP = b"\x1f\x8b\x08"
_GZIP_WBITS = 31
_CHUNK = 1 << 16
_FIRST_STEP = 1 << 12
_MAX_HEAD = 1 << 16  # no sane record has a longer one; garbage must not be read to its end
_END = b"\r\n\r\n"
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_PLAIN_START = re.compile(rb"WARC/[01]\.\d{1,2}\r?\n")
_GZIP_START = re.compile(re.escape(_GZIP))
_MANDATORY = {"warc-type", "warc-record-id"}  # a page may quote a WARC file, but hardly so well
_OVERLAP = 32  # longer than any match of the two patterns above


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a WARC file.

    Attributes
    ----------
    offset, length : the bytes it takes in the file (compressed, where the file is)
    headers : its own header fields, names in lower case; the first of equal names
    block : what it holds: for a response the HTTP head and the body as sent
    """

    offset: int
    length: int
    headers: dict[str, str]
    block: bytes

    @property
    def type(self) -> str:
        """The record's WARC-Type."""
        return self.headers.get("warc-type", "")

    @property
    def target(self) -> str:
        """Its WARC-Target-URI, without the brackets that some writers put around it."""
        return self.headers.get("warc-target-uri", "").removeprefix("<").removesuffix(">")


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

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in the order of the file."""
        read = _read_member if self.gzipped else _read_plain
        while (record := self._next(read, self.end)) is not None:
            self.records += 1
            self.end = record.offset + record.length
            yield record

    def _next(self, read: Callable[[BinaryIO, int], Record | None], at: int) -> Record | None:
        if not self.gzipped:
            at = self._skip_newlines(at)
        record = self._try(read, at)
        if record is not None or self._at_end(at):
            return record
        pattern = _GZIP_START if self.gzipped else _PLAIN_START
        start = _find(self._file, at + 1, pattern)
        while start is not None:
            record = self._try(read, start)
            if record is not None:
                self.damaged += 1
                return record
            start = _find(self._file, start + 1, pattern)
        self.truncated_at = at
        return None

    def _try(self, read: Callable[[BinaryIO, int], Record | None], at: int) -> Record | None:
        try:
            return read(self._file, at)
        except _OneStreamError:
            raise UserError(
                f"{self._path} is compressed as one stream, not record by record: "
                f"run `warcio recompress {self._path} NEW.warc.gz` and use that"
            ) from None

    def _skip_newlines(self, at: int) -> int:
        self._file.seek(at)
        while self._file.read(1) in {b"\r", b"\n"}:
            at += 1
        return at

    def _at_end(self, at: int) -> bool:
        self._file.seek(at)
        return not self._file.read(1)


def read_record(data: bytes, offset: int, gzipped: bool) -> Record | None:
    """Parse the bytes of one record, as `Record.offset` and `Record.length` frame them.

    Returns None if they are not a whole record, which means that the file has changed.
    """
    if gzipped:
        try:
            data = zlib.decompress(data, _GZIP_WBITS)
        except zlib.error:
            return None
    head = _parse_head(data)
    if head is None:
        return None
    headers, start = head
    size = _content_length(headers)
    if size is None or size > len(data) - start or data[start + size :].strip(b"\r\n"):
        block = data[start:].removesuffix(_END)  # the length is missing or wrong
    else:
        block = data[start : start + size]
    return Record(offset, len(data), headers, block)


class _OneStreamError(Exception):
    """A gzip member holds several records."""


def _read_plain(file: BinaryIO, at: int) -> Record | None:
    """Read the record that starts at `at`; None if there is no whole one."""
    parsed = _head_at(file, at)
    if parsed is None:
        return None
    headers, head = parsed
    start = at + head
    size = _content_length(headers)
    if size is not None:
        file.seek(start)
        block = file.read(size)
        tail = file.read(len(_END))
        at_end = len(tail) < len(_END) and not tail.strip(b"\r\n")
        if len(block) == size and (tail == _END or at_end):
            return Record(at, head + size + len(tail), headers, block)
    # The length is missing, wrong, or leads beyond a cut: the next record's start decides.
    following = _find(file, start, _PLAIN_START)
    while following is not None and _head_at(file, following) is None:
        following = _find(file, following + 1, _PLAIN_START)
    if following is None:
        return None
    file.seek(at)
    data = file.read(following - at)
    if size is not None and size > len(data) - head and not data[head:].endswith(_END):
        return None  # half a record, written on after by a later run
    return read_record(data, at, gzipped=False)


def _read_member(file: BinaryIO, at: int) -> Record | None:
    """Read the gzip member that starts at `at`; None if it is not whole, or no record."""
    file.seek(at)
    unzip = zlib.decompressobj(_GZIP_WBITS)
    data = bytearray()
    taken = 0
    step = _FIRST_STEP  # most members are small, and what is read beyond one is read again
    record_end: int | None = None
    while not unzip.eof:
        chunk = file.read(step)
        step = min(2 * step, _CHUNK)
        if not chunk:
            return None
        try:
            data += unzip.decompress(chunk)
        except zlib.error:
            return None
        taken += len(chunk) - len(unzip.unused_data)
        if record_end is None:
            record_end = _record_end(data)
            if record_end is None and len(data) > _MAX_HEAD:
                return None
        if record_end is not None and data.startswith(b"WARC/", record_end + len(_END)):
            raise _OneStreamError
    record = read_record(bytes(data), at, gzipped=False)
    if record is None:
        return None
    return Record(at, taken, record.headers, record.block)


def _record_end(data: bytearray) -> int | None:
    parsed = _parse_head(bytes(data[:_MAX_HEAD]))
    if parsed is None:
        return None
    headers, start = parsed
    return start + (_content_length(headers) or 0)


def _head_at(file: BinaryIO, at: int) -> tuple[dict[str, str], int] | None:
    file.seek(at)
    lines = []
    size = 0
    for line in file:
        lines.append(line)
        size += len(line)
        if not line.strip() or size > _MAX_HEAD:
            break
    return _parse_head(b"".join(lines))


def _parse_head(data: bytes) -> tuple[dict[str, str], int] | None:
    """Return the header fields and where the block starts; None if this is no record."""
    if not data.startswith(b"WARC/"):
        return None
    end = _HEAD_END.search(data, 0, _MAX_HEAD)
    if end is None or _PLAIN_START.search(data, 1, end.start()):
        return None  # cut, or cut and run together with the head of the next
    headers: dict[str, str] = {}
    name = ""
    for line in data[: end.start()].decode("utf-8", "replace").split("\n")[1:]:
        if line[:1] in {" ", "\t"} and name:
            headers[name] += " " + line.strip()
            continue
        name, _, value = line.partition(":")
        name = name.strip().lower()
        headers.setdefault(name, value.strip())
    return (headers, end.end()) if headers.keys() >= _MANDATORY else None


def _content_length(headers: dict[str, str]) -> int | None:
    value = headers.get("content-length", "")
    return int(value) if value.isascii() and value.isdigit() else None


def _find(file: BinaryIO, start: int, pattern: re.Pattern[bytes]) -> int | None:
    """Return the offset of the first match that starts at `start` or later."""
    file.seek(start)
    at = start
    data = b""
    while more := file.read(_CHUNK):
        data += more
        match = pattern.search(data)
        if match:
            return at + match.start()
        at += max(len(data) - _OVERLAP, 0)
        data = data[-_OVERLAP:]
    return None
