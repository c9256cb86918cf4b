"""Reads the records of a WARC file, or of the WARC files inside a WACZ file.

A WACZ file (https://specs.webrecorder.net/wacz/1.1.1/) is a zip file with WARC files in its folder
``archive``. The zip file does not compress these WARC files again, so their records can be read in
place. The index inside the WACZ file is not used: it may be wrong, and the fingerprint of a
recording needs all records in any case.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from errno import EINVAL
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from focuscrawl.errors import UserError
from focuscrawl.webs.warc_reading import WarcScan

if TYPE_CHECKING:
    from zipfile import ZipInfo

    from _typeshed import WriteableBuffer

    from focuscrawl.webs.warc_reading import Record

_MAGIC = b"PK"  # of a zip file
_FOLDER, _ENDINGS = "archive/", (".warc", ".warc.gz")
_ENCRYPTED = 1  # bit of `ZipInfo.flag_bits`
_LOCAL_HEAD = struct.Struct("<4s22xHH")  # signature, length of the name, length of the extra field
_MAX_DIRECTORY_BYTES = 8 << 20  # about 100,000 members; a zip file with more could fill the memory
_BUFFER = 1 << 20


class RecordingScan:
    """Iterates once over the complete records of a WARC file or WACZ file.

    The offsets of the records are those in the file, also if the file is a WACZ file.

    Parameters
    ----------
    path : Path
        Name of the file for messages.
    file : BinaryIO
        The open file.

    Attributes
    ----------
    records : int
        Complete records read so far.
    truncated_at : int or None
        Offset of the first unreadable byte at the end of a WARC file; None if all are complete.
    damaged : int
        Unreadable sections inside a WARC file.

    Raises
    ------
    UserError
        The file is neither a WARC file nor a WACZ file, or a WARC file in it cannot be read.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._file = file
        self._parts = _list_parts(path, file)
        self.records = 0
        self.truncated_at: int | None = None
        self.damaged = 0

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in the order of the file."""
        for part in self._parts:
            scan = WarcScan(Path(part.name), part.open(self._file))
            for record in scan:
                self.records += 1
                yield replace(record, offset=part.start + record.offset)
            if self.truncated_at is None and scan.truncated_at is not None:
                self.truncated_at = part.start + scan.truncated_at
            self.damaged += scan.damaged


class _Part(NamedTuple):
    """A WARC file, or a WARC file inside a WACZ file."""

    name: str
    start: int
    end: int

    def open(self, file: BinaryIO) -> BinaryIO:
        return io.BufferedReader(_RawPart(file.fileno(), self.start, self.end), _BUFFER)


def _list_parts(path: Path, file: BinaryIO) -> list[_Part]:
    """Return the WARC files inside a WACZ file; of another file, the file itself."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        return [_Part(str(path), 0, size)]
    parts: list[_Part] = []
    for member in _members(path, _RawPart(file.fileno(), 0, size)):
        name = f"{path}/{member.filename}"
        if member.compress_type != ZIP_STORED or member.flag_bits & _ENCRYPTED:
            raise UserError(
                f"{name} is compressed or encrypted inside the WACZ file: unzip {path} and name "
                "the WARC file"
            )
        start = _start(file, member)
        end = start + member.compress_size
        if start < (parts[-1].end if parts else 1) or end > size:
            raise UserError(f"{name} is not where {path} says: the WACZ file is damaged")
        parts.append(_Part(name, start, end))
    if not parts:
        raise UserError(f"{path} has no WARC file in the folder {_FOLDER}: name another file")
    return parts


def _members(path: Path, file: _RawPart) -> Iterator[ZipInfo]:
    """Yield the WARC files of a zip file in the order of their bytes."""
    try:
        with ZipFile(_SmallReads(file)) as opened:
            members = sorted(opened.infolist(), key=lambda each: each.header_offset)
    except _DirectoryTooLargeError:
        raise UserError(f"{path} contains too many files: unzip it and name a WARC file") from None
    except (BadZipFile, NotImplementedError, OSError, ValueError, struct.error):
        raise UserError(
            f"{path} is truncated or is not a WACZ file: copy the file again, or name another"
        ) from None
    for member in members:
        named = member.filename.startswith(_FOLDER) and member.filename.endswith(_ENDINGS)
        if named and member.file_size:
            yield member


def _start(file: BinaryIO, member: ZipInfo) -> int:
    """Return the offset of the content of a member; 0 if the member has no valid head."""
    file.seek(max(member.header_offset, 0))
    head = file.read(_LOCAL_HEAD.size)
    if len(head) < _LOCAL_HEAD.size:
        return 0
    signature, name, extra = _LOCAL_HEAD.unpack(head)
    if signature != b"PK\x03\x04":
        return 0
    return member.header_offset + len(head) + int(name) + int(extra)


class _DirectoryTooLargeError(Exception):
    """The list of members of a zip file is too large to be read."""


class _SmallReads(io.BufferedReader):
    """A file that refuses to read much at once, as `ZipFile` reads its list of members."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > _MAX_DIRECTORY_BYTES:
            raise _DirectoryTooLargeError
        return super().read(size)


class _RawPart(io.RawIOBase):
    """The bytes of an open file from `start` to `end`, read without moving its position."""

    def __init__(self, handle: int, start: int, end: int) -> None:
        super().__init__()
        self._handle, self._start, self._size = handle, start, end - start
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        self._at = origin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)[: max(self._size - self._at, 0)]
        size = os.preadv(self._handle, [view], self._start + self._at) if view else 0
        self._at += size
        return size
