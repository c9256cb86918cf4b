"""Where a record of a WARC file ends, found by reading it, and where another may begin.

What a stranger's file makes this read is bounded: of a record no more is kept than a crawl takes
in, and what was read to no avail is not read over and over.
"""

from __future__ import annotations

import io
import re
import zlib
from typing import BinaryIO

from focuscrawl.webs.limits import LARGEST_BLOCK
from focuscrawl.webs.warc import (
    END,
    GZIP_WBITS,
    LONGEST_HEAD,
    PLAIN_START,
    SEEN,
    Record,
    content_length,
    parse_head,
    parse_record,
)

_CHUNK = 1 << 16
_FIRST_STEP = 1 << 12
_HEAD_STOP = re.compile(rb"\n(?:[^\S\n]*\n|(?=WARC/[01]\.\d{1,2}\r?\n))")  # or the next head
_EMPTY = 64  # bytes that a gzip member without content may take
_OVERLAP = 32  # longer than a match of the patterns that are looked for


class OneStreamError(Exception):
    """A gzip member holds several records."""


def read_plain(file: BinaryIO, at: int) -> Record | int:
    """Read the record that starts at `at`.

    Returns
    -------
    If there is no whole record, how many bytes were read for nothing.
    """
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
            block = file.read(min(size, LARGEST_BLOCK))
            length = head + size + len(tail)
            return Record(at, length, headers, block, size > LARGEST_BLOCK)
    # The length is missing, wrong, or leads beyond a cut: the next record's start decides.
    following = find(file, start, PLAIN_START)
    while following is not None and isinstance(_head_at(file, following), int):
        following = find(file, following + 1, PLAIN_START)
    if following is None:
        return file.seek(0, io.SEEK_END) - at
    length = following - at
    file.seek(max(start, following - len(END)))
    if size is not None and size > length - head and file.read(len(END)) != END:
        return length  # half a record, written on after by a later run
    file.seek(at)
    return parse_record(file.read(min(length, SEEN)), at, length) or length


def read_member(file: BinaryIO, at: int) -> Record | int:
    """Read the record in the gzip member that starts at `at`.

    Returns
    -------
    If there is no whole one, how many bytes were unpacked for nothing.
    """
    file.seek(at)
    unzip = zlib.decompressobj(GZIP_WBITS)
    data = bytearray()  # the first `SEEN` bytes
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
        data += part[: SEEN - len(data)]
        if record_end is None:
            record_end = _record_end(data)
            if record_end is None and _is_no_record(data):
                return size + len(chunk)
        if record_end is not None and data.startswith(b"WARC/", record_end + len(END)):
            raise OneStreamError
    end = file.tell() - len(unzip.unused_data)
    return parse_record(bytes(data), at, end - at) or size


def end_of_empty_member(file: BinaryIO, at: int) -> int | None:
    """Return where the gzip member that starts at `at` ends, if nothing is in it."""
    file.seek(at)
    unzip = zlib.decompressobj(GZIP_WBITS)
    chunk = file.read(_EMPTY)
    try:
        if unzip.decompress(chunk, 1) or not unzip.eof:
            return None
    except zlib.error:
        return None
    return at + len(chunk) - len(unzip.unused_data)


def find(file: BinaryIO, start: int, pattern: re.Pattern[bytes]) -> int | None:
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


def _is_no_record(data: bytearray) -> bool:
    """Tell, of the first bytes of a member, that they will not become the head of a record."""
    return len(data) > LONGEST_HEAD or not data.startswith(b"WARC/")


def _record_end(data: bytearray) -> int | None:
    parsed = parse_head(bytes(data[:LONGEST_HEAD]))
    if parsed is None:
        return None
    headers, start = parsed
    return start + (content_length(headers) or 0)


def _head_at(file: BinaryIO, at: int) -> tuple[dict[str, str], int] | int:
    """Return the header fields and the bytes they take; how many were read if it is no head."""
    file.seek(at)
    head = file.read(_FIRST_STEP)
    if not head.startswith(b"WARC/"):
        return 0
    stop = _HEAD_STOP.search(head)
    if stop is None:
        head += file.read(LONGEST_HEAD - len(head))
        stop = _HEAD_STOP.search(head)
    if stop is None:
        return len(head)
    return parse_head(head[: stop.end()]) or stop.end()


def _behind(file: BinaryIO, end: int) -> bytes | None:
    """Return the empty lines behind a block; None if it does not end there."""
    file.seek(end - 1)
    tail = file.read(1 + len(END))
    if not tail:
        return None  # the file ends before it
    tail = tail[1:]
    at_end = len(tail) < len(END) and not tail.strip(b"\r\n")
    return tail if tail == END or at_end else None
