"""HTTP responses as recorded: the head parsed, the body decoded, both leniently.

Crawlers record what servers sent and what they made of it: bodies cut short, bodies already
decoded under headers that say otherwise. What can be read is read.
"""

from __future__ import annotations

import importlib
import re
import zlib
from dataclasses import dataclass
from typing import Any

Headers = list[tuple[str, str]]

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_STEP = 4096
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
    """Parse the block of a ``response`` record; None if it is no HTTP response."""
    status = _STATUS.match(block)
    if status is None:
        return None
    end = _HEAD_END.search(block)
    head, body = (block, b"") if end is None else (block[: end.start()], block[end.end() :])
    headers: Headers = []
    # Latin-1 maps every byte to one character: whoever sends the headers on loses nothing.
    for line in head.decode("latin-1").split("\n")[1:]:
        if line[:1] in {" ", "\t"} and headers:
            name, value = headers[-1]
            headers[-1] = (name, f"{value} {line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if colon and name.strip():
            headers.append((name.strip(), value.strip()))
    return HttpResponse(int(status[1]), headers, body)


def header(headers: Headers, name: str) -> str:
    """Return the value of the field `name` (in lower case), joined where repeated."""
    return ", ".join(value for field, value in headers if field.lower() == name)


def decode(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    """Undo Transfer-Encoding and Content-Encoding.

    Returns
    -------
    The fields that still hold, Content-Length corrected to what there is; and the body.
    Encodings that this machine cannot undo stay on the body and in the fields.
    """
    if "chunked" in header(headers, "transfer-encoding").lower():
        body = _join_chunks(body)
    encodings = [e.strip().lower() for e in header(headers, "content-encoding").split(",")]
    encodings = [e for e in encodings if e not in {"", "identity"}]
    while encodings:
        decoded = _undo(encodings[-1], body)
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
    parts = []
    at = 0
    while size := _CHUNK_SIZE.match(body, at):
        start, length = size.end(), int(size[1], 16)
        parts.append(body[start : start + length])
        if length == 0:
            break
        at = start + length
        at += 2 if body.startswith(b"\r\n", at) else body.startswith(b"\n", at)
    return b"".join(parts) if parts else body


def _undo(encoding: str, body: bytes) -> bytes | None:
    """Undo one content coding; None if it is not known here.

    A body that was recorded decoded, under its old header, comes back as it is.
    """
    if encoding in {"gzip", "x-gzip"}:
        decoded = _inflate(body, 31)
    elif encoding == "deflate":
        # The standard says zlib; some servers send bare deflate.
        decoded = _inflate(body, 15)
        if decoded is None:
            decoded = _inflate(body, -15)
    elif encoding == "br":
        brotli = _brotli()
        if brotli is None:
            return None
        decoded = _unbrotli(brotli, body)
    else:
        return None
    return body if decoded is None else decoded


def _inflate(body: bytes, wbits: int) -> bytes | None:
    """Inflate all members, up to a cut or an error; None if not even the start will do."""
    parts: list[bytes] = []
    while body:
        stream = zlib.decompressobj(wbits)
        taken = 0
        try:
            # Small steps, so that an error costs what follows it and not what precedes it.
            while taken < len(body) and not stream.eof:
                parts.append(stream.decompress(body[taken : taken + _STEP]))
                taken += _STEP
        except zlib.error:
            return b"".join(parts) or None
        body = stream.unused_data + body[taken:]
    return b"".join(parts)


def _brotli() -> Any:
    try:
        return importlib.import_module("brotli")
    except ImportError:
        return None


def _unbrotli(brotli: Any, body: bytes) -> bytes | None:
    stream = brotli.Decompressor()
    parts: list[bytes] = []
    for start in range(0, len(body), _STEP):
        try:
            parts.append(stream.process(body[start : start + _STEP]))
        except brotli.error:
            return b"".join(parts) or None
    return b"".join(parts)
