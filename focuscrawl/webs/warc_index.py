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
from focuscrawl.webs.http_response import HttpResponse, header, parse_response
from focuscrawl.webs.warc_reading import Scan
from focuscrawl.webs.web_protocol import LONGEST_URL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.webs.warc_reading import Record


Arrays = dict[str, npt.NDArray[Any]]

_NOT_MODIFIED = 304
_LOST = -1  # status of a revisit whose original is not in the file
_NO_RECORD = (-1, 0)
_SHOW_PROGRESS_FROM = 64 << 20  # bytes; smaller files are done at once


def schemeless(url: str) -> str:
    """Return an absolute `url` without its scheme: ``http`` and ``https`` are one."""
    return url.partition("//")[2]


def keys_of(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return one 64-bit key for each URL without scheme; shape (len(texts),)."""
    digests = [
        hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest() for text in texts
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


@dataclass(slots=True)
class _Page:
    """A record that may answer for a URL."""

    url: str
    status: int
    offset: int
    length: int
    digest: bytes
    payload: tuple[int, int] = _NO_RECORD  # of a revisit: the record that has the body

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller is better: a page before a redirect before an error, then the first."""
        status_class = self.status // 100
        return (0 if self.status == 200 else status_class - 1, self.offset)


class _Pages:
    """Collects the records of one file."""

    def __init__(self) -> None:
        self.pages: list[tuple[_Page, tuple[str, ...]]] = []  # and the ids of its exchange
        self.originals: dict[str, _Page] = {}  # by what a revisit may call them
        self.revisits: list[tuple[_Page, tuple[str, ...]]] = []
        self.not_get: set[str] = set()  # ids in exchanges with another method than GET

    def add(self, record: Record) -> None:
        exchange = _fields(record, "warc-record-id", "warc-concurrent-to")
        if record.type == "request":
            if not record.block.startswith(b"GET "):
                self.not_get.update(exchange)
            return
        url = urls.normalize(record.target)
        page = None if url is None or len(url) > LONGEST_URL else _page(record, url)
        if page is None:
            return
        self.pages.append((page, exchange))
        dated = _dated(record.target, record.headers.get("warc-date"))
        if record.type == "revisit":
            self.revisits.append((page, _originals(record)))
        else:
            for name in (*_fields(record, "warc-record-id", "warc-payload-digest"), dated):
                self.originals.setdefault(name, page)

    def chosen(self) -> list[_Page]:
        """Return one record a URL, in the order of the file."""
        for page, names in self.revisits:
            original = next((self.originals[n] for n in names if n in self.originals), None)
            if original is None:
                page.status = _LOST
                continue
            page.payload = (original.offset, original.length)
            page.digest = original.digest
            if page.status == _NOT_MODIFIED:
                page.status = original.status
        best: dict[str, _Page] = {}
        for page, exchange in self.pages:
            if page.status == _LOST or not self.not_get.isdisjoint(exchange):
                continue
            key = schemeless(page.url)
            if key not in best or page.rank < best[key].rank:
                best[key] = page
        return sorted(best.values(), key=lambda page: page.offset)


def index_warc(path: Path, file: BinaryIO, size: int) -> tuple[Arrays, dict[str, Any]]:
    """Read a WARC file once and say where the answer for each URL is.

    A URL recorded several times, or under both ``http`` and ``https``, has one answer: the
    first with status 200, else the first of the best class (2xx, 3xx, 4xx, 5xx).

    Parameters
    ----------
    path : name for messages
    file : the WARC file, open
    size : its bytes

    Returns
    -------
    arrays, one row a URL in the order of the file: ``offset``, ``length`` (bytes of the
        record), ``payload_offset``, ``payload_length`` (the record that has the body of a
        revisit; -1 and 0 for others), ``status``, ``url_end`` (where its text ends in
        ``url_text``); and ``key``, sorted, with the ``row`` of each
    facts : ``fingerprint``, ``records``, ``truncated_at``, ``damaged``, ``gzipped``
    """
    scan = Scan(path, file)
    collected = _Pages()
    # disable=None: no bar where standard error is not a terminal
    with tqdm(
        total=size,
        unit="B",
        unit_scale=True,
        desc=f"index {path.name}",
        disable=None if size >= _SHOW_PROGRESS_FROM else True,
    ) as progress:
        for record in scan:
            collected.add(record)
            progress.update(scan.end - progress.n)
    pages = collected.chosen()
    facts = {
        "fingerprint": _fingerprint(pages),
        "records": scan.records,
        "truncated_at": scan.truncated_at,
        "damaged": scan.damaged,
        "gzipped": scan.gzipped,
    }
    return _arrays(pages), facts


def _page(record: Record, url: str) -> _Page | None:
    """Return what the record answers for `url`; None if it is no answer."""
    body = record.block
    if record.type == "resource":
        status = 200
    elif record.type in {"response", "revisit"}:
        response = parse_response(record.block)
        if response is None:
            if record.type == "response":
                return None
            response = HttpResponse(_NOT_MODIFIED, [], b"")  # a revisit may leave out its head
        elif record.type == "response" and not _answers(url, response):
            return None
        status, body = response.status, response.body
    else:
        return None
    digest = hashlib.sha1(body, usedforsecurity=False).digest()
    return _Page(url, status, record.offset, record.length, digest)


def _answers(url: str, response: HttpResponse) -> bool:
    """Say whether a response answers a plain GET for `url`."""
    if response.status < 200 or response.status == _NOT_MODIFIED:
        return False
    if response.status // 100 != 3:
        return True
    # From http to https of the same URL, which are one here: it would lead to itself for ever.
    location = header(response.headers, "location")
    target = urls.resolve(url, [location])[0] if location else None
    return target is None or schemeless(target) != schemeless(url)


def _fields(record: Record, *names: str) -> tuple[str, ...]:
    values = [record.headers.get(name, "") for name in names]
    return tuple(value for value in values if 0 < len(value) <= LONGEST_URL)


def _dated(target: str, date: str | None) -> str:
    return f"{target} {date}"[: 2 * LONGEST_URL]  # a date is short, and so is every known URL


def _originals(record: Record) -> tuple[str, ...]:
    """Return the names of the record a revisit refers to, the surest first."""
    target = record.headers.get("warc-refers-to-target-uri", record.target)
    target = target.removeprefix("<").removesuffix(">")
    date = record.headers.get("warc-refers-to-date")
    names = _fields(record, "warc-refers-to")
    return (*names, _dated(target, date), *_fields(record, "warc-payload-digest"))


def _fingerprint(pages: list[_Page]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for page in sorted(pages, key=lambda page: page.url):
        digest.update(f"{page.url}\n{page.status}\n".encode())
        digest.update(page.digest)
    return digest.hexdigest()


def _arrays(pages: list[_Page]) -> Arrays:
    text = [page.url.encode() for page in pages]
    keys = keys_of([schemeless(page.url) for page in pages])
    rows = np.argsort(keys, kind="stable")
    return {
        "key": keys[rows],
        "row": rows.astype(np.int64),
        "offset": np.array([page.offset for page in pages], dtype=np.int64),
        "length": np.array([page.length for page in pages], dtype=np.int64),
        "payload_offset": np.array([page.payload[0] for page in pages], dtype=np.int64),
        "payload_length": np.array([page.payload[1] for page in pages], dtype=np.int64),
        "status": np.array([page.status for page in pages], dtype=np.int16),
        "url_end": np.cumsum([len(part) for part in text], dtype=np.int64),
        "url_text": np.frombuffer(b"".join(text), dtype=np.uint8),
    }


_FORMAT = 2  # counted up whenever an index of the same file would differ
_SAMPLE = 1 << 16  # bytes at either end of the file that tell it from others
_FACTS = "facts.json"
_UNUSABLE = (OSError, ValueError, EOFError)  # an index that is not there, or not whole


@dataclass(frozen=True, slots=True)
class Index:
    """Where a WARC file holds the answer for each URL.

    `focuscrawl.webs.warc_index.index_warc` says what the arrays and facts are.
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
