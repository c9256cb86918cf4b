"""The index of a WARC file: built once, kept in the cache, opened as memory-mapped arrays."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from focuscrawl.errors import UserError
from focuscrawl.foundation.cache import cache_dir
from focuscrawl.webs.indexing import Arrays, index_warc, keys_of, schemeless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FORMAT = 2  # counted up whenever an index of the same file would differ
_SAMPLE = 1 << 16  # bytes at either end of the file that tell it from others
_FACTS = "facts.json"
_UNUSABLE = (OSError, ValueError, EOFError)  # an index that is not there, or not whole


@dataclass(frozen=True, slots=True)
class Index:
    """Where a WARC file holds the answer for each URL.

    `focuscrawl.webs.indexing.index_warc` says what the arrays and facts are.
    """

    arrays: Arrays
    facts: dict[str, Any]

    def __len__(self) -> int:
        return len(self.arrays["row"])

    def url(self, row: int) -> str:
        """Return the URL of a row, as recorded and normalised."""
        ends = self.arrays["url_end"]
        start = int(ends[row - 1]) if row else 0
        return self.arrays["url_text"][start : int(ends[row])].tobytes().decode()

    def urls(self) -> Iterator[str]:
        """Iterate over the URLs of all rows."""
        text = self.arrays["url_text"].tobytes()
        start = 0
        for end in self.arrays["url_end"].tolist():
            yield text[start:end].decode()
            start = end

    def rows(self, urls: Sequence[str]) -> list[int | None]:
        """Return the row of each normalised URL, whatever its scheme; None if there is none."""
        texts = [schemeless(url) for url in urls]
        keys = self.arrays["key"]
        wanted = keys_of(texts)
        places = keys.searchsorted(wanted)
        found: list[int | None] = [None] * len(texts)
        hits = (keys[np.minimum(places, len(keys) - 1)] == wanted).nonzero()[0]
        for i in hits.tolist():
            found[i] = self._row_of(texts[i], wanted[i], int(places[i]))
        return found

    def _row_of(self, text: str, key: np.uint64, place: int) -> int | None:
        """Return the row that has just this text among those of equal key."""
        keys = self.arrays["key"]
        while place < len(keys) and keys[place] == key:
            row = int(self.arrays["row"][place])
            if schemeless(self.url(row)) == text:
                return row
            place += 1
        return None


def open_index(path: Path, file: BinaryIO) -> Index:
    """Open the index of a WARC file; build it first if the cache has none.

    The cache knows the file by its size, modification time and ends, not by its path. Several
    processes may do this at the same time: each builds its own, and the first one is kept.

    Raises
    ------
    UserError
        If the file is no WARC file or holds no page, or the cache cannot be written.
    """
    size = os.fstat(file.fileno()).st_size
    folder = cache_dir() / "webs" / _identity(file, size)
    with contextlib.suppress(*_UNUSABLE):
        return _load(folder)
    arrays, facts = index_warc(path, file, size)
    if not facts["records"]:
        raise UserError(f"{path} holds no whole WARC record: name a .warc or .warc.gz file")
    if not len(arrays["row"]):
        raise UserError(f"{path} holds no page: none of its records answers a GET")
    try:
        _save(folder, arrays, facts)
    except OSError as error:
        raise UserError(
            f"cannot keep the index of {path} in {folder.parent} ({error.strerror}): "
            "set FOCUSCRAWL_CACHE to a folder that can be written"
        ) from error
    return Index(arrays, facts)  # not loaded: another process may be putting its own there


def _identity(file: BinaryIO, size: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{_FORMAT} {size} {os.fstat(file.fileno()).st_mtime_ns}\n".encode())
    for start in (0, max(size - _SAMPLE, 0)):
        file.seek(start)
        digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


_NAMES = (
    "key",
    "row",
    "offset",
    "length",
    "payload_offset",
    "payload_length",
    "status",
    "url_end",
    "url_text",
)


def _load(folder: Path) -> Index:
    facts = json.loads((folder / _FACTS).read_text())
    arrays: Arrays = {}
    for name in _NAMES:
        mapped: npt.NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r")
        arrays[name] = np.asarray(mapped)  # the same memory, without memmap's cost an access
    return Index(arrays, facts)


def _save(folder: Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(building / f"{name}.npy", array)
        (building / _FACTS).write_text(json.dumps(facts))
        if not _put(building, folder):
            try:
                _load(folder)  # by another process, which was first: it is as good
            except _UNUSABLE:
                shutil.rmtree(folder, ignore_errors=True)
                _put(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _put(building: Path, folder: Path) -> bool:
    try:
        building.rename(folder)
    except OSError:  # there is one
        return False
    return True
