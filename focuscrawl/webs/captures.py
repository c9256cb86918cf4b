"""Captures (index entries of recorded responses), their selection by URL, and CDXJ indexes.

The field names are those of CDXJ (https://specs.webrecorder.net/cdxj/0.1.0/), the index format of
pywb and OutbackCDX.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import first_line, refuse_special_file
from focuscrawl.foundation.urls import MAX_URL_LENGTH, host, normalize, schemeless
from focuscrawl.webs.http_response import NOT_MODIFIED, status_rank

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyarrow import fs

REVISIT = "warc/revisit"  #: media type of revisit records, which have no body, in indexes
_TIMESTAMP = re.compile(r"\d{14}")
_OTHER_METHOD = re.compile(r"[?&]__wb_method=(?!get(?:&|$))", re.IGNORECASE)
_MOST_DIGITS = 15

MAX_LINE_BYTES = 1 << 15
_BLOCK = 1 << 16  # bytes; a line belongs to the block in which the line starts
_TAIL = 1 << 10  # bytes read beyond a block, which usually contain the end of its last line
_CACHED_BLOCKS = 256  # about 20 MB
_CACHED_KEYS = 1 << 16  # first keys of blocks, about 10 MB
_SAMPLES = 16  # blocks that the fingerprint includes
_HEADER = b"!"  # prefix of lines about the index itself
_LAST_KEY = b"\xff"  # sorts after every line

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
    """

    name: str
    fingerprint: str

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


class CdxjIndex:
    """An index in a sorted CDXJ file, which is searched by bisection.

    When the index is opened, seventeen blocks of 64 KiB are read. A look-up of a URL reads one
    block for each bisection step that is not cached, and one block for the lines.

    Parameters
    ----------
    name : str
        File name for messages.

    Raises
    ------
    UserError
        The file cannot be read, is not CDXJ, or is not sorted; later reads may raise the error,
        too.
    """

    def __init__(self, files: fs.FileSystem, path: str, name: str) -> None:
        self.name = name
        try:
            refuse_special_file(files, path)
            self._file = files.open_input_file(path)
            self._size: int = self._file.size()
        except OSError as error:
            raise UserError(f"cannot read {name}: {first_line(error)}; check the path") from None
        self._count = -(-self._size // _BLOCK)
        self._block = lru_cache(_CACHED_BLOCKS)(self._load)
        self._first = lru_cache(_CACHED_KEYS)(self._load_first)
        if next(iter(self), None) is None:
            raise UserError(f"{name} is empty: name an index of WARC files")
        sampled = sorted({self._count * at // _SAMPLES for at in range(_SAMPLES)})
        firsts = [self._first(block) for block in sampled]
        if firsts != sorted(firsts):
            raise self._unsorted(0)
        last = next((block for block in reversed(range(self._count)) if self._block(block)), 0)
        if not (line := self._block(last)[-1]).startswith(_HEADER):
            self._parse(line, last)  # a truncated file ends within a line
        digest = hashlib.blake2b(f"cdxj {self._size}\n".encode(), digest_size=16)
        for block in sampled:
            digest.update(b"\n".join(self._block(block)))
        self.fingerprint = digest.hexdigest()

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures (index entries) with one of the given URL keys."""
        for key in keys:
            wanted = key.encode() + b" "
            first = bisect_left(range(self._count), wanted, key=self._first) - 1
            for block in range(max(first, 0), self._count):
                lines = self._block(block)
                at = bisect_left(lines, wanted)
                while at < len(lines) and lines[at].startswith(wanted):
                    yield self._parse(lines[at], block)
                    at += 1
                if at < len(lines):
                    break

    def __iter__(self) -> Iterator[Capture]:
        """Yield all captures in the order of the file."""
        for block in range(self._count):
            for line in self._load(block):
                if not line.startswith(_HEADER):
                    yield self._parse(line, block)

    def _load_first(self, block: int) -> bytes:
        return next(iter(self._block(block)), _LAST_KEY)

    def _load(self, block: int) -> list[bytes]:
        start = max(block * _BLOCK - 1, 0)  # the byte before shows whether a line starts
        own = (block + 1) * _BLOCK - start
        data = self._read(own + _TAIL, start)
        end = data.find(b"\n", own - 1)
        if end < 0:
            data += self._read(MAX_LINE_BYTES, start + len(data))
            end = data.find(b"\n", own - 1)
        if end < 0 and start + len(data) < self._size:
            raise UserError(
                f"{self.name} has a line of more than {MAX_LINE_BYTES:,} bytes near byte "
                f"{start:,}: write the index again"
            )
        first = data.find(b"\n") + 1 if block else 0
        if (block and not first) or first >= own:
            return []
        lines = [line for line in data[first : end if end >= 0 else None].split(b"\n") if line]
        if lines != sorted(lines):
            raise self._unsorted(start)
        return lines

    def _read(self, size: int, start: int) -> bytes:
        try:
            data: bytes = self._file.read_at(size, start)
        except OSError as error:
            raise UserError(f"cannot read {self.name}: {first_line(error)}") from None
        return data

    def _parse(self, line: bytes, block: int) -> Capture:
        try:
            return parse_cdxj_line(line)
        except ValueError:
            shown = line[:60].decode("ascii", "backslashreplace")
            raise UserError(
                f"{self.name} has an invalid CDXJ line near byte {block * _BLOCK:,}: {shown}"
            ) from None

    def _unsorted(self, start: int) -> UserError:
        return UserError(
            f"{self.name} is not sorted by bytes near byte {start:,}: sort the file with "
            "LC_ALL=C sort"
        )
