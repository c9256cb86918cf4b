"""CDXJ indexes of WARC files: one sorted file, or compressed blocks with an index of the blocks.

The files may be on any file system of PyArrow, or on a web server (`focuscrawl.webs.http_files`).
"""

from __future__ import annotations

import hashlib
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import first_line, refuse_special_file
from focuscrawl.webs.captures import MAX_LINE_BYTES, leads_outside, parse_cdxj_line

if TYPE_CHECKING:
    from pyarrow import fs

    from focuscrawl.webs.captures import Capture
    from focuscrawl.webs.http_files import HttpFiles

_BLOCK = 1 << 16  # bytes; a line belongs to the block in which the line starts
_TAIL = 1 << 10  # bytes read beyond a block, which usually contain the end of its last line
_CACHED_BLOCKS = 256  # about 20 MB
_CACHED_KEYS = 1 << 16  # first keys of blocks, about 10 MB
_SAMPLES = 16  # blocks that the fingerprint includes
_HEADER = b"!"  # prefix of lines about the index itself
_LAST_KEY = b"\xff"  # sorts after every line

_BLOCK_LINE = 80  # bytes of a line about a compressed block
_CACHED_PARTS = 32  # compressed blocks, of about 2 MB each
_MAX_OPEN_FILES = 16
_MAX_PACKED, _MAX_UNPACKED = 8 << 20, 32 << 20  # bytes of a compressed block
_GZIP = 31  # for zlib


