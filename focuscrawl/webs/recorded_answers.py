"""What a record of a WARC file answers: its own body, or that of the record it refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.webs.http_response import WRAPPING, HttpResponse, decode, parse_response
from focuscrawl.webs.limits import TooLargeError
from focuscrawl.webs.protocol import Answer

if TYPE_CHECKING:
    from focuscrawl.webs.warc import Record

_NOT_MODIFIED = 304


def answer_of(url: str, record: Record, holder: Record) -> Answer | None:
    """Return what a record answers.

    Parameters
    ----------
    url : as recorded, normalised
    holder : the record that has the body of a revisit; of others the same

    Returns
    -------
    None if it is no answer
    """
    response = _response(holder)
    if response is None:
        return None
    if holder is not record:
        response = _revisited(parse_response(record.block), response)
    try:
        headers, body = decode(response.headers, response.body)
    except TooLargeError:
        return Answer(url, response.status, response.headers, b"", too_large=True)
    if holder.too_large:
        body = b""
    return Answer(url, response.status, headers, body, holder.too_large)


def _response(record: Record) -> HttpResponse | None:
    if record.type == "resource":
        kind = record.headers.get("content-type", "application/octet-stream")
        return HttpResponse(200, [("Content-Type", kind)], record.block)
    return parse_response(record.block)


def _revisited(revisit: HttpResponse | None, original: HttpResponse) -> HttpResponse:
    """Return the head of a revisit with the body of its original.

    A 304 has no head of its own to speak of: the original answers.
    """
    if revisit is None or revisit.status == _NOT_MODIFIED:
        return original
    own = [(n, v) for n, v in revisit.headers if n.lower() not in WRAPPING]
    wrapping = [(n, v) for n, v in original.headers if n.lower() in WRAPPING]
    return HttpResponse(revisit.status, own + wrapping, original.body)
