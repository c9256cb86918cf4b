"""HTTP responses as recorded: the head parsed, the body decoded, both leniently.

Crawlers record what servers sent and what they made of it: bodies cut short, bodies already
decoded under headers that say otherwise. What can be read is read, within `webs.limits`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from focuscrawl.webs.limits import LARGEST_BODY, LARGEST_HEAD, TooLargeError
from focuscrawl.webs.unpacking import MOST_CODINGS, unpack

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
