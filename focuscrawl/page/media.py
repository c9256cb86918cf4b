"""Which answers are HTML pages."""

from __future__ import annotations

from email.message import Message

_HTML = ("text/html", "application/xhtml+xml")
_MARKS = (b"<!doctype html", b"<html", b"<head", b"<title", b"<body")


def read_content_type(header: str | None) -> tuple[str | None, str | None]:
    """Return the media type, lower-case and without parameters, and the charset of a header.

    Either is None where the header names none.
    """
    if header is None or not header.strip():
        return None, None
    message = Message()
    message["Content-Type"] = header.replace("\r", " ").replace("\n", " ")
    return header.partition(";")[0].strip().lower() or None, message.get_content_charset()


def is_html(media_type: str | None, body: bytes = b"") -> bool:
    """Tell whether an answer is an HTML page.

    Parameters
    ----------
    media_type : as `read_content_type` returns it; where there is none the beginning of `body`
        decides
    """
    if media_type is not None:
        return media_type in _HTML
    start = body[:1024].lower()
    return any(mark in start for mark in _MARKS)
