"""HTTP responses as recorded: the head parsed, the body decoded.

Both are lenient: crawlers record bodies that were cut short, and bodies that were decoded under
headers that say otherwise. Both are bounded: 98 kB of brotli may stand for a gigabyte, so no
decoder is asked for more bytes than a crawl takes in.
"""

from __future__ import annotations

import importlib
import re
import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focuscrawl.foundation.urls import resolve
from focuscrawl.webs.web_protocol import MAX_BODY_BYTES, MAX_HEAD_BYTES, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable

Headers = list[tuple[str, str]]

NOT_MODIFIED = 304
#: fields about how the body is wrapped
BODY_CODING_FIELDS = {"content-encoding", "content-length", "transfer-encoding"}
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
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+([1-5]\d{2})(?!\d)")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")

_MOST_CODINGS = 2  # as many as a server and a proxy before it add by mistake
_MOST_MEMBERS = 1000  # of a gzip or zstd body; each costs as much as some kilobytes of text
_STEP = 4096  # bytes; an error loses the output of one step, not what precedes it
_WINDOW_LOG = 23  # of zstd, 8 MiB, which is what RFC 9659 allows
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A recorded HTTP response; the body is still as sent."""

    status: int
    headers: Headers
    body: bytes


def parse_response(block: bytes) -> HttpResponse | None:
    """Parse the block of a ``response`` record; None if it is no HTTP response.

    One whose head is longer than `MAX_HEAD_BYTES` is none.
    """
    status = _STATUS.match(block)
    if status is None:
        return None
    end = _HEAD_END.search(block, 0, MAX_HEAD_BYTES)
    if end is None and len(block) > MAX_HEAD_BYTES:
        return None
    head, body = (block, b"") if end is None else (block[: end.start()], block[end.end() :])
    fields: list[tuple[str, list[str]]] = []  # name, and the lines that its value is folded over
    # Latin-1 maps every byte to one character, so that no byte of a header is lost.
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


def redirect_target(url: str, headers: Headers) -> str | None:
    """Return the normalised URL that the Location field of an answer for `url` leads to."""
    location = header(headers, "location")
    return resolve(url, [location])[0] if location else None


def decode_body(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    """Undo Transfer-Encoding and Content-Encoding.

    Returns
    -------
    The fields that still hold, Content-Length corrected to what there is; and the body.
    Encodings that this machine cannot undo stay on the body and in the fields, and so do all
    where there are more than two.

    Raises
    ------
    TooLargeError
        The body is larger than `MAX_BODY_BYTES`, packed or unpacked.
    """
    if "chunked" in header(headers, "transfer-encoding").lower():
        body = _join_chunks(body)
    _check(body, "")
    encodings = [e.strip().lower() for e in header(headers, "content-encoding").split(",")]
    encodings = [e for e in encodings if e not in {"", "identity"}]
    while 0 < len(encodings) <= _MOST_CODINGS:
        decoded = _unpack(encodings[-1], body)
        if decoded is None:
            break
        body = decoded
        encodings.pop()
    kept = [(n, v) for n, v in headers if n.lower() not in _HOP_BY_HOP | BODY_CODING_FIELDS]
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


def _unpack(coding: str, body: bytes) -> bytes | None:
    """Undo one content coding (in lower case); None if this machine cannot.

    Of a body that breaks off, the part before the break is returned; a body that was recorded
    unpacked, under its old header, is returned as it is.
    """
    if coding in {"gzip", "x-gzip"}:
        unpacked = _members(body, lambda: zlib.decompressobj(31), zlib.error)
    elif coding == "deflate":
        # The standard says zlib; some servers send bare deflate.
        unpacked = _members(body, lambda: zlib.decompressobj(15), zlib.error)
        if unpacked is None:
            unpacked = _members(body, lambda: zlib.decompressobj(-15), zlib.error)
    elif coding == "br" and (brotli := _module("brotli")) and _has_limit(brotli):
        unpacked = _members(body, lambda: _BrotliStream(brotli), brotli.error)
    elif coding == "zstd" and (zstd := _module(_ZSTD)):
        options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        unpacked = _members(body, lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError)
    else:
        return None
    return body if unpacked is None else unpacked


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _has_limit(brotli: Any) -> bool:
    return hasattr(brotli.Decompressor, "can_accept_more_data")  # since 1.2


class _BrotliStream:
    """A brotli decoder with the methods of those of zlib and zstd."""

    eof, unused_data = False, b""  # it has no members: bytes behind the stream are an error

    def __init__(self, brotli: Any) -> None:
        self._stream = brotli.Decompressor()

    def decompress(self, step: bytes, most: int) -> bytes:
        unpacked: bytes = self._stream.process(step, output_buffer_limit=most)
        while len(unpacked) < most and not self._stream.can_accept_more_data():
            unpacked += self._stream.process(b"", output_buffer_limit=most - len(unpacked))
        return unpacked


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
                unpacked += stream.decompress(step, MAX_BODY_BYTES + 1 - len(unpacked))
                _check(unpacked, " unpacked")  # so all of the step was taken
                at += len(step)
            at -= len(stream.unused_data)
        except error:
            return bytes(unpacked) or None
    return bytes(unpacked)


def _check(body: bytes | bytearray, state: str) -> None:
    if len(body) > MAX_BODY_BYTES:
        raise TooLargeError(f"more than {MAX_BODY_BYTES >> 20} MiB{state}")
