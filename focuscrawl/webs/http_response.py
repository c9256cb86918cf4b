"""Parses and decodes recorded HTTP responses.

Parsing and decoding are lenient, because crawlers record truncated bodies, and record decoded
bodies with headers that name an encoding. Decoding stops at the size limit of a crawl, because 98
kB of brotli data may expand to a gigabyte.
"""

from __future__ import annotations

import importlib
import re
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from focuscrawl.foundation.urls import resolve_header
from focuscrawl.webs.web_protocol import MAX_BODY_BYTES, MAX_HEAD_BYTES, TooLargeError

Headers = list[tuple[str, str]]

NOT_MODIFIED = 304
#: headers about the encoding of the body
BODY_CODING_FIELDS = {"content-encoding", "content-length", "transfer-encoding"}
#: headers about one connection (RFC 9110 section 7.6.1)
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

_MAX_CODINGS = 2  # a server and a proxy may each add one
_MAX_MEMBERS = 1000  # of a gzip or zstd body; a member costs as much as some kilobytes of text
_STEP = 4096  # bytes decoded at once; after an error, the output of earlier steps remains
_WINDOW_LOG = 23  # of zstd: 8 MiB, the maximum of RFC 9659
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A recorded HTTP response, whose body may be compressed."""

    status: int
    headers: Headers
    body: bytes


def parse_response(block: bytes) -> HttpResponse | None:
    """Parse the content (block) of a WARC record of type ``response``.

    The result is None if the block is not an HTTP response, or if its head exceeds
    `MAX_HEAD_BYTES`.
    """
    status = _STATUS.match(block)
    if status is None:
        return None
    end = _HEAD_END.search(block, 0, MAX_HEAD_BYTES)
    if end is None and len(block) > MAX_HEAD_BYTES:
        return None
    head, body = (block, b"") if end is None else (block[: end.start()], block[end.end() :])
    fields: list[tuple[str, list[str]]] = []  # name, and the lines of the folded value
    # Latin-1 preserves every byte of a header as one character.
    for line in head.decode("latin-1").split("\n")[1:]:
        if line[:1] in {" ", "\t"} and fields:
            fields[-1][1].append(line.strip())
            continue
        name, colon, value = line.partition(":")
        if colon and name.strip():
            fields.append((name.strip(), [value.strip()]))
    headers = [(name, " ".join(lines)) for name, lines in fields]
    return HttpResponse(int(status[1]), headers, body)


def status_rank(status: int) -> int:
    """Return the rank of an HTTP status, which is lowest for pages and highest for errors."""
    return 0 if status == 200 else status // 100 - 1


def header(headers: Headers, name: str) -> str:
    """Return the value of the header `name`, given in lower case; repeated values are joined."""
    return ", ".join(value for field, value in headers if field.lower() == name)


def redirect_target(url: str, headers: Headers) -> str | None:
    """Return the normalised redirect target of the response for `url`, or None."""
    location = header(headers, "location")
    return resolve_header(url, location) if location else None


def decode_body(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    """Undo Transfer-Encoding and Content-Encoding.

    If an encoding cannot be decoded, the body and the headers keep the encoding. A body with more
    than two encodings is not decoded.

    Returns
    -------
    tuple of list and bytes
        Headers of the decoded body, with the corrected Content-Length, and the body.

    Raises
    ------
    TooLargeError
        The body is larger than `MAX_BODY_BYTES`, compressed or decompressed.
    """
    if "chunked" in header(headers, "transfer-encoding").lower():
        body = _join_chunks(body)
    _check_size(body, "")
    encodings = [e.strip().lower() for e in header(headers, "content-encoding").split(",")]
    encodings = [e for e in encodings if e not in {"", "identity"}]
    while 0 < len(encodings) <= _MAX_CODINGS:
        decoded = _decompress(encodings[-1], body)
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
    """Undo chunking up to the first error; a body without chunks stays unchanged."""
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


def _decompress(coding: str, body: bytes) -> bytes | None:
    """Undo one content coding (in lower case); None if the coding is not supported.

    A truncated body is decoded up to the cut. A body that does not have the coding is returned
    unchanged.
    """
    if coding in {"gzip", "x-gzip"}:
        unpacked = _decompress_members(body, lambda: zlib.decompressobj(31), zlib.error)
    elif coding == "deflate":
        # The standard requires the zlib format; some servers send raw deflate.
        unpacked = _decompress_members(body, lambda: zlib.decompressobj(15), zlib.error)
        if unpacked is None:
            unpacked = _decompress_members(body, lambda: zlib.decompressobj(-15), zlib.error)
    elif coding == "br" and (brotli := _module("brotli")) and _has_limit(brotli):
        unpacked = _decompress_members(body, lambda: _BrotliStream(brotli), brotli.error)
    elif coding == "zstd" and (zstd := _module(_ZSTD)):
        options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        unpacked = _decompress_members(
            body, lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError
        )
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
    """A brotli decoder with the interface of zlib and zstd decoders."""

    eof, unused_data = False, b""  # brotli has no members: trailing bytes are an error

    def __init__(self, brotli: Any) -> None:
        self._stream = brotli.Decompressor()

    def decompress(self, step: bytes, max_length: int) -> bytes:
        unpacked: bytes = self._stream.process(step, output_buffer_limit=max_length)
        while len(unpacked) < max_length and not self._stream.can_accept_more_data():
            unpacked += self._stream.process(b"", output_buffer_limit=max_length - len(unpacked))
        return unpacked


def _decompress_members(
    body: bytes, new: Callable[[], Any], error: type[Exception]
) -> bytes | None:
    """Decompress all members up to a cut or an error; None if the first step fails."""
    unpacked = bytearray()
    at = 0
    for _ in range(_MAX_MEMBERS):
        if at >= len(body):
            break
        stream = new()
        try:
            while at < len(body) and not stream.eof:
                step = body[at : at + _STEP]
                unpacked += stream.decompress(step, MAX_BODY_BYTES + 1 - len(unpacked))
                _check_size(
                    unpacked, " decompressed"
                )  # below the limit, the decoder used all of the step
                at += len(step)
            at -= len(stream.unused_data)
        except error:
            return bytes(unpacked) or None
    return bytes(unpacked)


def _check_size(body: bytes | bytearray, state: str) -> None:
    if len(body) > MAX_BODY_BYTES:
        raise TooLargeError(f"more than {MAX_BODY_BYTES >> 20} MiB{state}")
