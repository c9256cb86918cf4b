"""HTTP responses as recorded: head parsed, body decoded, leniently and within bounds."""

from __future__ import annotations

import importlib
import re
import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focuscrawl.webs.web_protocol import LARGEST_BODY, LARGEST_HEAD, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable


# Undoes content codings: leniently, and never to more than a crawl takes in.
#
# Whoever packed a body chooses what it unpacks to: 98 kB of brotli may stand for a gigabyte. So
# every library is asked for no more than there is room for.

MOST_CODINGS = 2  # as many as a server and a proxy before it add by mistake
_MOST_MEMBERS = 1000  # of a gzip or zstd body; each costs as much as some kilobytes of text
_STEP = 4096  # bytes; an error costs what was to be had of one step, not what precedes it
_WINDOW_LOG = 23  # of zstd, 8 MiB, which is what RFC 9659 allows


def unpack(coding: str, body: bytes) -> bytes | None:
    """Undo one content coding.

    Parameters
    ----------
    coding : as in Content-Encoding, in lower case

    Returns
    -------
    None if the coding is not known here. Of a body that breaks off what precedes the break; a
    body that was recorded unpacked, under its old header, comes back as it is.

    Raises
    ------
    TooLargeError
        The body unpacks to more than `LARGEST_BODY`.
    """
    if coding in {"gzip", "x-gzip"}:
        unpacked = _inflate(body, 31)
    elif coding == "deflate":
        # The standard says zlib; some servers send bare deflate.
        unpacked = _inflate(body, 15)
        if unpacked is None:
            unpacked = _inflate(body, -15)
    elif coding == "br" and (brotli := _module("brotli")) and _has_limit(brotli):
        unpacked = _unbrotli(brotli, body)
    elif coding == "zstd" and (zstd := _module(_ZSTD)):
        unpacked = _unzstd(zstd, body)
    else:
        return None
    return body if unpacked is None else unpacked


_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _has_limit(brotli: Any) -> bool:
    return hasattr(brotli.Decompressor, "can_accept_more_data")  # since 1.2


def _inflate(body: bytes, wbits: int) -> bytes | None:
    return _members(body, lambda: zlib.decompressobj(wbits), zlib.error)


def _unzstd(zstd: Any, body: bytes) -> bytes | None:
    options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return _members(body, lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError)


def _members(body: bytes, new: Callable[[], Any], error: type[Exception]) -> bytes | None:
    """Unpack one member after another, up to a cut or an error; None if not even the start."""
    unpacked = bytearray()
    at = 0
    for _ in range(_MOST_MEMBERS):
        if at >= len(body):
            break
        stream = new()
        try:
            while at < len(body) and not stream.eof:
                step = body[at : at + _STEP]
                unpacked += stream.decompress(step, _room(unpacked))
                _check(unpacked)  # so all of the step was taken
                at += len(step)
            at -= len(stream.unused_data)
        except error:
            return bytes(unpacked) or None
    return bytes(unpacked)


def _unbrotli(brotli: Any, body: bytes) -> bytes | None:
    stream = brotli.Decompressor()
    unpacked = bytearray()
    for start in range(0, len(body), _STEP):
        step = body[start : start + _STEP]
        try:
            unpacked += stream.process(step, output_buffer_limit=_room(unpacked))
            while not stream.can_accept_more_data():
                _check(unpacked)
                unpacked += stream.process(b"", output_buffer_limit=_room(unpacked))
        except brotli.error:
            return bytes(unpacked) or None
        _check(unpacked)
    return bytes(unpacked)


def _room(unpacked: bytearray) -> int:
    return LARGEST_BODY + 1 - len(unpacked)


def _check(unpacked: bytearray) -> None:
    if len(unpacked) > LARGEST_BODY:
        raise TooLargeError(f"more than {LARGEST_BODY >> 20} MiB unpacked")


# HTTP responses as recorded: the head parsed, the body decoded, both leniently.
#
# Crawlers record what servers sent and what they made of it: bodies cut short, bodies already
# decoded under headers that say otherwise. What can be read is read, within `webs.limits`.

Headers = list[tuple[str, str]]

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+([1-5]\d{2})(?!\d)")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
#: fields about one connection, not about what was sent (RFC 9110 section 7.6.1)
_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
#: fields about how the body is wrapped
WRAPPING = {"content-encoding", "content-length", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A recorded HTTP response; the body is still as sent."""

    status: int
    headers: Headers
    body: bytes


def parse_response(block: bytes) -> HttpResponse | None:
    """Parse the block of a ``response`` record; None if it is no HTTP response.

    One whose head is longer than `LARGEST_HEAD` is none.
    """
    status = _STATUS.match(block)
    if status is None:
        return None
    end = _HEAD_END.search(block, 0, LARGEST_HEAD)
    if end is None and len(block) > LARGEST_HEAD:
        return None
    head, body = (block, b"") if end is None else (block[: end.start()], block[end.end() :])
    fields: list[tuple[str, list[str]]] = []  # name, and the lines that its value is folded over
    # Latin-1 maps every byte to one character: whoever sends the headers on loses nothing.
    for line in head.decode("latin-1").split("\n")[1:]:
        if line[:1] in {" ", "\t"} and fields:
            fields[-1][1].append(line.strip())
            continue
        name, colon, value = line.partition(":")
        if colon and name.strip():
            fields.append((name.strip(), [value.strip()]))
    headers = [(name, " ".join(lines)) for name, lines in fields]
    return HttpResponse(int(status[1]), headers, body)


def header(headers: Headers, name: str) -> str:
    """Return the value of the field `name` (in lower case), joined where repeated."""
    return ", ".join(value for field, value in headers if field.lower() == name)


def decode(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    """Undo Transfer-Encoding and Content-Encoding.

    Returns
    -------
    The fields that still hold, Content-Length corrected to what there is; and the body.
    Encodings that this machine cannot undo stay on the body and in the fields, and so do all
    where there are more than two.

    Raises
    ------
    TooLargeError
        The body is larger than `LARGEST_BODY`, packed or unpacked.
    """
    if "chunked" in header(headers, "transfer-encoding").lower():
        body = _join_chunks(body)
    if len(body) > LARGEST_BODY:
        raise TooLargeError(f"more than {LARGEST_BODY >> 20} MiB")
    encodings = [e.strip().lower() for e in header(headers, "content-encoding").split(",")]
    encodings = [e for e in encodings if e not in {"", "identity"}]
    while 0 < len(encodings) <= MOST_CODINGS:
        decoded = unpack(encodings[-1], body)
        if decoded is None:
            break
        body = decoded
        encodings.pop()
    kept = [(n, v) for n, v in headers if n.lower() not in _HOP_BY_HOP | WRAPPING]
    if encodings:
        kept.append(("Content-Encoding", ", ".join(encodings)))
    if header(headers, "content-length"):
        kept.append(("Content-Length", str(len(body))))
    return kept, body


def _join_chunks(body: bytes) -> bytes:
    """Undo chunking as far as it goes; a body that is not chunked stays as it is."""
    joined = bytearray()
    at = 0
    while size := _CHUNK_SIZE.match(body, at):
        start, length = size.end(), int(size[1], 16)
        joined += body[start : start + length]
        at = start + length
        if length == 0:
            break
        at += 2 if body.startswith(b"\r\n", at) else body.startswith(b"\n", at)
    return bytes(joined) if at else body
