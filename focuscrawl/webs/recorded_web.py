"""`RecordedWeb`: answers URLs from a WARC file, as they were answered then."""

from __future__ import annotations

import os
import weakref
from collections import Counter
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
from focuscrawl.webs.web_protocol import Answer, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

_REMEMBERED = 200_000  # resolved URLs, about 50 MB


class RecordedWeb:
    """The pages of a ``.warc`` or ``.warc.gz`` file.

    Opening one is instant, but for the first time, when its index is built. It can be pickled:
    the copy opens the same path.

    Parameters
    ----------
    path : the WARC file, or a link to it
    no_links : refuse a link, as the path comes from a file and not from the user

    Attributes
    ----------
    name : the file's name without its suffixes
    fingerprint : hex digest of all URLs, statuses and bodies: the same for the same pages,
        wherever and however compressed the file is
    records : whole records in the file, of any type
    truncated_at : offset from which on nothing could be read; None if the file is whole
    damaged : unreadable stretches inside the file

    Raises
    ------
    UserError
        If the file cannot be read, is no WARC file, or holds no page.
    """

    def __init__(self, path: str | os.PathLike[str], *, no_links: bool = False) -> None:
        self.path, self._no_links = Path(path), no_links
        self.name = self.path.name.removesuffix(".gz").removesuffix(".warc")
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
        self._gzipped: bool = facts["gzipped"]
        self._known: dict[str, str | None] = {}
        warn_of_damage(self.path, size, self.records, self.truncated_at, self.damaged)

    def __len__(self) -> int:
        return len(self._index)

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(type(self), no_links=self._no_links), (self.path,))

    @property
    def statuses(self) -> npt.NDArray[np.int16]:
        """HTTP status of each URL, in the order of `urls`."""
        return self._index.arrays["record"]["status"]

    @property
    def hosts(self) -> Counter[str]:
        """Number of URLs of each host."""
        return Counter(host(url) for url in self._index.urls())

    def urls(self) -> Iterator[str]:
        """Iterate over every URL, in the order recorded."""
        return self._index.urls()

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map each normalised URL to the URL recorded, ``http`` or ``https``; None if none is."""
        known = self._known
        new = list({url for url in urls if url not in known})
        if new:
            if len(known) + len(new) > _REMEMBERED:
                known = self._known = {url: known[url] for url in urls if url in known}
            for url, row in zip(new, self._index.rows(new), strict=True):
                known[url] = None if row is None else self._index.url(row)
        return [known[url] for url in urls]

    def fetch(self, url: str) -> Answer | None:
        """Return what was answered for a normalised URL; None if it was not recorded.

        Raises
        ------
        UserError
            If the file was changed after it was opened.
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
        record = read_record(data, offset, self._gzipped) if len(data) == size else None
        if record is None:
            raise self._changed()
        return record

    def _changed(self) -> UserError:
        return UserError(f"{self.path} was changed while it was in use: start again")


def decode_answer(url: str, record: Record, holder: Record) -> Answer | None:
    """Return what a record answers.

    Parameters
    ----------
    url : as recorded, normalised
    holder : the record that has the body of a revisit; of others the same

    Returns
    -------
    None if it is no answer
    """
    response = _response(holder)
    if response is None:
        return None
    if holder is not record:
        response = _revisited(parse_response(record.block), response)
    try:
        headers, body = decode_body(response.headers, response.body)
    except TooLargeError:
        return Answer(url, response.status, response.headers, b"", too_large=True)
    if holder.too_large:
        body = b""
    return Answer(url, response.status, headers, body, holder.too_large)


def _response(record: Record) -> HttpResponse | None:
    if record.type == "resource":
        kind = record.headers.get("content-type", "application/octet-stream")
        return HttpResponse(200, [("Content-Type", kind)], record.block)
    return parse_response(record.block)


def _revisited(revisit: HttpResponse | None, original: HttpResponse) -> HttpResponse:
    """Return the head of a revisit with the body of its original.

    A 304 has no head of its own to speak of: the original answers.
    """
    if revisit is None or revisit.status == NOT_MODIFIED:
        return original
    own = [(n, v) for n, v in revisit.headers if n.lower() not in BODY_CODING_FIELDS]
    wrapping = [(n, v) for n, v in original.headers if n.lower() in BODY_CODING_FIELDS]
    return HttpResponse(revisit.status, own + wrapping, original.body)
