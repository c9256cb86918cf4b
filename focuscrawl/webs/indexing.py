"""Which record of a WARC file answers which URL: the one pass that builds the index."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from focuscrawl.foundation import urls
from focuscrawl.webs.http_response import HttpResponse, header, parse_response
from focuscrawl.webs.limits import LONGEST_URL
from focuscrawl.webs.warc_scan import Scan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from focuscrawl.webs.warc import Record

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
