"""Answers requests with responses from WARC files on any file system (`ArchiveWeb`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import first_line, open_file_system, refuse_special_file
from focuscrawl.foundation.urls import normalize, schemeless
from focuscrawl.webs.captures import is_original, leads_outside, select_captures, surt
from focuscrawl.webs.cdxj_index import BlockIndex, CdxjIndex
from focuscrawl.webs.columnar import ColumnarIndex
from focuscrawl.webs.http_files import HttpFiles, is_http, open_http_files
from focuscrawl.webs.recorded_web import decode_answer
from focuscrawl.webs.revisits import RevisitReference
from focuscrawl.webs.warc_reading import MAX_RECORD_BYTES, Record, content_length, read_record
from focuscrawl.webs.web_protocol import Answer

if TYPE_CHECKING:
    from focuscrawl.webs.captures import Capture, CaptureIndex

logger = logging.getLogger(__name__)

_MAX_CACHED = 100_000  # resolved URLs, about 50 MB
_MAX_OPEN_FILES = 16
_MAX_REQUESTS = 2_000  # to a web server for all URLs of an index


_INDEXES: dict[str, Callable[[Any, str, str], CaptureIndex]] = {  # by file name ending
    "cdxj": CdxjIndex,
    "idx": BlockIndex,
    "parquet": ColumnarIndex,
}


class UnreadableError(Exception):
    """A WARC record that is listed in the index cannot be read."""


class ArchiveWeb:
    """The pages of WARC files, found by an index of their records.

    To fetch a page, one byte range of a WARC file is read. A pickled copy of the object opens the
    same index.

    Parameters
    ----------
    index : str
        Path or URI that ends in ``.cdxj``, ``.idx`` or ``.parquet``.
    base : str, optional
        Folder or URI of the WARC files; by default the folder of the index.

    Attributes
    ----------
    name : str
        File name of the index without ending.
    fingerprint : str
        Hex digest of the index (samples of a CDXJ), equal for a copy of the index.

    Raises
    ------
    UserError
        The index cannot be read or is invalid.
    """

    def __init__(self, index: str, base: str | None = None) -> None:
        self._given = (index, base)
        place, mark, options = index.partition("?")
        folder, name = place.rpartition("/")[::2]
        self.name = name.rpartition(".")[0] or index
        ending = place.rpartition(".")[2]
        if ending == "parquet" and is_http(index):
            raise UserError(
                f"{place}: an index in Parquet cannot be read from a web server: copy the index, "
                "and name the server of the WARC files after a comma"
            )
        files, path = _open_files(index)
        self._index: CaptureIndex = _INDEXES[ending](files, path, place)
        self.fingerprint = self._index.fingerprint
        start = folder or "." if base is None else base
        self._base = start.partition("?")[0].rstrip("/")
        own_options = mark + options if base is None else ""
        self._files, below = _open_files(start + own_options)
        self._folder = below.rstrip("/")
        self._open = lru_cache(_MAX_OPEN_FILES)(self._files.open_input_file)
        self._known: dict[str, Capture | None] = {}
        first = next(iter(self._index))
        try:
            self._open_warc(first.filename)
        except UnreadableError as error:
            logger.warning("%s: %s", place, error)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), self._given)

    def urls(self) -> Iterator[str]:
        """Yield every recorded URL in the order of the index.

        Raises
        ------
        UserError
            The index is not sorted, or is too large to be read from a web server.
        """
        if self._index.requests > _MAX_REQUESTS:
            raise UserError(
                f"{self._index.name} lists too many URLs to read them all from a web server: name "
                "another recording with --web, or copy the lines that you need to a .cdxj file"
            )
        last = ""
        for key, captures in groupby(self._index, key=lambda capture: capture.key):
            if key < last:
                raise UserError(
                    f"{self._index.name} is not sorted: the key {key} comes too late; sort the "
                    "index"
                )
            last = key
            yield from (capture.url for capture in select_captures(captures, None).values())

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return the recorded spelling (``http`` or ``https``) of each normalised URL, or None."""
        return [None if each is None else each.url for each in self._captures(urls)]

    def fetch(self, url: str) -> Answer | None:
        """Return the recorded response for a normalised URL; None if the URL is not in the index.

        `Answer.failure` is set if the record cannot be read.
        """
        capture = self._captures([url])[0]
        if capture is None:
            return None
        try:
            record = self._record(capture)
            holder = self._original(capture, record) if record.type == "revisit" else record
            answer = decode_answer(capture.url, record, holder)
        except UnreadableError as error:
            return Answer(capture.url, 0, [], b"", failure=str(error))
        return answer or Answer(
            capture.url, 0, [], b"", failure=f"no HTTP response {_where(capture)}"
        )

    def _captures(self, urls: Sequence[str]) -> list[Capture | None]:
        known = self._known
        new = {url for url in urls if url not in known}
        if new:
            if len(known) + len(new) > _MAX_CACHED:
                known = self._known = {url: known[url] for url in urls if url in known}
            texts = frozenset(map(schemeless, new))
            found = select_captures(self._index.find(sorted({surt(url) for url in new})), texts)
            known.update((url, found.get(schemeless(url))) for url in new)
        return [known[url] for url in urls]

    def _record(self, capture: Capture) -> Record:
        """Read a record up to the size limit; raise UnreadableError."""
        record = self._read(capture, capture.filename, capture.offset, capture.length)
        if normalize(record.target) != normalize(capture.url):
            raise UnreadableError(f"no record of this URL {_where(capture)}")
        return record

    def _read(self, capture: Capture, filename: str, offset: int, length: int) -> Record:
        """Read the record at a place that the index names for a capture."""
        size = min(length, MAX_RECORD_BYTES)
        try:
            data = self._open_warc(filename).read_at(size, offset)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnreadableError(f"{first_line(error)} {_where(capture)}") from None
        record = read_record(data, offset)
        if record is None:
            raise UnreadableError(f"no record of this URL {_where(capture)}")
        declared = content_length(record.headers) or 0
        if not record.too_large and len(record.block) < declared:
            raise UnreadableError(f"an incomplete record {_where(capture)}")
        return record

    def _original(self, capture: Capture, revisit: Record) -> Record:
        """Return the original record that a revisit record refers to; raise UnreadableError."""
        if capture.orig_filename:
            place = (capture.orig_filename, capture.orig_offset, capture.orig_length)
            return self._read(capture, *place)
        reference = RevisitReference.of(revisit)
        text = schemeless(reference.url)
        found = reference.find_best(
            (each.timestamp, each.digest, each)
            for each in self._index.find([surt(reference.url)] if text else [])
            if schemeless(normalize(each.url) or "") == text and is_original(each, text)
        )
        if found is None:
            raise UnreadableError(f"the index lacks the original record of {reference.url}")
        return self._record(found)

    def _open_warc(self, name: str) -> fs.NativeFile:
        """Open a WARC file; refuse paths outside the folder of the archive."""
        if leads_outside(name):
            raise UnreadableError(f"the index names {name!r}, which is outside {self._base}")
        path = f"{self._folder}/{name}"
        try:
            refuse_special_file(self._files, path, self._folder)
            return self._open(path)
        except UserError as error:
            raise UnreadableError(str(error)) from None
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = (
                "does not exist" if isinstance(error, FileNotFoundError) else first_line(error)
            )
            raise UnreadableError(f"{self._base}/{name} {reason}") from None


def _open_files(place: str) -> tuple[fs.FileSystem | HttpFiles, str]:
    """Return the file system or web server of a path or URI, and the path there."""
    return open_http_files(place) if is_http(place) else open_file_system(place)


def _where(capture: Capture) -> str:
    return f"at byte {capture.offset:,} of {capture.filename!r}"
