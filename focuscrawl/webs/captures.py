"""Captures: records as an index of an archive has them, which one of a URL counts; CDXJ.

The names are those of CDXJ (https://specs.webrecorder.net/cdxj/0.1.0/), which pywb and OutbackCDX
read and write, too.
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
from focuscrawl.foundation.urls import MAX_URL_LENGTH, host, normalize
from focuscrawl.webs.http_response import NOT_MODIFIED
from focuscrawl.webs.warc_index import schemeless, status_rank

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyarrow import fs

REVISIT = "warc/revisit"  #: media type that indices give to records without a body of their own
_AT = re.compile(r"\d{14}")
_MOST_DIGITS = 15

MAX_LINE_BYTES = 1 << 15  #: bytes
_BLOCK = 1 << 16  # bytes; a line belongs to the block it starts in
_TAIL = 1 << 10  # bytes read beyond a block, as its last line hardly ends with it
_BLOCKS = 256  # that are held, about 20 MB
_FIRSTS = 1 << 16  # keys of blocks that are held, about 10 MB
_SAMPLES = 16  # blocks whose content makes the fingerprint
_HEADER = b"!"  # starts lines about the index itself
_BEHIND = b"\xff"  # sorts behind every line

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
    """Return the key of a normalised URL, in ASCII and without spaces: ``com,example)/a?b=1``.

    Indices of archives have been sorted by it since Heritrix (Sort-friendly URI Reordering
    Transform). The package ``surt`` makes the same keys, but is no wheel and under the AGPL.
    """
    name = host(url)
    rest = url.partition("://")[2][len(name) :].partition("#")[0]
    path, mark, query = rest.partition("?")
    plain = _escape(_without_dots(_unescape(path))).lower()
    key = _SESSION_PATH.sub(b"", plain)
    if mark:
        key += _arguments(_escape(_unescape(query)).lower())
    return (_reversed(name) + b")" + key).decode("ascii")


def _reversed(name: str) -> bytes:
    plain = _escape(_unescape(name)).lower()
    port = _PORT.search(plain)
    plain = _WWW.sub(b"", _PORT.sub(b"", plain).strip(b"."))
    if not plain.startswith(b"["):
        plain = b",".join(reversed(plain.split(b".")))
    return plain.strip(b"[]") + (b"" if port is None else port[0])


def _arguments(query: bytes) -> bytes:
    """Return the arguments in order, without those that name a visit."""
    left = _SESSION_QUERY.sub(b"", query)
    arguments = sorted(left.split(b"&"), key=lambda each: each.partition(b"="))
    return b"?" + b"&".join(arguments) if left else b""


def _unescape(text: str) -> bytes:
    """Undo percent-encoding until nothing is left of it, however often it was done."""
    data = text.encode("utf-8", "surrogatepass")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return data


def _escape(data: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: b"%%%02x" % match[0][0], data)


def _without_dots(path: bytes) -> bytes:
    """Return a path without empty parts, ``.`` and ``..``, and without the slash at its end."""
    parts: list[bytes] = []
    for part in path[1:].split(b"/"):
        if part == b".." and parts:
            del parts[-1]
        elif part != b".":
            parts.append(part)
    return b"/" + b"/".join(filter(None, parts))


class Capture(NamedTuple):
    """One record of an archive.

    Attributes
    ----------
    key : see `surt`
    timestamp : when it was fetched, YYYYMMDDhhmmss in UTC
    mime : media type; `REVISIT` for a record that refers to another
    status : of HTTP; None where the record has none
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
        status = 200 if self.status is None or self.status == NOT_MODIFIED else self.status
        return (
            status_rank(status),
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


def parse_capture(key: str, timestamp: str, about: Mapping[str, object]) -> Capture:
    """Return the capture that an index describes.

    Raises
    ------
    ValueError
        A field is missing, or has a value that cannot be.
    """
    names = ("url", "mime", "digest", "filename", "redirect")
    texts = {name: _text(about.get(name) or "") for name in names}
    if not (texts["url"] and texts["filename"] and _AT.fullmatch(timestamp)):
        raise ValueError("no URL, file name or time")
    status = about.get("status")
    number = None if status is None or status in ("", "-") else _whole(status)
    offset, length = _whole(about.get("offset")), _whole(about.get("length"))
    if number is not None and not 100 <= number <= 999:
        raise ValueError("no status")
    if not length:
        raise ValueError("no length")
    return Capture(
        key=key, timestamp=timestamp, status=number, offset=offset, length=length, **texts
    )


def select_captures(
    captures: Iterator[Capture], wanted: frozenset[str] | None
) -> dict[str, Capture]:
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
        if url is None or len(url) > MAX_URL_LENGTH:
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
    if capture.status == NOT_MODIFIED and capture.mime != REVISIT:
        return False
    target = normalize(capture.redirect) if capture.redirect else None
    return target is None or schemeless(target) != text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is none")
    return value


def _whole(value: object) -> int:
    """Read a whole number, 0 or more, written as one or as a text."""
    text = str(value)
    if isinstance(value, bool) or len(text) > _MOST_DIGITS or not re.fullmatch("[0-9]+", text):
        raise ValueError("a number is none")
    return int(text)


def format_cdxj_line(capture: Capture) -> bytes:
    """Return the line of a capture: ASCII, and no line break but at its end."""
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
    return f"{capture.key} {capture.timestamp} {json.dumps(about)}\n".encode("ascii")


def parse_cdxj_line(line: bytes) -> Capture:
    """Return the capture of a line.

    Raises
    ------
    ValueError
        It is no line of a CDXJ.
    """
    key, timestamp, text = line.decode("utf-8").split(" ", 2)
    try:
        about = json.loads(text)
    except RecursionError:
        raise ValueError("nested without end") from None
    if not isinstance(about, dict):
        raise ValueError("no names")
    return parse_capture(key, timestamp, about)


class CdxjIndex:
    """A sorted CDXJ file (`CaptureIndex`), in which a URL is found by bisection.

    Opening one reads seventeen blocks of 64 KiB. A look-up reads one block for each halving of the
    file that no earlier one has made, and one for the lines; neighbours are in the same block.

    Parameters
    ----------
    files, path : where it is
    name : for messages

    Raises
    ------
    UserError
        It cannot be read, is no CDXJ, or is not sorted; found out also later, where it is read.
    """

    def __init__(self, files: fs.FileSystem, path: str, name: str) -> None:
        self.name = name
        try:
            refuse_special_file(files, path)
            self._file = files.open_input_file(path)
            self._size: int = self._file.size()
        except OSError as error:
            raise UserError(f"cannot read {name}: {first_line(error)}") from None
        self._count = -(-self._size // _BLOCK)
        self._block = lru_cache(_BLOCKS)(self._load)
        self._first = lru_cache(_FIRSTS)(self._begin)
        if next(iter(self), None) is None:
            raise UserError(f"{name} is empty: it is no index of an archive")
        sampled = sorted({self._count * at // _SAMPLES for at in range(_SAMPLES)})
        firsts = [self._first(block) for block in sampled]
        if firsts != sorted(firsts):
            raise self._unsorted(0)
        last = next((block for block in reversed(range(self._count)) if self._block(block)), 0)
        if not (line := self._block(last)[-1]).startswith(_HEADER):
            self._parse(line, last)  # a file that was cut ends within a line
        digest = hashlib.blake2b(f"cdxj {self._size}\n".encode(), digest_size=16)
        for block in sampled:
            digest.update(b"\n".join(self._block(block)))
        self.fingerprint = digest.hexdigest()

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures that have one of the keys."""
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
        """Yield all captures, in the order of the file."""
        for block in range(self._count):
            for line in self._load(block):
                if not line.startswith(_HEADER):
                    yield self._parse(line, block)

    def _begin(self, block: int) -> bytes:
        return next(iter(self._block(block)), _BEHIND)

    def _load(self, block: int) -> list[bytes]:
        start = max(block * _BLOCK - 1, 0)  # the byte before shows whether a line starts
        own = (block + 1) * _BLOCK - start
        data = self._read(own + _TAIL, start)
        end = data.find(b"\n", own - 1)
        if end < 0:
            data += self._read(MAX_LINE_BYTES, start + len(data))
            end = data.find(b"\n", own - 1)
        if end < 0 and start + len(data) < self._size:
            raise UserError(f"{self.name} has a line without an end near byte {start:,}")
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
                f"{self.name} has a line that is no CDXJ near byte {block * _BLOCK:,}: {shown}"
            ) from None

    def _unsorted(self, start: int) -> UserError:
        return UserError(
            f"{self.name} is not in the order of its bytes, seen near byte {start:,}: "
            "sort it with LC_ALL=C sort"
        )