class _SortedLines:
    """The lines of a sorted file, which is searched by bisection.

    When the file is opened, seventeen blocks of 64 KiB are read. A search reads one block for each
    bisection step that is not cached, and one block for the lines.

    Attributes
    ----------
    requests, line_requests : int
        Requests to a web server for all blocks, and about as many as there are lines; 0 for other
        files.
    """

    def __init__(self, files: fs.FileSystem | HttpFiles, path: str, name: str) -> None:
        self.name = name
        try:
            refuse_special_file(files, path)
            self._file = files.open_input_file(path)
            self._size: int = self._file.size()
        except OSError as error:
            raise UserError(f"cannot read {name}: {first_line(error)}; check the path") from None
        self._count = -(-self._size // _BLOCK)
        self._block = lru_cache(_CACHED_BLOCKS)(self._load)
        self._first = lru_cache(_CACHED_KEYS)(self._load_first)
        if next(iter(self), None) is None:
            raise UserError(f"{name} is empty: name an index of WARC files")
        sampled = sorted({self._count * at // _SAMPLES for at in range(_SAMPLES)})
        firsts = [self._first(block) for block in sampled]
        if firsts != sorted(firsts):
            raise self.unsorted(0)
        digest = hashlib.blake2b(f"cdxj {self._size}\n".encode(), digest_size=16)
        for block in sampled:
            digest.update(b"\n".join(self._block(block)))
        self.fingerprint = digest.hexdigest()
        is_remote = files.type_name == "http"
        self.requests = self._count if is_remote else 0
        self.line_requests = -(-self._size // _BLOCK_LINE) if is_remote else 0

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Yield all lines, each with an approximate position in bytes."""
        for block in range(self._count):
            for line in self._load(block):
                if not line.startswith(_HEADER):
                    yield line, block * _BLOCK

    def last(self) -> tuple[bytes, int]:
        """Return the last line, which is cut if the file is truncated."""
        last = next((block for block in reversed(range(self._count)) if self._block(block)), 0)
        return self._block(last)[-1], last * _BLOCK

    def starting(self, wanted: bytes, *, before: int = 0) -> Iterator[tuple[bytes, int]]:
        """Yield the lines from the first line that is not smaller than `wanted`.

        Parameters
        ----------
        before : int
            Number of smaller lines to yield first, 0 or 1.
        """
        first = max(bisect_left(range(self._count), wanted, key=self._first) - 1, 0)
        for block in range(first, self._count):
            lines = self._block(block)
            at = bisect_left(lines, wanted)
            if block == first:
                at = max(at - before, 0)
            for line in lines[at:]:
                if not line.startswith(_HEADER):
                    yield line, block * _BLOCK

    def unsorted(self, start: int) -> UserError:
        return UserError(
            f"{self.name} is not sorted by bytes near byte {start:,}: sort the file with "
            "LC_ALL=C sort"
        )

    def _load_first(self, block: int) -> bytes:
        return next(iter(self._block(block)), _LAST_KEY)

    def _load(self, block: int) -> list[bytes]:
        start = max(block * _BLOCK - 1, 0)  # the byte before shows whether a line starts
        own = (block + 1) * _BLOCK - start
        data = self._read(own + _TAIL, start)
        end = data.find(b"\n", own - 1)
        if end < 0:
            data += self._read(MAX_LINE_BYTES, start + len(data))
            end = data.find(b"\n", own - 1)
        if end < 0 and start + len(data) < self._size:
            raise UserError(
                f"{self.name} has a line of more than {MAX_LINE_BYTES:,} bytes near byte "
                f"{start:,}: write the index again"
            )
        first = data.find(b"\n") + 1 if block else 0
        if (block and not first) or first >= own:
            return []
        lines = [line for line in data[first : end if end >= 0 else None].split(b"\n") if line]
        if lines != sorted(lines):
            raise self.unsorted(start)
        return lines

    def _read(self, size: int, start: int) -> bytes:
        try:
            data: bytes = self._file.read_at(size, start)
        except OSError as error:
            raise UserError(f"cannot read {self.name}: {first_line(error)}") from None
        return data


class CdxjIndex:
    """An index in a sorted CDXJ file.

    Parameters
    ----------
    name : str
        File name for messages.

    Attributes
    ----------
    fingerprint : str
        Hex digest of samples of the file.

    Raises
    ------
    UserError
        The file cannot be read, is not CDXJ, or is not sorted; later reads may raise the error,
        too.
    """

    def __init__(self, files: fs.FileSystem | HttpFiles, path: str, name: str) -> None:
        self.name = name
        self._lines = _SortedLines(files, path, name)
        line, at = self._lines.last()
        if not line.startswith(_HEADER):
            self._parse(line, at)  # a truncated file ends within a line
        self.fingerprint, self.requests = self._lines.fingerprint, self._lines.requests

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures (index entries) with one of the given URL keys."""
        for key in keys:
            wanted = key.encode() + b" "
            for line, at in self._lines.starting(wanted):
                if not line.startswith(wanted):
                    break
                yield self._parse(line, at)

    def __iter__(self) -> Iterator[Capture]:
        """Yield all captures in the order of the file."""
        for line, at in self._lines:
            yield self._parse(line, at)

    def _parse(self, line: bytes, at: int) -> Capture:
        try:
            return parse_cdxj_line(line)
        except ValueError:
            shown = line[:60].decode("ascii", "backslashreplace")
            raise UserError(
                f"{self.name} has an invalid CDXJ line near byte {at:,}: {shown}"
            ) from None


class _Block(NamedTuple):
    """A compressed block of CDXJ lines: its file, its place and its first line up to the time."""

    first: bytes
    filename: str
    offset: int
    length: int


class BlockIndex:
    """An index in compressed blocks of CDXJ lines (ZipNum), as that of Common Crawl.

    A sorted file ``*.idx`` has a line for each block: the key and time of the block's first line,
    the name of the file with the block, its offset and its length in bytes, separated by tabs. To
    find a URL, the index reads one block, or several blocks if the URL has many captures.

    Parameters
    ----------
    path : str
        The ``.idx`` file; the files with the blocks are in the same folder.
    name : str
        File name for messages.

    Attributes
    ----------
    fingerprint : str
        Hex digest of samples of the ``.idx`` file.

    Raises
    ------
    UserError
        A file cannot be read or does not belong to the index; later reads may raise the error,
        too.
    """

    def __init__(self, files: fs.FileSystem | HttpFiles, path: str, name: str) -> None:
        self.name = name
        self._folder = path.rpartition("/")[0] or "."
        self._files = files
        self._lines = _SortedLines(files, path, name)
        self._parse(*self._lines.last())
        self._open = lru_cache(_MAX_OPEN_FILES)(self._open_file)
        self._captures = lru_cache(_CACHED_PARTS)(self._read_lines)
        self.fingerprint = self._lines.fingerprint
        self.requests = self._lines.requests + self._lines.line_requests

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures (index entries) with one of the given URL keys."""
        for key in keys:
            wanted = key.encode() + b" "
            for line, at in self._lines.starting(wanted, before=1):
                if line > wanted and not line.startswith(wanted):
                    break
                block = self._parse(line, at)
                lines = self._captures(block)
                place = bisect_left(lines, wanted)
                while place < len(lines) and lines[place].startswith(wanted):
                    yield self._capture(lines[place], block)
                    place += 1

    def __iter__(self) -> Iterator[Capture]:
        """Yield all captures in the order of their keys."""
        for line, at in self._lines:
            block = self._parse(line, at)
            for each in self._read_lines(block):
                yield self._capture(each, block)

    def _parse(self, line: bytes, at: int) -> _Block:
        fields = line.split(b"\t")
        try:
            first, filename = fields[0], fields[1].decode()
            offset, length = int(fields[2]), int(fields[3])
        except (IndexError, ValueError):
            shown = line[:60].decode("ascii", "backslashreplace")
            raise UserError(
                f"{self.name} is no index of compressed blocks near byte {at:,}: {shown}"
            ) from None
        if leads_outside(filename):
            raise UserError(f"{self.name} names {filename!r:.200}, which is outside its folder")
        return _Block(first, filename, offset, length)

    def _read_lines(self, block: _Block) -> list[bytes]:
        """Return the lines of a compressed block, sorted by key and time."""
        file = self._open(block.filename)
        try:
            if block.offset < 0 or not 0 < block.length <= _MAX_PACKED:
                raise self._mismatch(block)
            unzip = zlib.decompressobj(_GZIP)
            data = unzip.decompress(file.read_at(block.length, block.offset), _MAX_UNPACKED)
        except OSError as error:
            raise UserError(f"cannot read {self._place(block)}: {first_line(error)}") from None
        except zlib.error:
            raise self._mismatch(block) from None
        lines = [line for line in data.split(b"\n") if line and not line.startswith(_HEADER)]
        keys = [line.split(b" {", 1)[0] for line in lines]
        if not unzip.eof or not lines or keys != sorted(keys) or keys[0] != block.first:
            raise self._mismatch(block)
        return lines

    def _capture(self, line: bytes, block: _Block) -> Capture:
        try:
            return parse_cdxj_line(line)
        except ValueError:
            raise self._mismatch(block) from None

    def _open_file(self, filename: str) -> fs.NativeFile:
        path = f"{self._folder}/{filename}"
        try:
            refuse_special_file(self._files, path, self._folder)
            return self._files.open_input_file(path)
        except OSError as error:
            raise UserError(f"cannot read {filename}: {first_line(error)}") from None

    def _place(self, block: _Block) -> str:
        return f"the block at byte {block.offset:,} of {block.filename}"

    def _mismatch(self, block: _Block) -> UserError:
        return UserError(
            f"{self.name} is not the index of {block.filename}, or a file is truncated: there is "
            f"no block with the key in {self._place(block)}"
        )
