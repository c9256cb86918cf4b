"""Reads the records of WARC files, uncompressed or with one gzip member for each record.

A WARC file may be truncated (killed crawl, full disk) or come from an untrusted person. Unlike
warcio and FastWARC, the class `WarcScan` finds every complete record and reports the unreadable
bytes. `WarcScan` keeps no more bytes of a record than the size limit of a crawl, and limits the
time spent on damaged sections.
"""

from __future__ import annotations

import io
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL_LENGTH
from focuscrawl.webs.web_protocol import MAX_BLOCK_BYTES

T = TypeVar("T")

logger = logging.getLogger(__name__)

_END = b"\r\n\r\n"
_MAX_HEAD_BYTES = 1 << 16  # real heads are shorter; limits reading of garbage
#: bytes of a record that are read: one more than allowed
MAX_RECORD_BYTES = _MAX_HEAD_BYTES + MAX_BLOCK_BYTES + len(_END) + 1

_MAGIC = b"\x1f\x8b\x08"  # of a gzip member
_MARKS = (b"WARC/", b"warc/")  # of a record
_WBITS = 31  # gzip, for zlib
_GZIP_START = re.compile(re.escape(_MAGIC))
_PLAIN_START = re.compile(rb"WARC/[01]\.\d{1,2}\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEAD_STOP = re.compile(rb"\n(?:[^\S\n]*\n|(?=WARC/[01]\.\d{1,2}\r?\n))")  # or the next head
# fields of a head; some writers omit one, and a page that quotes a WARC file more
_MANDATORY = ({"warc-type", "warc-record-id"}, {"warc-type", "warc-date", "content-length"})
_MAX_LINES = 1000  # of a head
_MAX_DIGITS = 12  # of a length, which is below a terabyte

_CHUNK = 1 << 16
_FIRST_STEP = 1 << 12
_EMPTY_MEMBER = 64  # largest gzip member without content, in bytes
_OVERLAP = 32  # longer than any match of the search patterns

# Limits of the bytes read in vain while searching a damaged section for a record: a constant, and
# bytes for each byte of the file up to the position. An attempt counts as a kilobyte at least.
_MAX_WASTED = 1 << 28
_WASTED_A_BYTE = 256
_MIN_ATTEMPT = 1 << 10


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a WARC file.

    Attributes
    ----------
    offset, length : int
        Position and size in the file in bytes (compressed, if the file is).
    headers : dict of str to str
        Header fields of the record with names in lower case; the first of repeated fields.
    block : bytes
        Content, at most `MAX_BLOCK_BYTES`; of a response the HTTP head and the body as sent.
    too_large : bool
        Whether the content is larger.
    """

    offset: int
    length: int
    headers: dict[str, str]
    block: bytes
    too_large: bool = False

    @property
    def type(self) -> str:
        """The WARC-Type of the record in lower case."""
        return self.headers.get("warc-type", "").lower()

    @property
    def target(self) -> str:
        """The WARC-Target-URI of the record, without the brackets that some programs add."""
        return self.headers.get("warc-target-uri", "").removeprefix("<").removesuffix(">")

    @property
    def refers_to(self) -> str:
        """The WARC-Target-URI of the original of a revisit record."""
        target = self.headers.get("warc-refers-to-target-uri", self.target)
        return target.removeprefix("<").removesuffix(">")

    def fields(self, *names: str) -> tuple[str, ...]:
        """Return the values of the given header fields, without empty and overlong values."""
        values = (self.headers.get(name, "") for name in names)
        return tuple(value for value in values if 0 < len(value) <= MAX_URL_LENGTH)


class WarcScan:
    """Iterates once over the complete records of a WARC file.

    Attributes
    ----------
    gzipped : bool
        Whether each record is a gzip member.
    records : int
        Complete records read so far.
    end : int
        Offset of the end of the last record.
    truncated_at : int or None
        Offset from which on nothing is readable; None if the file ends with a complete record.
    damaged : int
        Unreadable sections inside the file, which were skipped.

    Raises
    ------
    UserError
        The file is empty or does not start like a WARC file.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        file.seek(0)
        start = file.read(len(_MAGIC) + 2)
        if not start:
            raise UserError(f"{path} is empty: name a .warc or .warc.gz file")
        self.gzipped = start.startswith(_MAGIC)
        if not self.gzipped and not start.startswith(_MARKS):
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
        record = self._read_at(at)
        if record is None:
            after = self._skip_empty(at)
            record, at = (self._read_at(after) if after > at else None), after
        if record is not None or self._at_end(at):
            return record
        pattern = _GZIP_START if self.gzipped else _PLAIN_START
        start = _find(self._file, at + 1, pattern)
        while start is not None and self._wasted <= _MAX_WASTED + _WASTED_A_BYTE * start:
            record = self._read_at(start)
            if record is not None:
                self.damaged += 1
                return record
            start = _find(self._file, start + 1, pattern)
        self.truncated_at = at
        return None

    def _read_at(self, at: int) -> Record | None:
        try:
            record = (_read_member if self.gzipped else _read_plain)(self._file, at)
        except _SharedMemberError:
            raise UserError(
                f"{self._path} is compressed as one stream, not record by record: run "
                f"`warcio recompress {self._path} NEW.warc.gz` and name the new file"
            ) from None
        if isinstance(record, int):
            self._wasted += max(record, _MIN_ATTEMPT)
            return None
        return record

    def _skip_empty(self, at: int) -> int:
        """Return the offset after empty lines or empty gzip members."""
        if self.gzipped:
            while (end := _end_of_empty_member(self._file, at)) is not None:
                at = end
            return at
        self._file.seek(at)
        while self._file.read(1) in {b"\r", b"\n"}:
            at += 1
        return at

    def _at_end(self, at: int) -> bool:
        self._file.seek(at)
        return not self._file.read(1)


def warn_of_damage(
    path: Path, size: int, records: int, truncated_at: int | None, damaged: int
) -> None:
    """Log a warning about the unreadable parts of a WARC file of `size` bytes."""
    if truncated_at is not None:
        logger.warning(
            "%s is truncated or damaged at byte %d of %d: using its %d complete records",
            path, truncated_at, size, records,
        )  # fmt: skip
    if damaged:
        logger.warning("%s: skipped %d unreadable sections", path, damaged)


def read_record(data: bytes, offset: int) -> Record | None:
    """Parse the bytes of one WARC record; return None if the record is not complete.

    Parameters
    ----------
    data : bytes
        The bytes from `Record.offset` on; the first `MAX_RECORD_BYTES` are enough.
    """
    whole = True
    if data.startswith(_MAGIC):
        unzip = zlib.decompressobj(_WBITS)
        size = len(data)
        try:
            data = unzip.decompress(data, MAX_RECORD_BYTES)
        except zlib.error:
            return None
        whole = unzip.eof or size >= MAX_RECORD_BYTES or len(data) >= MAX_RECORD_BYTES
    return _parse_record(data, offset, len(data)) if whole else None


def read_timestamp(date: str) -> str:
    """Return the date of a WARC record in UTC as YYYYMMDDhhmmss; empty if missing or invalid."""
    try:
        at = datetime.fromisoformat(date.upper())
        at = at.astimezone(UTC) if at.tzinfo is not None else at
    except (ValueError, OverflowError):
        return ""
    return at.strftime("%Y%m%d%H%M%S").zfill(14)


def content_length(headers: dict[str, str]) -> int | None:
    """Return the Content-Length of a WARC record; None if missing or invalid."""
    value = headers.get("content-length", "")
    if len(value) > _MAX_DIGITS or not (value.isascii() and value.isdigit()):
        return None
    return int(value)


def read_get_responses(records: Iterable[Record], read: Callable[[Record], T | None]) -> list[T]:
    """Apply `read` to all WARC records except requests; return the results that are not None.

    Responses to requests with methods other than GET are skipped, because the URL alone does not
    identify such a request.
    """
    found: list[tuple[T, tuple[str, ...]]] = []  # with the record ids of the exchange
    not_get: set[str] = set()
    for record in records:
        exchange = record.fields("warc-record-id", "warc-concurrent-to")
        if record.type == "request":
            if not record.block.startswith(b"GET "):
                not_get.update(exchange)
        elif (each := read(record)) is not None:
            found.append((each, exchange))
    return [each for each, exchange in found if not_get.isdisjoint(exchange)]


def _parse_record(data: bytes, offset: int, length: int) -> Record | None:
    """Parse a record, unpacked; of a large one the first `MAX_RECORD_BYTES` bytes."""
    head = _parse_head(data)
    if head is None:
        return None
    headers, start = head
    size = content_length(headers)
    if size is None or size > len(data) - start or data[start + size :].strip(b"\r\n"):
        block = data[start:].removesuffix(_END)  # the length is missing or wrong
    else:
        block = data[start : start + size]
    return Record(offset, length, headers, block[:MAX_BLOCK_BYTES], len(block) > MAX_BLOCK_BYTES)


def _parse_head(data: bytes) -> tuple[dict[str, str], int] | None:
    """Return the header fields and the offset of the block; None if `data` is no record."""
    if not data.startswith(_MARKS):
        return None
    end = _HEAD_END.search(data, 0, _MAX_HEAD_BYTES)
    if end is None or _PLAIN_START.search(data, 1, end.start()):
        return None  # truncated, maybe followed by the head of the next record
    if data.count(b"\n", 0, end.start()) > _MAX_LINES:
        return None
    fields: dict[str, list[str]] = {}  # lines of each folded value
    lines: list[str] = []
    for line in data[: end.start()].decode("utf-8", "replace").split("\n")[1:]:
        if line[:1] in {" ", "\t"} and lines:
            lines.append(line.strip())
            continue
        name, _, value = line.partition(":")
        lines = [value.strip()]
        fields.setdefault(name.strip().lower(), lines)
    if not any(fields.keys() >= each for each in _MANDATORY):
        return None
    return {name: " ".join(lines).lstrip() for name, lines in fields.items()}, end.end()


class _SharedMemberError(Exception):
    """A gzip member contains several records, or only a part of a record."""


def _read_plain(file: BinaryIO, at: int) -> Record | int:
    """Read the record at `at`; return the number of bytes read if there is no record."""
    parsed = _head_at(file, at)
    if isinstance(parsed, int):
        return parsed
    headers, head = parsed
    start = at + head
    size = content_length(headers)
    if size is not None:
        tail = _separator(file, start + size)
        if tail is not None:
            file.seek(start)
            block = file.read(min(size, MAX_BLOCK_BYTES))
            length = head + size + len(tail)
            return Record(at, length, headers, block, size > MAX_BLOCK_BYTES)
    # The length is missing or wrong, or the record is truncated: search for the next record.
    following = _find(file, start, _PLAIN_START)
    while following is not None and isinstance(_head_at(file, following), int):
        following = _find(file, following + 1, _PLAIN_START)
    end = file.seek(0, io.SEEK_END) if following is None else following
    length = end - at
    file.seek(max(start, end - len(_END)))
    may_be_cut = following is None or (size is not None and size > length - head)
    if may_be_cut and file.read(len(_END)) != _END:
        return length  # an incomplete record, maybe followed by records of a later run
    file.seek(at)
    return _parse_record(file.read(min(length, MAX_RECORD_BYTES)), at, length) or length


def _head_at(file: BinaryIO, at: int) -> tuple[dict[str, str], int] | int:
    """Return header fields and head size; the number of bytes read if there is no head."""
    file.seek(at)
    head = file.read(_FIRST_STEP)
    if not head.startswith(_MARKS):
        return 0
    stop = _HEAD_STOP.search(head)
    if stop is None:
        head += file.read(_MAX_HEAD_BYTES - len(head))
        stop = _HEAD_STOP.search(head)
    if stop is None:
        return len(head)
    return _parse_head(head[: stop.end()]) or stop.end()


def _separator(file: BinaryIO, end: int) -> bytes | None:
    """Return the empty lines after a block; None if the block does not end at `end`."""
    file.seek(end - 1)
    tail = file.read(1 + len(_END))
    if not tail:
        return None  # the file ends before the block
    tail = tail[1:]
    at_end = len(tail) < len(_END) and not tail.strip(b"\r\n")
    return tail if tail == _END or at_end else None


def _read_member(file: BinaryIO, at: int) -> Record | int:
    """Read the record in the gzip member at `at`; return the wasted bytes if there is none."""
    file.seek(at)
    unzip = zlib.decompressobj(_WBITS)
    data = bytearray()  # the first `MAX_RECORD_BYTES` bytes
    size = 0
    step = _FIRST_STEP  # most members are small, and bytes after the member are read again
    record_end: int | None = None
    part = b""
    while not unzip.eof:
        chunk = unzip.unconsumed_tail or file.read(step)
        step = min(2 * step, _CHUNK)
        if not chunk and len(part) < _CHUNK:  # and no more output of the bytes read
            return size
        try:
            part = unzip.decompress(chunk, _CHUNK)
        except zlib.error:
            return size
        size += len(part)
        data += part[: MAX_RECORD_BYTES - len(data)]
        if record_end is None:
            head = _parse_head(bytes(data[:_MAX_HEAD_BYTES]))
            if head is not None:
                record_end = head[1] + (content_length(head[0]) or 0)
            elif len(data) > _MAX_HEAD_BYTES or not data.startswith(_MARKS):
                return size + len(chunk)  # more bytes cannot make this a record
        if record_end is not None and data.startswith(_MARKS, record_end + len(_END)):
            raise _SharedMemberError
    end = file.tell() - len(unzip.unused_data)
    if record_end is not None and size < record_end and _continues_record(file, end):
        raise _SharedMemberError
    return _parse_record(bytes(data), at, end - at) or size


def _continues_record(file: BinaryIO, at: int) -> bool:
    """Return whether a gzip member at `at` has content that starts no record."""
    file.seek(at)
    try:
        start = zlib.decompressobj(_WBITS).decompress(file.read(_FIRST_STEP), len(_MARKS[0]))
    except zlib.error:
        return False
    return start != b"" and not start.startswith(_MARKS)


def _end_of_empty_member(file: BinaryIO, at: int) -> int | None:
    """Return the end of an empty gzip member at `at`; None if it is not empty."""
    file.seek(at)
    unzip = zlib.decompressobj(_WBITS)
    chunk = file.read(_EMPTY_MEMBER)
    try:
        if unzip.decompress(chunk, 1) or not unzip.eof:
            return None
    except zlib.error:
        return None
    return at + len(chunk) - len(unzip.unused_data)


def _find(file: BinaryIO, start: int, pattern: re.Pattern[bytes]) -> int | None:
    """Return the offset of the first match from `start` on."""
    file.seek(start)
    at = start
    data = b""
    step = _FIRST_STEP
    while more := file.read(step):
        step = min(2 * step, _CHUNK)
        data += more
        match = pattern.search(data)
        if match:
            return at + match.start()
        at += max(len(data) - _OVERLAP, 0)
        data = data[-_OVERLAP:]
    return None
