"""The index of a WARC file: which record answers which URL; built once, kept in the cache."""

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
from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.foundation import urls
from focuscrawl.foundation.files import cache_dir
from focuscrawl.webs.http_response import NOT_MODIFIED, parse_response, redirect_target
from focuscrawl.webs.warc_reading import WarcScan, read_get_responses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.webs.warc_reading import Record

_FORMAT = 3  # counted up whenever an index of the same file would differ
_SAMPLE = 1 << 16  # bytes at either end of the file that tell it from others
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
_UNUSABLE = (OSError, ValueError, EOFError)  # an index that is not there, or not whole

_LOST = -1  # status of a revisit whose original is not in the file
_NO_RECORD = (-1, 0)
_SHOW_PROGRESS_FROM = 64 << 20  # bytes; smaller files are done at once


def schemeless(url: str) -> str:
    """Return an absolute `url` without its scheme: ``http`` and ``https`` are one."""
    return url.partition("//")[2]


def url_keys(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return one 64-bit key for each URL without scheme; shape (len(texts),)."""
    digests = [
        hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest() for text in texts
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def status_rank(status: int) -> int:
    """Return how good an answer is: a page (0) before a redirect before an error."""
    return 0 if status == 200 else status // 100 - 1


@dataclass(frozen=True, slots=True)
class WarcIndex:
    """Where a WARC file holds the answer for each URL.

    A URL recorded several times, or under both ``http`` and ``https``, has one answer: the
    first with status 200, else the first of the best class (2xx, 3xx, 4xx, 5xx).

    Attributes
    ----------
    arrays : ``record``, one row a URL in the order of the file: ``offset`` and ``length`` (bytes
        of the record), ``payload_offset`` and ``payload_length`` (the record that has the body of
        a revisit; -1 and 0 for others), ``status``, ``url_end`` (where its text ends in
        ``url_text``); ``key``, sorted, with the ``row`` of each
    facts : ``fingerprint``, ``records``, ``truncated_at``, ``damaged``, ``gzipped``
    """

    arrays: dict[str, npt.NDArray[Any]]
    facts: dict[str, Any]

    def __len__(self) -> int:
        return len(self.arrays["row"])

    def url(self, row: int) -> str:
        """Return the URL of a row, as recorded and normalised."""
        ends = self.arrays["record"]["url_end"]
        start = int(ends[row - 1]) if row else 0
        return self.arrays["url_text"][start : int(ends[row])].tobytes().decode()

    def urls(self) -> Iterator[str]:
        """Iterate over the URLs of all rows."""
        text = self.arrays["url_text"].tobytes()
        start = 0
        for end in self.arrays["record"]["url_end"].tolist():
            yield text[start:end].decode()
            start = end

    def rows(self, urls: Sequence[str]) -> list[int | None]:
        """Return the row of each normalised URL, whatever its scheme; None if there is none."""
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
        """Return the row that has just this text among those of equal key."""
        keys = self.arrays["key"]
        while place < len(keys) and keys[place] == key:
            row = int(self.arrays["row"][place])
            if schemeless(self.url(row)) == text:
                return row
            place += 1
        return None


def open_index(path: Path, file: BinaryIO) -> WarcIndex:
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
    index = _build(path, file, size)
    if not index.facts["records"]:
        raise UserError(f"{path} holds no whole WARC record: name a .warc or .warc.gz file")
    if not len(index):
        raise UserError(f"{path} holds no page: none of its records answers a GET")
    try:
        _save(folder, index)
    except OSError as error:
        raise UserError(
            f"cannot keep the index of {path} in {folder.parent} ({error.strerror}): "
            "set FOCUSCRAWL_CACHE to a folder that can be written"
        ) from error
    return index  # not loaded: another process may be putting its own there


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
        arrays[name] = np.asarray(mapped)  # the same memory, without memmap's cost an access
    return WarcIndex(arrays, facts)


def _save(folder: Path, index: WarcIndex) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        for name, array in index.arrays.items():
            np.save(building / f"{name}.npy", array)
        (building / _FACTS).write_text(json.dumps(index.facts))
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


def _build(path: Path, file: BinaryIO, size: int) -> WarcIndex:
    scan = WarcScan(path, file)
    # disable=None: no bar where standard error is not a terminal
    with tqdm(
        total=size,
        unit="B",
        unit_scale=True,
        desc=f"index {path.name}",
        disable=None if size >= _SHOW_PROGRESS_FROM else True,
    ) as progress:
        pages = _chosen(_shown(scan, progress))
    facts = {
        "fingerprint": _fingerprint(pages),
        "records": scan.records,
        "truncated_at": scan.truncated_at,
        "damaged": scan.damaged,
        "gzipped": scan.gzipped,
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


def _shown(scan: WarcScan, progress: tqdm[Any]) -> Iterator[Record]:
    for record in scan:
        progress.update(scan.end - progress.n)
        yield record


@dataclass(slots=True)
class _Page:
    url: str
    status: int
    offset: int
    length: int
    digest: bytes
    payload: tuple[int, int] = _NO_RECORD  # of a revisit: the record that has the body

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller is better."""
        return (status_rank(self.status), self.offset)


def _chosen(records: Iterator[Record]) -> list[_Page]:
    """Return the record that answers each URL, in the order of the file."""
    originals: dict[str, _Page] = {}  # by the names that a revisit may have for them
    revisits: list[tuple[_Page, tuple[str, ...]]] = []

    def read(record: Record) -> _Page | None:
        page = _page(record)
        if page is None:
            return None
        if record.type == "revisit":
            revisits.append((page, _originals(record)))
        else:
            dated = _dated(record.target, record.headers.get("warc-date"))
            for name in (*record.fields("warc-record-id", "warc-payload-digest"), dated):
                originals.setdefault(name, page)
        return page

    pages = read_get_responses(records, read)
    for page, names in revisits:
        original = next((originals[name] for name in names if name in originals), None)
        if original is None:
            page.status = _LOST
            continue
        page.payload = (original.offset, original.length)
        page.digest = original.digest
        if page.status == NOT_MODIFIED:
            page.status = original.status
    best: dict[str, _Page] = {}
    for page in pages:
        key = schemeless(page.url)
        if page.status != _LOST and (key not in best or page.rank < best[key].rank):
            best[key] = page
    return sorted(best.values(), key=lambda page: page.offset)


def _page(record: Record) -> _Page | None:
    """Return the URL and the answer of a record; None if it is no answer."""
    url = urls.normalize(record.target)
    if url is None or len(url) > urls.MAX_URL_LENGTH:
        return None
    status, body = 200, record.block
    if record.type in {"response", "revisit"}:
        response = parse_response(record.block)
        if response is not None:
            status, body = response.status, response.body
        elif record.type == "revisit":  # which may leave out its head
            status, body = NOT_MODIFIED, b""
        if record.type == "response":
            if response is None or status < 200 or status == NOT_MODIFIED:
                return None
            # From http to https of the same URL, which are one here: it would lead to itself.
            target = redirect_target(url, response.headers) if status // 100 == 3 else None
            if target is not None and schemeless(target) == schemeless(url):
                return None
    elif record.type != "resource":
        return None
    digest = hashlib.sha1(body, usedforsecurity=False).digest()
    return _Page(url, status, record.offset, record.length, digest)


def _dated(target: str, date: str | None) -> str:
    return f"{target} {date}"[
        : 2 * urls.MAX_URL_LENGTH
    ]  # a date is short, and so is every known URL


def _originals(record: Record) -> tuple[str, ...]:
    """Return the names of the record a revisit refers to, the surest first."""
    dated = _dated(record.refers_to, record.headers.get("warc-refers-to-date"))
    return (*record.fields("warc-refers-to"), dated, *record.fields("warc-payload-digest"))


def _fingerprint(pages: list[_Page]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for page in sorted(pages, key=lambda page: page.url):
        digest.update(f"{page.url}\n{page.status}\n".encode())
        digest.update(page.digest)
    return digest.hexdigest()
