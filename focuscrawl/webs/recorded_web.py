"""Answers requests with the responses recorded in a WARC or WACZ file (`RecordedWeb`)."""

from __future__ import annotations

import os
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import open_nofollow, open_regular
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.webs.http_response import (
    BODY_CODING_FIELDS,
    NOT_MODIFIED,
    HttpResponse,
    decode_body,
    parse_response,
)
from focuscrawl.webs.warc_index import open_index
from focuscrawl.webs.warc_reading import MAX_RECORD_BYTES, Record, read_record, warn_of_damage
from focuscrawl.webs.web_protocol import TRUNCATIONS, Answer, TooLargeError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MAX_CACHED = 200_000  # resolved URLs, about 50 MB


class RecordedWeb:
    """The pages of a WARC file (``.warc``, ``.warc.gz``) or WACZ file (``.wacz``).

    When the file is opened for the first time, an index is built and cached. A pickled copy of the
    object opens the same file.

    Parameters
    ----------
    path : str or os.PathLike
        The file, or a link to the file.
    no_links : bool
        Refuse a link, because the path comes from a file and not from the user.

    Attributes
    ----------
    name : str
        File name without suffixes.
    fingerprint : str
        Hex digest of all URLs, statuses and bodies, independent of path and compression.
    records : int
        Complete records of any type.
    truncated_at : int or None
        Offset after which nothing is readable; None if the file is complete.
    damaged : int
        Unreadable sections inside the file.

    Raises
    ------
    UserError
        The file cannot be read, is neither a WARC file nor a WACZ file, or contains no page.
    """

    def __init__(self, path: str | os.PathLike[str], *, no_links: bool = False) -> None:
        self.path, self._no_links = Path(path), no_links
        self.name = self.path.name.removesuffix(".gz").removesuffix(".warc").removesuffix(".wacz")
        try:
            opener = open_nofollow if no_links else open_regular
            with open(self.path, "rb", buffering=1 << 20, opener=opener) as file:
                self._index = open_index(self.path, file)
                self._file = os.dup(file.fileno())
                size = os.fstat(self._file).st_size
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror}") from error
        weakref.finalize(self, os.close, self._file)
        facts = self._index.facts
        self.fingerprint: str = facts["fingerprint"]
        self.records: int = facts["records"]
        self.truncated_at: int | None = facts["truncated_at"]
        self.damaged: int = facts["damaged"]
        self._known: dict[str, str | None] = {}
        warn_of_damage(self.path, size, self.records, self.truncated_at, self.damaged)

    def __len__(self) -> int:
        return len(self._index)

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(type(self), no_links=self._no_links), (self.path,))

    @property
    def statuses(self) -> npt.NDArray[np.int16]:
        """HTTP status of each recorded URL, in the order of `urls`."""
        return self._index.arrays["record"]["status"]

    @property
    def hosts(self) -> Counter[str]:
        """Number of recorded URLs per host."""
        return Counter(host(url) for url in self._index.urls())

    def urls(self) -> Iterator[str]:
        """Yield every recorded URL in the order of recording."""
        return self._index.urls()

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map each normalised URL to its recorded URL, ``http`` or ``https``; None if missing."""
        known = self._known
        new = list({url for url in urls if url not in known})
        if new:
            if len(known) + len(new) > _MAX_CACHED:
                known = self._known = {url: known[url] for url in urls if url in known}
            for url, row in zip(new, self._index.rows(new), strict=True):
                known[url] = None if row is None else self._index.url(row)
        return [known[url] for url in urls]

    def fetch(self, url: str) -> Answer | None:
        """Return the recorded response for a normalised URL; None if the URL was not recorded.

        Raises
        ------
        UserError
            The file was changed after it was opened.
        """
        row = self._index.rows([url])[0]
        if row is None:
            return None
        offset, length, payload, size, _, _ = self._index.arrays["record"].item(row)
        recorded = self._index.url(row)
        record = self._read(offset, length)
        if normalize(record.target) != recorded:
            raise self._changed()
        holder = record if payload < 0 else self._read(payload, size)
        answer = decode_answer(recorded, record, holder)
        if answer is None:
            raise self._changed()
        return answer

    def _read(self, offset: int, length: int) -> Record:
        size = min(length, MAX_RECORD_BYTES)
        data = os.pread(self._file, size, offset)
        record = read_record(data, offset) if len(data) == size else None
        if record is None:
            raise self._changed()
        return record

    def _changed(self) -> UserError:
        return UserError(
            f"{self.path} was changed while the program read it: run the command again"
        )


def decode_answer(url: str, record: Record, holder: Record) -> Answer | None:
    """Return the HTTP response in a WARC record, with the decoded body, or None.

    Parameters
    ----------
    url : str
        Normalised URL as recorded.
    holder : Record
        Record with the body: the original of a revisit record, or else `record`.
    """
    response = _response(holder)
    if response is None:
        return None
    if holder is not record:
        response = _revisited(parse_response(record.block), response)
    truncated = holder.headers.get("warc-truncated", "").lower()
    if truncated and truncated not in TRUNCATIONS:
        truncated = TRUNCATIONS[-1]
    try:
        headers, body = decode_body(response.headers, response.body)
    except TooLargeError:
        return Answer(url, response.status, response.headers, b"", too_large=True)
    if holder.too_large:
        body = b""
    return Answer(url, response.status, headers, body, holder.too_large, truncated=truncated)


def _response(record: Record) -> HttpResponse | None:
    if record.type == "resource":
        kind = record.headers.get("content-type", "application/octet-stream")
        return HttpResponse(200, [("Content-Type", kind)], record.block)
    return parse_response(record.block)


def _revisited(revisit: HttpResponse | None, original: HttpResponse) -> HttpResponse:
    """Return the headers of a revisit record with the body of the original record.

    A 304 has no headers for the page, so the original headers stay.
    """
    if revisit is None or revisit.status == NOT_MODIFIED:
        return original
    own = [(n, v) for n, v in revisit.headers if n.lower() not in BODY_CODING_FIELDS]
    wrapping = [(n, v) for n, v in original.headers if n.lower() in BODY_CODING_FIELDS]
    return HttpResponse(revisit.status, own + wrapping, original.body)
