"""Finds the original of a WARC revisit record, by the same rule in WARC files and indexes.

A revisit record (WARC 1.1, section 6.7) has no body, because the response equals an earlier
response, the original. Programs that write WARC files refer to the original by the id of its
record, by URL and date, or only by the digest of the body.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, NamedTuple, Self, TypeVar

from focuscrawl.foundation.urls import normalize, schemeless
from focuscrawl.webs.warc_reading import read_timestamp

if TYPE_CHECKING:
    from focuscrawl.webs.warc_reading import Record

T = TypeVar("T")


class RevisitReference(NamedTuple):
    """The fields of a revisit record that identify the original response.

    Attributes
    ----------
    record_id : str
        Id of the record.
    url : str
        Normalised URL.
    timestamp : str
        Time in UTC, YYYYMMDDhhmmss.
    digest : str
        Digest of the payload without the name of the algorithm.
    """

    record_id: str
    url: str
    timestamp: str
    digest: str

    @classmethod
    def of(cls, revisit: Record) -> Self:
        """Return the fields of a revisit record that identify its original."""
        return cls(
            record_id="".join(revisit.fields("warc-refers-to")),
            url=normalize(revisit.refers_to) or "",
            timestamp=read_timestamp(revisit.headers.get("warc-refers-to-date", "")),
            digest=_without_algorithm("".join(revisit.fields("warc-payload-digest"))),
        )

    def find_best(self, captures: Iterable[tuple[str, str, T]]) -> T | None:
        """Return the capture of `url` with the same time, or else with the same digest, or None.

        Parameters
        ----------
        captures : iterable of (str, str, T)
            Timestamp and digest of each capture of `url`, and what to return for it.
        """
        best, found = 0, None
        for timestamp, digest, each in captures:
            same_time = self.timestamp != "" and timestamp == self.timestamp
            same_digest = self.digest != "" and _without_algorithm(digest) == self.digest
            if (rank := 2 * same_time + same_digest) > best:
                best, found = rank, each
        return found


class Originals(Generic[T]):
    """The records of a WARC file that can be originals of revisit records.

    The original of a revisit record is the record whose id the revisit record names. If the WARC
    file has no record with this id, the original is the record of the same URL with the same time
    or digest. If there is no such record, the original is the first record of any URL with the
    same digest.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, T] = {}
        self._by_digest: dict[str, T] = {}
        self._by_url: dict[str, list[tuple[str, str, T]]] = {}

    def add(self, record: Record, found: T) -> None:
        """Add a record with a body, which may be the original of later revisit records."""
        timestamp = read_timestamp(record.headers.get("warc-date", ""))
        (digest,) = record.fields("warc-payload-digest") or ("",)
        for record_id in record.fields("warc-record-id"):
            self._by_id.setdefault(record_id, found)
        if digest:
            self._by_digest.setdefault(_without_algorithm(digest), found)
        url = schemeless(normalize(record.target) or "")
        self._by_url.setdefault(url, []).append((timestamp, digest, found))

    def find(self, reference: RevisitReference) -> T | None:
        """Return the original of a revisit record; None if the original is not in the file."""
        if reference.record_id in self._by_id:
            return self._by_id[reference.record_id]
        found = reference.find_best(self._by_url.get(schemeless(reference.url), ()))
        return self._by_digest.get(reference.digest) if found is None else found


def _without_algorithm(digest: str) -> str:
    return digest.rpartition(":")[2]
