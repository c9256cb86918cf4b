"""A record of a WARC file: its header fields, and what it holds."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from focuscrawl.webs.limits import LARGEST_BLOCK

GZIP_WBITS = 31
LONGEST_HEAD = 1 << 16  # bytes; no sane record has more, and garbage must not be read to its end
END = b"\r\n\r\n"
#: bytes of a record that are looked at: one more than there may be
SEEN = LONGEST_HEAD + LARGEST_BLOCK + len(END) + 1
PLAIN_START = re.compile(rb"WARC/[01]\.\d{1,2}\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MANDATORY = {"warc-type", "warc-record-id"}  # a page may quote a WARC file, but hardly so well
_MOST_LINES = 1000  # of a head
_MOST_DIGITS = 12  # of a length; none is a terabyte


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a WARC file.

    Attributes
    ----------
    offset, length : the bytes it takes in the file (compressed, where the file is)
    headers : its own header fields, names in lower case; the first of equal names
    block : what it holds: for a response the HTTP head and the body as sent. If there are more
        than `LARGEST_BLOCK` bytes, the first so many
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


def read_record(data: bytes, offset: int, gzipped: bool) -> Record | None:
    """Parse the bytes of one record, as `Record.offset` and `Record.length` frame them.

    The first `SEEN` of them will do. Returns None if they are not a whole record, which means
    that the file has changed.
    """
    whole = True
    if gzipped:
        unzip = zlib.decompressobj(GZIP_WBITS)
        size = len(data)
        try:
            data = unzip.decompress(data, SEEN)
        except zlib.error:
            return None
        whole = unzip.eof or size >= SEEN or len(data) >= SEEN
    return parse_record(data, offset, len(data)) if whole else None


def parse_record(data: bytes, offset: int, length: int) -> Record | None:
    """Parse a record, unpacked; of a large one the first `SEEN` bytes."""
    head = parse_head(data)
    if head is None:
        return None
    headers, start = head
    size = content_length(headers)
    if size is None or size > len(data) - start or data[start + size :].strip(b"\r\n"):
        block = data[start:].removesuffix(END)  # the length is missing or wrong
    else:
        block = data[start : start + size]
    return Record(offset, length, headers, block[:LARGEST_BLOCK], len(block) > LARGEST_BLOCK)


def parse_head(data: bytes) -> tuple[dict[str, str], int] | None:
    """Return the header fields and where the block starts; None if this is no record."""
    if not data.startswith(b"WARC/"):
        return None
    end = _HEAD_END.search(data, 0, LONGEST_HEAD)
    if end is None or PLAIN_START.search(data, 1, end.start()):
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


def content_length(headers: dict[str, str]) -> int | None:
    """Return the length that a record says it has; None if it says none that could be."""
    value = headers.get("content-length", "")
    if len(value) > _MOST_DIGITS or not (value.isascii() and value.isdigit()):
        return None
    return int(value)
