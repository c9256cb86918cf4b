"""Captures (index entries of recorded responses), their selection by URL, and lines of CDXJ.

The field names are those of CDXJ (https://specs.webrecorder.net/cdxj/0.1.0/), the index format of
pywb and OutbackCDX.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import unquote_to_bytes

from focuscrawl.foundation.urls import MAX_URL_LENGTH, host, normalize, schemeless
from focuscrawl.webs.http_response import NOT_MODIFIED, status_rank

REVISIT = "warc/revisit"  #: media type of revisit records, which have no body, in indexes
_TIMESTAMP = re.compile(r"\d{14}")
_OTHER_METHOD = re.compile(r"[?&]__wb_method=(?!get(?:&|$))", re.IGNORECASE)
_OUTSIDE_PATH = re.compile(r"^[/\\]|^[A-Za-z]:|://|\\|\0|(^|/)\.\.(/|$)")
_MOST_DIGITS = 15

MAX_LINE_BYTES = 1 << 15

_ESCAPED = re.compile(rb"[\x00-\x20#%\x7f-\xff]")
_PORT = re.compile(rb":\d+$")
_WWW = re.compile(rb"^www\d*\.(?=.)")
_SESSION_PATH = re.compile(
    rb"/(?:\([0-9a-z]{24}\)|\((?:[a-z]\([0-9a-z]{24}\))+\))(?=/[^?]+\.aspx)"
)
_SESSION_QUERY = re.compile(
    rb"(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}"
    rb"|cfid=[^&]+&cftoken=[^&]+)(?:&|$)"
)


def surt(url: str) -> str:
    """Return the index key of a normalised URL, such as ``com,example)/a?b=1``.

    The crawler Heritrix introduced SURT keys (Sort-friendly URI Reordering Transform) for archive
    indexes. The Python package ``surt`` computes the same keys, but has an AGPL licence and no
    wheel.
    """
    name = host(url)
    rest = url.partition("://")[2][len(name) :].partition("#")[0]
    path, mark, query = rest.partition("?")
    plain = _escape(_without_dots(_unescape(path))).lower()
    key = _SESSION_PATH.sub(b"", plain)
    if mark:
        key += _arguments(_escape(_unescape(query)).lower())
    return (_reversed_host(name) + b")" + key).decode("ascii")


def _reversed_host(name: str) -> bytes:
    plain = _escape(_unescape(name)).lower()
    port = _PORT.search(plain)
    plain = _WWW.sub(b"", _PORT.sub(b"", plain).strip(b"."))
    if not plain.startswith(b"["):
        plain = b",".join(reversed(plain.split(b".")))
    return plain.strip(b"[]") + (b"" if port is None else port[0])


def _arguments(query: bytes) -> bytes:
    """Return the sorted arguments of a query without session ids."""
    kept = _SESSION_QUERY.sub(b"", query)
    arguments = sorted(kept.split(b"&"), key=lambda each: each.partition(b"="))
    return b"?" + b"&".join(arguments) if kept else b""


def _unescape(text: str) -> bytes:
    """Undo percent-encoding repeatedly until the text no longer changes."""
    data = text.encode("utf-8", "surrogatepass")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return data


def _escape(data: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: b"%%%02x" % match[0][0], data)


def _without_dots(path: bytes) -> bytes:
    """Return a path without empty parts, ``.``, ``..`` and the final slash."""
    parts: list[bytes] = []
    for part in path[1:].split(b"/"):
        if part == b".." and parts:
            del parts[-1]
        elif part != b".":
            parts.append(part)
    return b"/" + b"/".join(filter(None, parts))


class Capture(NamedTuple):
    """A capture, which is the index entry of a recorded response.

    Attributes
    ----------
    key : str
        See `surt`.
    timestamp : str
        Time of the fetch in UTC, YYYYMMDDhhmmss.
    mime : str
        Media type; `REVISIT` for a revisit record.
    status : int or None
        HTTP status; None if the index has none.
    digest : str
        Digest of the payload; empty if unknown.
    filename : str
        WARC file, relative to the folder of the archive.
    offset, length : int
        Position and size of the record in bytes.
    redirect : str
        Redirect target; empty if none or unknown.
    method : str
        HTTP method of the request; empty if unknown.
    orig_filename : str
    orig_offset, orig_length : int
        WARC file, position and size of the original of a revisit record; empty and 0 if unknown.
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
    method: str = ""
    orig_filename: str = ""
    orig_offset: int = 0
    orig_length: int = 0

    @property
    def rank(self) -> tuple[int, bool, int, str, int]:
        """Sort key of a capture; the best capture of a URL has the smallest sort key."""
        status = 200 if self.status is None or self.status == NOT_MODIFIED else self.status
        return (
            status_rank(status),
            self.mime == REVISIT,
            -int(self.timestamp),
            self.filename,
            self.offset,
        )


