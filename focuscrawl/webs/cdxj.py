"""An index of an archive as lines of text, sorted: CDXJ, as pywb and OutbackCDX write and read it.

https://specs.webrecorder.net/cdxj/0.1.0/. A URL is found by bisection: no more of the file is held
than the blocks that were read last, and the first key of each block that was looked at.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.file_systems import first_line, refuse_odd
from focuscrawl.webs.captures import Capture, read_capture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyarrow import fs

LONGEST_LINE = 1 << 15  #: bytes
_BLOCK = 1 << 16  # bytes; a line belongs to the block it begins in
_TAIL = 1 << 10  # bytes read beyond a block, as its last line hardly ends with it
_BLOCKS = 256  # that are held, about 20 MB
_FIRSTS = 1 << 16  # keys of blocks that are held, about 10 MB
_SAMPLES = 16  # blocks that an index is told from others by
_HEADER = b"!"  # begins lines that say something of the index itself
_BEHIND = b"\xff"  # sorts behind every line


def line_of(capture: Capture) -> bytes:
    """Return the line of a capture: ASCII, and no line break but at its end."""
    about = {
        "url": capture.url,
        "mime": capture.mime,
        "status": "-" if capture.status is None else str(capture.status),
        "digest": capture.digest,
        "length": str(capture.length),
        "offset": str(capture.offset),
        "filename": capture.filename,
    }
    if capture.redirect:
        about["redirect"] = capture.redirect
    return f"{capture.key} {capture.timestamp} {json.dumps(about)}\n".encode("ascii")


def capture_in(line: bytes) -> Capture:
    """Return the capture of a line.

    Raises
    ------
    ValueError
        It is no line of a CDXJ.
    """
    key, timestamp, said = line.decode("utf-8").split(" ", 2)
    try:
        about = json.loads(said)
    except RecursionError:
        raise ValueError("nested without end") from None
    if not isinstance(about, dict):
        raise ValueError("no names")
    return read_capture(key, timestamp, about)


class CdxjIndex:
    """A CDXJ file (`focuscrawl.webs.captures.CaptureIndex`).

    Opening one reads seventeen blocks of 64 KiB. A look-up reads one block for each halving of the
    file that no earlier one has made, and one for the lines; neighbours are in the same block.

    Parameters
    ----------
    files, path : where it is
    name : for messages

    Raises
    ------
    UserError
        It cannot be read, is no CDXJ, or is not sorted; found out also later, where it is read.
    """

    def __init__(self, files: fs.FileSystem, path: str, name: str) -> None:
        self.name = name
        try:
            refuse_odd(files, path)
            self._file = files.open_input_file(path)
            self._size: int = self._file.size()
        except OSError as error:
            raise UserError(f"cannot read {name}: {first_line(error)}") from None
        self._count = -(-self._size // _BLOCK)
        self._block = lru_cache(_BLOCKS)(self._load)
        self._first = lru_cache(_FIRSTS)(self._begin)
        if next(iter(self), None) is None:
            raise UserError(f"{name} is empty: it is no index of an archive")
        sampled = sorted({self._count * at // _SAMPLES for at in range(_SAMPLES)})
        firsts = [self._first(block) for block in sampled]
        if firsts != sorted(firsts):
            raise self._unsorted(0)
        last = next((block for block in reversed(range(self._count)) if self._block(block)), 0)
        if not (line := self._block(last)[-1]).startswith(_HEADER):
            self._parse(line, last)  # a file that was cut ends within a line
        digest = hashlib.blake2b(f"cdxj {self._size}\n".encode(), digest_size=16)
        for block in sampled:
            digest.update(b"\n".join(self._block(block)))
        self.fingerprint = digest.hexdigest()

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures that have one of the keys."""
        for key in keys:
            wanted = key.encode() + b" "
            first = bisect_left(range(self._count), wanted, key=self._first) - 1
            for block in range(max(first, 0), self._count):
                lines = self._block(block)
                at = bisect_left(lines, wanted)
                while at < len(lines) and lines[at].startswith(wanted):
                    yield self._parse(lines[at], block)
                    at += 1
                if at < len(lines):
                    break

    def __iter__(self) -> Iterator[Capture]:
        """Yield all captures, in the order of the file."""
        for block in range(self._count):
            for line in self._load(block):
                if not line.startswith(_HEADER):
                    yield self._parse(line, block)

    def _begin(self, block: int) -> bytes:
        return next(iter(self._block(block)), _BEHIND)

    def _load(self, block: int) -> list[bytes]:
        """Return the lines that begin in a block."""
        start = max(block * _BLOCK - 1, 0)  # the byte before tells whether a line begins
        own = (block + 1) * _BLOCK - start
        data = self._read(own + _TAIL, start)
        end = data.find(b"\n", own - 1)
        if end < 0:
            data += self._read(LONGEST_LINE, start + len(data))
            end = data.find(b"\n", own - 1)
        if end < 0 and start + len(data) < self._size:
            raise UserError(f"{self.name} has a line without an end near byte {start:,}")
        begin = data.find(b"\n") + 1 if block else 0
        if (block and not begin) or begin >= own:
            return []
        lines = [line for line in data[begin : end if end >= 0 else None].split(b"\n") if line]
        if lines != sorted(lines):
            raise self._unsorted(start)
        return lines

    def _read(self, size: int, start: int) -> bytes:
        try:
            data: bytes = self._file.read_at(size, start)
        except OSError as error:
            raise UserError(f"cannot read {self.name}: {first_line(error)}") from None
        return data

    def _parse(self, line: bytes, block: int) -> Capture:
        try:
            return capture_in(line)
        except ValueError:
            shown = line[:60].decode("ascii", "backslashreplace")
            raise UserError(
                f"{self.name} has a line that is no CDXJ near byte {block * _BLOCK:,}: {shown}"
            ) from None

    def _unsorted(self, start: int) -> UserError:
        return UserError(
            f"{self.name} is not in the order of its bytes, seen near byte {start:,}: "
            "sort it with LC_ALL=C sort"
        )
