"""A capture: what an index of an archive says of one record, and which of a URL's counts.

The names are those of CDXJ, https://specs.webrecorder.net/cdxj/0.1.0/.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from focuscrawl.foundation.urls import normalize
from focuscrawl.webs.indexing import schemeless
from focuscrawl.webs.limits import LONGEST_URL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REVISIT = "warc/revisit"  #: media type that indices give to records without a body of their own
_AT = re.compile(r"\d{14}")
_MOST_DIGITS = 15
_NOT_MODIFIED = 304


class Capture(NamedTuple):
    """One record of an archive.

    Attributes
    ----------
    key : see `focuscrawl.webs.surt`
    timestamp : when it was fetched, YYYYMMDDhhmmss in UTC
    mime : media type; `REVISIT` for a record that refers to another
    status : of HTTP; None where the record says none
    digest : of the payload; empty if unknown
    filename : of the WARC file, below the folder of the archive
    offset, length : the bytes the record takes there
    redirect : where it leads; empty if nowhere, or unknown
    """

    key: str
    timestamp: str
    url: str
    mime: str
    status: int | None
    digest: str
    filename: str
    offset: int
    length: int
    redirect: str

    @property
    def rank(self) -> tuple[int, bool, int, str, int]:
        """Smaller is better: of the best class, with a body of its own, the latest; the first."""
        status = 200 if self.status in {None, _NOT_MODIFIED} else self.status
        assert status is not None
        return (
            0 if status == 200 else status // 100 - 1,
            self.mime == REVISIT,
            -int(self.timestamp),
            self.filename,
            self.offset,
        )


class CaptureIndex(Protocol):
    """Where the captures of URLs are found.

    Attributes
    ----------
    name : of the file, for messages
    fingerprint : hex digest, the same for a copy elsewhere
    """

    name: str
    fingerprint: str

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures that have one of the keys."""
        ...

    def __iter__(self) -> Iterator[Capture]:
        """Yield all captures, in the order of their keys."""
        ...


def read_capture(key: str, timestamp: str, said: Mapping[str, object]) -> Capture:
    """Return what an index says of a record.

    Raises
    ------
    ValueError
        It says something that cannot be, or too little.
    """
    texts = {name: said.get(name) or "" for name in ("url", "mime", "digest", "filename")}
    redirect = said.get("redirect") or ""
    if not all(isinstance(each, str) for each in (*texts.values(), redirect)):
        raise ValueError("a text is none")
    if not (texts["url"] and texts["filename"] and _AT.fullmatch(timestamp)):
        raise ValueError("no URL, file name or time")
    status = said.get("status")
    number = None if status is None or status in ("", "-") else _whole(status)
    length = _whole(said.get("length"))
    if number is not None and not 100 <= number <= 999:
        raise ValueError("no status")
    if not length:
        raise ValueError("no length")
    return Capture(
        key=key,
        timestamp=timestamp,
        url=str(texts["url"]),
        mime=str(texts["mime"]),
        status=number,
        digest=str(texts["digest"]),
        filename=str(texts["filename"]),
        offset=_whole(said.get("offset")),
        length=length,
        redirect=str(redirect),
    )


def best_of(captures: Iterator[Capture], wanted: frozenset[str] | None) -> dict[str, Capture]:
    """Choose one capture a URL, by the URL without its scheme; `Capture.url` is normalised then.

    A page comes before a redirect before an error, a record with a body of its own before one
    that refers to another, then the latest, and of equally late ones the first of its file. Not
    modified and what only leads from ``http`` to ``https`` of the same URL are no answers.

    Parameters
    ----------
    wanted : URLs without scheme; None: all
    """
    best: dict[str, Capture] = {}
    for capture in captures:
        url = normalize(capture.url)
        if url is None or len(url) > LONGEST_URL:
            continue
        text = schemeless(url)
        if wanted is not None and text not in wanted:
            continue
        kept = best.get(text)
        if _answers(capture, text) and (kept is None or capture.rank < kept.rank):
            best[text] = capture._replace(url=url)
    return best


def _answers(capture: Capture, text: str) -> bool:
    if capture.status is not None and not 200 <= capture.status < 600:
        return False
    if capture.status == _NOT_MODIFIED and capture.mime != REVISIT:
        return False
    target = normalize(capture.redirect) if capture.redirect else None
    return target is None or schemeless(target) != text


def _whole(value: object) -> int:
    """Read a whole number, 0 or more, written as one or as a text."""
    text = str(value)
    if isinstance(value, bool) or len(text) > _MOST_DIGITS or not re.fullmatch("[0-9]+", text):
        raise ValueError("a number is none")
    return int(text)
