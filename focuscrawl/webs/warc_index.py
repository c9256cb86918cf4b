"""The index of a recording, which finds the record of each URL and is cached."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.foundation import urls
from focuscrawl.foundation.files import cache_dir
from focuscrawl.foundation.urls import schemeless
from focuscrawl.webs.http_response import (
    NOT_MODIFIED,
    parse_response,
    redirect_target,
    status_rank,
)
from focuscrawl.webs.revisits import Originals, RevisitReference
from focuscrawl.webs.wacz import RecordingScan
from focuscrawl.webs.warc_reading import read_get_responses

if TYPE_CHECKING:
    from focuscrawl.webs.warc_reading import Record

_FORMAT = 4  # version; increases when the index of an unchanged file would differ
_SAMPLE = 1 << 16  # bytes at both ends of the file that identify the file
_FACTS = "facts.json"
_ARRAYS = ("key", "row", "record", "url_text")
_RECORD = np.dtype(
    [
        ("offset", np.int64),
        ("length", np.int64),
        ("payload_offset", np.int64),
        ("payload_length", np.int64),
        ("status", np.int16),
        ("url_end", np.int64),
    ]
)
_LOAD_ERRORS = (OSError, ValueError, EOFError)  # of a missing or incomplete index

_NO_ORIGINAL = -1  # status of a revisit record whose original is not in the file
_NO_RECORD = (-1, 0)
_SHOW_PROGRESS_FROM = 64 << 20  # bytes; smaller files take no time


def url_keys(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key (hash) of each URL without scheme, as an array."""
    digests = [
        hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest() for text in texts
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


@dataclass(frozen=True, slots=True)
class WarcIndex:
    """Positions of the recorded responses of a WARC file, by URL.

    A URL may be recorded several times, and under both ``http`` and ``https``. The index contains
    the first record of the URL with status 200, or else the first record with the best status
    class (2xx, 3xx, 4xx, 5xx).

    Attributes
    ----------
    arrays : dict of str to NDArray
        ``record``, a row for each URL in the order of the file: ``offset`` and ``length`` (of the
        record), ``payload_offset`` and ``payload_length`` (of the record with the body of a
        revisit;
        else -1 and 0), ``status``, ``url_end`` (end of the URL in ``url_text``); ``key``, sorted,
        and the ``row`` of each key.
    facts : dict of str to Any
        ``fingerprint``, ``records``, ``truncated_at``, ``damaged``.
    """

    arrays: dict[str, npt.NDArray[Any]]
    facts: dict[str, Any]

    def __len__(self) -> int:
        return len(self.arrays["row"])

    def url(self, row: int) -> str:
        """Return the normalised URL of the record in a row of the index."""
        ends = self.arrays["record"]["url_end"]
        start = int(ends[row - 1]) if row else 0
        return self.arrays["url_text"][start : int(ends[row])].tobytes().decode()

    def urls(self) -> Iterator[str]:
        """Yield the URLs of all rows of the index."""
        text = self.arrays["url_text"].tobytes()
        start = 0
        for end in self.arrays["record"]["url_end"].tolist():
            yield text[start:end].decode()
            start = end

    def rows(self, urls: Sequence[str]) -> list[int | None]:
        """Return the index row of each normalised URL, whether http or https; None if missing."""
        texts = [schemeless(url) for url in urls]
        keys = self.arrays["key"]
        wanted = url_keys(texts)
        places = keys.searchsorted(wanted)
        found: list[int | None] = [None] * len(texts)
        hits = (keys[np.minimum(places, len(keys) - 1)] == wanted).nonzero()[0]
        for i in hits.tolist():
            found[i] = self._row_of(texts[i], wanted[i], int(places[i]))
        return found

    def _row_of(self, text: str, key: np.uint64, place: int) -> int | None:
        """Return the row with this URL among the rows with the same key."""
        keys = self.arrays["key"]
        while place < len(keys) and keys[place] == key:
            row = int(self.arrays["row"][place])
            if schemeless(self.url(row)) == text:
                return row
            place += 1
        return None


def open_index(path: Path, file: BinaryIO) -> WarcIndex:
    """Load the index of a WARC or WACZ file from the cache, or build and cache the index.

    The cache identifies a file by size, modification time and the bytes at both ends of the
    file, not by path. If several processes build the same index, the cache keeps the index that is
    finished first.

    Raises
    ------
    UserError
        The file is no recording or contains no page, or the cache cannot be written.
    """
    size = os.fstat(file.fileno()).st_size
    folder = cache_dir() / "webs" / _identity(file, size)
    with contextlib.suppress(*_LOAD_ERRORS):
        return _load(folder)
    index = _build(path, file, size)
    if not index.facts["records"]:
        raise UserError(f"{path} contains no complete WARC record: name another file")
    if not len(index):
        raise UserError(
            f"{path} contains no page: no record answers a GET request; name another file"
        )
    try:
        _save(folder, index)
    except OSError as error:
        raise UserError(
            f"cannot save the index of {path} in {folder.parent} ({error.strerror}): "
            "set FOCUSCRAWL_CACHE to a writable folder"
        ) from error
    return index  # not loaded, because another process may be writing the cache


def _identity(file: BinaryIO, size: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{_FORMAT} {size} {os.fstat(file.fileno()).st_mtime_ns}\n".encode())
    for start in (0, max(size - _SAMPLE, 0)):
        file.seek(start)
        digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


def _load(folder: Path) -> WarcIndex:
    facts = json.loads((folder / _FACTS).read_text())
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name in _ARRAYS:
        mapped: npt.NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r")
        arrays[name] = np.asarray(mapped)  # same memory, faster access than memmap
    return WarcIndex(arrays, facts)


def _save(folder: Path, index: WarcIndex) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        for name, array in index.arrays.items():
            np.save(building / f"{name}.npy", array)
        (building / _FACTS).write_text(json.dumps(index.facts))
        if not _move_into_place(building, folder):
            try:
                _load(folder)  # another process saved the same index first
            except _LOAD_ERRORS:
                shutil.rmtree(folder, ignore_errors=True)
                _move_into_place(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _move_into_place(building: Path, folder: Path) -> bool:
    try:
        building.rename(folder)
    except OSError:  # the folder exists
        return False
    return True


def _build(path: Path, file: BinaryIO, size: int) -> WarcIndex:
    scan = RecordingScan(path, file)
    # disable=None: no bar where standard error is not a terminal
    with tqdm(
        total=size,
        unit="B",
        unit_scale=True,
        desc=f"index {path.name}",
        disable=None if size >= _SHOW_PROGRESS_FROM else True,
    ) as progress:
        pages = _select_records(_with_progress(scan, progress))
    facts = {
        "fingerprint": _fingerprint(pages),
        "records": scan.records,
        "truncated_at": scan.truncated_at,
        "damaged": scan.damaged,
    }
    text = [page.url.encode() for page in pages]
    ends = np.cumsum([len(part) for part in text], dtype=np.int64).tolist()
    rows = [
        (page.offset, page.length, *page.payload, page.status, end)
        for page, end in zip(pages, ends, strict=True)
    ]
    keys = url_keys([schemeless(page.url) for page in pages])
    order = np.argsort(keys, kind="stable")
    arrays = {
        "key": keys[order],
        "row": order.astype(np.int64),
        "record": np.array(rows, _RECORD),
        "url_text": np.frombuffer(b"".join(text), dtype=np.uint8),
    }
    return WarcIndex(arrays, facts)


def _with_progress(scan: RecordingScan, progress: tqdm[Any]) -> Iterator[Record]:
    for record in scan:
        progress.update(record.offset + record.length - progress.n)
        yield record


@dataclass(slots=True)
class _Page:
    url: str
    status: int
    offset: int
    length: int
    digest: bytes
    payload: tuple[int, int] = _NO_RECORD  # of a revisit record: the record with the body

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key of a record; the best record of a URL has the smallest sort key."""
        return (status_rank(self.status), self.offset)


def _select_records(records: Iterator[Record]) -> list[_Page]:
    """Return the record that answers each URL, in the order of the file."""
    originals: Originals[_Page] = Originals()
    revisits: list[tuple[_Page, RevisitReference]] = []

    def read(record: Record) -> _Page | None:
        page = _page(record)
        if page is None:
            return None
        if record.type == "revisit":
            revisits.append((page, RevisitReference.of(record)))
        else:
            originals.add(record, page)
        return page

    pages = read_get_responses(records, read)
    for page, reference in revisits:
        original = originals.find(reference)
        if original is None:
            page.status = _NO_ORIGINAL
            continue
        page.payload = (original.offset, original.length)
        page.digest = original.digest
        if page.status == NOT_MODIFIED:
            page.status = original.status
    best: dict[str, _Page] = {}
    for page in pages:
        key = schemeless(page.url)
        if page.status != _NO_ORIGINAL and (key not in best or page.rank < best[key].rank):
            best[key] = page
    return sorted(best.values(), key=lambda page: page.offset)


def _page(record: Record) -> _Page | None:
    """Return URL and response of a record; None if the record answers no request."""
    url = urls.normalize(record.target)
    if url is None or len(url) > urls.MAX_URL_LENGTH:
        return None
    status, body = 200, record.block
    if record.type in {"response", "revisit"}:
        response = parse_response(record.block)
        if response is not None:
            status, body = response.status, response.body
        elif record.type == "revisit":  # revisit records need no head
            status, body = NOT_MODIFIED, b""
        if record.type == "response":
            if response is None or status < 200 or status == NOT_MODIFIED:
                return None
            # A redirect from http to https of the same URL would lead to itself.
            target = redirect_target(url, response.headers) if status // 100 == 3 else None
            if target is not None and schemeless(target) == schemeless(url):
                return None
    elif record.type != "resource":
        return None
    digest = hashlib.sha1(body, usedforsecurity=False).digest()
    return _Page(url, status, record.offset, record.length, digest)


def _fingerprint(pages: list[_Page]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for page in sorted(pages, key=lambda page: page.url):
        digest.update(f"{page.url}\n{page.status}\n".encode())
        digest.update(page.digest)
    return digest.hexdigest()