class CaptureIndex(Protocol):
    """Interface of indexes that find captures (index entries) by URL key.

    Attributes
    ----------
    name : str
        File name for messages.
    fingerprint : str
        Hex digest, equal for copies of the index.
    requests : int
        Requests to a web server that it takes to read the whole index; 0 for other files.
    """

    name: str
    fingerprint: str
    requests: int

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures with one of the given URL keys."""
        ...

    def __iter__(self) -> Iterator[Capture]:
        """Yield all captures in the order of their keys."""
        ...


def parse_capture(key: str, timestamp: str, about: Mapping[str, object]) -> Capture:
    """Return the `Capture` that the fields of an index entry describe.

    Raises
    ------
    ValueError
        A field is missing or invalid.
    """
    names = ("url", "mime", "digest", "filename", "redirect", "method", "orig.filename")
    texts = {field_of(name): _require_text(about.get(name) or "") for name in names}
    if not (texts["url"] and texts["filename"] and _TIMESTAMP.fullmatch(timestamp)):
        raise ValueError("URL, file name or time is missing")
    status = about.get("status")
    number = None if status is None or status in ("", "-") else _require_integer(status)
    offset, length = _require_integer(about.get("offset")), _require_integer(about.get("length"))
    if number is not None and not 100 <= number <= 999:
        raise ValueError("the status is invalid")
    if not length:
        raise ValueError("the length is 0")
    return Capture(
        key=key,
        timestamp=timestamp,
        status=number,
        offset=offset,
        length=length,
        orig_offset=_require_integer(about.get("orig.offset") or 0),
        orig_length=_require_integer(about.get("orig.length") or 0),
        **texts,
    )


def field_of(name: str) -> str:
    """Return the attribute of `Capture` for the name of a CDXJ field."""
    return name.replace(".", "_")


def select_captures(
    captures: Iterator[Capture], wanted: frozenset[str] | None
) -> dict[str, Capture]:
    """Return the best capture (index entry) of each URL, in a dict by URL without scheme.

    A page is preferred to a redirect, and a redirect is preferred to an error. Among captures of
    equal status, a record with a body is preferred to a revisit record, and then the latest
    capture is preferred. Responses with status 304, and redirects from ``http`` to ``https`` of
    the same URL, are skipped. Responses to methods other than GET, to whose keys pywb adds
    ``__wb_method``, are also skipped. The attribute `url` of the returned captures is normalised.

    Parameters
    ----------
    captures : iterator of Capture
    wanted : frozenset of str or None
        URLs without scheme; None selects all URLs.
    """
    best: dict[str, Capture] = {}
    for capture in captures:
        url = normalize(capture.url)
        if url is None or len(url) > MAX_URL_LENGTH:
            continue
        text = schemeless(url)
        if wanted is not None and text not in wanted:
            continue
        kept = best.get(text)
        if _is_response(capture, text) and (kept is None or capture.rank < kept.rank):
            best[text] = capture._replace(url=url)
    return best


def is_original(capture: Capture, text: str) -> bool:
    """Return whether a capture can be the original to which a revisit record refers."""
    return capture.mime != REVISIT and _is_response(capture, text)


def leads_outside(filename: str) -> bool:
    """Return whether a file name in an index leads out of the folder of the archive."""
    return _OUTSIDE_PATH.search(filename) is not None


def _is_response(capture: Capture, text: str) -> bool:
    if capture.method.upper() not in {"", "GET"} or _OTHER_METHOD.search(capture.key):
        return False
    if capture.status is not None and not 200 <= capture.status < 600:
        return False
    if capture.status == NOT_MODIFIED and capture.mime != REVISIT:
        return False
    target = normalize(capture.redirect) if capture.redirect else None
    return target is None or schemeless(target) != text


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a field is not a text")
    return value


def _require_integer(value: object) -> int:
    """Return a whole number that is 0 or more; the value may be a text."""
    text = str(value)
    if isinstance(value, bool) or len(text) > _MOST_DIGITS or not re.fullmatch("[0-9]+", text):
        raise ValueError("a field is not a whole number")
    return int(text)


def format_cdxj_line(capture: Capture) -> bytes:
    """Return the CDXJ line of a capture in ASCII, with one line break at the end."""
    about = {
        "url": capture.url,
        "mime": capture.mime,
        "status": "-" if capture.status is None else str(capture.status),
        "digest": capture.digest,
        "length": str(capture.length),
        "offset": str(capture.offset),
        "filename": capture.filename,
    }
    if capture.redirect:
        about["redirect"] = capture.redirect
    if capture.orig_filename:
        about["orig.filename"] = capture.orig_filename
        about["orig.offset"] = str(capture.orig_offset)
        about["orig.length"] = str(capture.orig_length)
    return f"{capture.key} {capture.timestamp} {json.dumps(about)}\n".encode("ascii")


def parse_cdxj_line(line: bytes) -> Capture:
    """Parse a CDXJ line, and return the capture that the line describes.

    Raises
    ------
    ValueError
        The line is not valid CDXJ.
    """
    key, timestamp, text = line.decode("utf-8").split(" ", 2)
    try:
        about = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(about, dict):
        raise ValueError("not a JSON object")
    return parse_capture(key, timestamp, about)
