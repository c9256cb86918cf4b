"""WARC files: records, where they start and end, plain or one gzip member each.

A recording may be cut anywhere (a killed crawl, a full disk), or made by a stranger. So every
whole record is found and the log says how much was lost, which neither warcio nor FastWARC does.
Of a record no more is kept than a crawl takes in, and a damaged stretch is not read over and over.
"""

from __future__ import annotations

import io
import logging
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import MAX_URL_LENGTH
from focuscrawl.webs.web_protocol import MAX_BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

T = TypeVar("T")

logger = logging.getLogger(__name__)

_END = b"\r\n\r\n"
_LONGEST_HEAD = 1 << 16  # bytes; no sane record has more, and garbage must not be read to its end
#: bytes of a record that are looked at: one more than there may be
MAX_RECORD_BYTES = _LONGEST_HEAD + MAX_BLOCK_BYTES + len(_END) + 1

_MAGIC = b"\x1f\x8b\x08"  # of a gzip member
_WBITS = 31  # gzip, for zlib
_GZIP_START = re.compile(re.escape(_MAGIC))
_PLAIN_START = re.compile(rb"WARC/[01]\.\d{1,2}\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEAD_STOP = re.compile(rb"\n(?:[^\S\n]*\n|(?=WARC/[01]\.\d{1,2}\r?\n))")  # or the next head
_MANDATORY = {"warc-type", "warc-record-id"}  # a page may quote a WARC file, but hardly so well
_MOST_LINES = 1000  # of a head
_MOST_DIGITS = 12  # of a length; none is a terabyte

_CHUNK = 1 << 16
_FIRST_STEP = 1 << 12
_EMPTY = 64  # bytes that a gzip member without content may take
_OVERLAP = 32  # longer than a match of the patterns that are looked for

# What the search of a damaged stretch may read at places where no record starts, after all: so
# many bytes, and so many for each byte of the file up to there. A try costs at least as much
# as a kilobyte.
_MOST_WASTED = 1 << 28
_WASTED_A_BYTE = 256
_TRY = 1 << 10


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a WARC file.

    Attributes
    ----------
    offset, length : the bytes it takes in the file (compressed, where the file is)
    headers : its own header fields, names in lower case; the first of equal names
    block : what it holds: for a response the HTTP head and the body as sent. If there are more
        than `MAX_BLOCK_BYTES` bytes, the first so many
    too_large : there are more
    """

    offset: int
    length: int
    headers: dict[str, str]
    block: bytes
    too_large: bool = False

    @property
    def type(self) -> str:
        """The record's WARC-Type."""
        return self.headers.get("warc-type", "")

    @property
    def target(self) -> str:
        """Its WARC-Target-URI, without the brackets that some writers put around it."""
        return self.headers.get("warc-target-uri", "").removeprefix("<").removesuffix(">")

    @property
    def refers_to(self) -> str:
        """The WARC-Target-URI of the record that a revisit refers to."""
        target = self.headers.get("warc-refers-to-target-uri", self.target)
        return target.removeprefix("<").removesuffix(">")

    def fields(self, *names: str) -> tuple[str, ...]:
        """Return the values of some fields (in lower case), without empty and overlong ones."""
        values = (self.headers.get(name, "") for name in names)
        return tuple(value for value in values if 0 < len(value) <= MAX_URL_LENGTH)


class WarcScan:
    """Iterates once over the whole records of a WARC file.

    Attributes
    ----------
    gzipped : whether each record is a gzip member
    records : whole records met so far
    end : offset behind the last of them
    truncated_at : offset of the first byte that nothing could be read from up to the end of
        the file; None if the file ends with a whole record
    damaged : stretches *inside* the file that could not be read, and were skipped

    Raises
    ------
    UserError
        If the file is empty, or does not start as a WARC file does.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        file.seek(0)
        start = file.read(len(_MAGIC) + 2)
        if not start:
            raise UserError(f"{path} is empty: it is no recorded web")
        self.gzipped = start.startswith(_MAGIC)
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
        pattern = _GZIP_START if self.gzipped else _PLAIN_START
        start = _find(self._file, at + 1, pattern)
        while start is not None and self._wasted <= _MOST_WASTED + _WASTED_A_BYTE * start:
            record = self._try(start)
            if record is not None:
                self.damaged += 1
                return record
            start = _find(self._file, start + 1, pattern)
        self.truncated_at = at
        return None

    def _try(self, at: int) -> Record | None:
        try:
            record = (_read_member if self.gzipped else _read_plain)(self._file, at)
        except _OneStreamError:
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
    """Log what of a WARC file of `size` bytes could not be read; for the others see `WarcScan`."""
    if truncated_at is not None:
        logger.warning(
            "%s is cut or damaged at byte %d of %d: its %d whole records are used",
            path, truncated_at, size, records,
        )  # fmt: skip
    if damaged:
        logger.warning("%s: %d unreadable stretches are left out", path, damaged)


def read_record(data: bytes, offset: int, gzipped: bool) -> Record | None:
    """Parse the bytes of one record; None if they are not a complete record.

    Parameters
    ----------
    data : bytes
        The bytes from `Record.offset` on; the first `MAX_RECORD_BYTES` are enough.
    offset : int
    gzipped : bool
    """
    whole = True
    if gzipped:
        unzip = zlib.decompressobj(_WBITS)
        size = len(data)
        try:
            data = unzip.decompress(data, MAX_RECORD_BYTES)
        except zlib.error:
            return None
        whole = unzip.eof or size >= MAX_RECORD_BYTES or len(data) >= MAX_RECORD_BYTES
    return _parse_record(data, offset, len(data)) if whole else None


def content_length(headers: dict[str, str]) -> int | None:
    """Return the Content-Length of a record; None if it has none that could be."""
    value = headers.get("content-length", "")
    if len(value) > _MOST_DIGITS or not (value.isascii() and value.isdigit()):
        return None
    return int(value)


def read_get_responses(records: Iterable[Record], read: Callable[[Record], T | None]) -> list[T]:
    """Return what `read` makes of the records, in their order.

    Requests, and answers to those of another method than GET, are left out, as no URL
    alone leads to the answers.
    """
    found: list[tuple[T, tuple[str, ...]]] = []  # and the ids of its exchange
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
    """Return the header fields and where the block starts; None if this is no record."""
    if not data.startswith(b"WARC/"):
        return None
    end = _HEAD_END.search(data, 0, _LONGEST_HEAD)
    if end is None or _PLAIN_START.search(data, 1, end.start()):
        return None  # cut, or cut and run together with the head of the next
    if data.count(b"\n", 0, end.start()) > _MOST_LINES:
        return None
    fields: dict[str, list[str]] = {}  # each value as the lines that it is folded over
    lines: list[str] = []
    for line in data[: end.start()].decode("utf-8", "replace").split("\n")[1:]:
        if line[:1] in {" ", "\t"} and lines:
            lines.append(line.strip())
            continue
        name, _, value = line.partition(":")
        lines = [value.strip()]
        fields.setdefault(name.strip().lower(), lines)
    if not fields.keys() >= _MANDATORY:
        return None
    return {name: " ".join(lines) for name, lines in fields.items()}, end.end()


class _OneStreamError(Exception):
    """A gzip member holds several records."""


def _read_plain(file: BinaryIO, at: int) -> Record | int:
    """Read the record that starts at `at`; return how many bytes were read if there is none."""
    parsed = _head_at(file, at)
    if isinstance(parsed, int):
        return parsed
    headers, head = parsed
    start = at + head
    size = content_length(headers)
    if size is not None:
        tail = _behind(file, start + size)
        if tail is not None:
            file.seek(start)
            block = file.read(min(size, MAX_BLOCK_BYTES))
            length = head + size + len(tail)
            return Record(at, length, headers, block, size > MAX_BLOCK_BYTES)
    # The length is missing, wrong, or leads beyond a cut: the next record's start decides.
    following = _find(file, start, _PLAIN_START)
    while following is not None and isinstance(_head_at(file, following), int):
        following = _find(file, following + 1, _PLAIN_START)
    if following is None:
        return file.seek(0, io.SEEK_END) - at
    length = following - at
    file.seek(max(start, following - len(_END)))
    if size is not None and size > length - head and file.read(len(_END)) != _END:
        return length  # half a record, which a later run has appended to
    file.seek(at)
    return _parse_record(file.read(min(length, MAX_RECORD_BYTES)), at, length) or length


def _head_at(file: BinaryIO, at: int) -> tuple[dict[str, str], int] | int:
    """Return the header fields and the bytes they take; how many were read if it is no head."""
    file.seek(at)
    head = file.read(_FIRST_STEP)
    if not head.startswith(b"WARC/"):
        return 0
    stop = _HEAD_STOP.search(head)
    if stop is None:
        head += file.read(_LONGEST_HEAD - len(head))
        stop = _HEAD_STOP.search(head)
    if stop is None:
        return len(head)
    return _parse_head(head[: stop.end()]) or stop.end()


def _behind(file: BinaryIO, end: int) -> bytes | None:
    """Return the empty lines behind a block; None if it does not end there."""
    file.seek(end - 1)
    tail = file.read(1 + len(_END))
    if not tail:
        return None  # the file ends before it
    tail = tail[1:]
    at_end = len(tail) < len(_END) and not tail.strip(b"\r\n")
    return tail if tail == _END or at_end else None


def _read_member(file: BinaryIO, at: int) -> Record | int:
    """Read the record in the gzip member at `at`; how many bytes were unpacked for nothing."""
    file.seek(at)
    unzip = zlib.decompressobj(_WBITS)
    data = bytearray()  # the first `MAX_RECORD_BYTES` bytes
    size = 0
    step = _FIRST_STEP  # most members are small, and what is read beyond one is read again
    record_end: int | None = None
    part = b""
    while not unzip.eof:
        chunk = unzip.unconsumed_tail or file.read(step)
        step = min(2 * step, _CHUNK)
        if not chunk and len(part) < _CHUNK:  # nor is more to be had of what was read
            return size
        try:
            part = unzip.decompress(chunk, _CHUNK)
        except zlib.error:
            return size
        size += len(part)
        data += part[: MAX_RECORD_BYTES - len(data)]
        if record_end is None:
            head = _parse_head(bytes(data[:_LONGEST_HEAD]))
            if head is not None:
                record_end = head[1] + (content_length(head[0]) or 0)
            elif len(data) > _LONGEST_HEAD or not data.startswith(b"WARC/"):
                return size + len(chunk)  # nor will more of it make it a record
        if record_end is not None and data.startswith(b"WARC/", record_end + len(_END)):
            raise _OneStreamError
    end = file.tell() - len(unzip.unused_data)
    return _parse_record(bytes(data), at, end - at) or size


def _end_of_empty_member(file: BinaryIO, at: int) -> int | None:
    """Return where the gzip member that starts at `at` ends, if nothing is in it."""
    file.seek(at)
    unzip = zlib.decompressobj(_WBITS)
    chunk = file.read(_EMPTY)
    try:
        if unzip.decompress(chunk, 1) or not unzip.eof:
            return None
    except zlib.error:
        return None
    return at + len(chunk) - len(unzip.unused_data)


def _find(file: BinaryIO, start: int, pattern: re.Pattern[bytes]) -> int | None:
    """Return the offset of the first match that starts at `start` or later."""
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
