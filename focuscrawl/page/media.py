"""Which answers are HTML pages."""

from __future__ import annotations

from email.message import Message
from functools import lru_cache

_HTML = ("text/html", "application/xhtml+xml")
_MARKS = (b"<!doctype html", b"<html", b"<head", b"<title", b"<body")

# How files begin that servers call HTML for want of a better name: documents, pictures, archives.
_SIGNATURES = (
    *(b"%PDF-", b"%!PS-", b"\xd0\xcf\x11\xe0", b"{\\rtf"),
    *(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF", b"OggS", b"ID3"),
    *(b"PK\x03\x04", b"\x1f\x8b", b"Rar!\x1a", b"7z\xbc\xaf", b"\x7fELF"),
)
# What no text has in it, whatever its encoding; ESC shifts between the sets of ISO-2022, and
# every other byte of UTF-16 may be a NUL.
_NO_TEXT = bytes(set(range(1, 32)) - set(b"\t\n\v\f\r\x1b"))
_NO_TEXT_SHARE = 0.02
_START = 1024  # bytes that are looked at
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


@lru_cache(maxsize=64)  # the servers of the Web write a handful
def read_content_type(header: str | None) -> tuple[str | None, str | None]:
    """Return the media type, lower-case and without parameters, and the charset of a header.

    Either is None where the header names none.
    """
    if header is None or not header.strip():
        return None, None
    message = Message()
    message["Content-Type"] = header.replace("\r", " ").replace("\n", " ")
    media_type = header.partition(";")[0].strip().lower() or None
    try:
        return media_type, message.get_content_charset()
    except (LookupError, TypeError, ValueError):  # a charset that is itself encoded, wrongly
        return media_type, None


def is_html(media_type: str | None, body: bytes = b"") -> bool:
    """Tell whether an answer is an HTML page.

    Parameters
    ----------
    media_type : as `read_content_type` returns it; where there is none the beginning of `body`
        decides
    body : if its beginning is known: what is not even text is no HTML, whatever it is called
    """
    if media_type is not None:
        return media_type in _HTML and not _is_binary(body[:_START])
    start = body[:_START].lower()
    return any(mark in start for mark in _MARKS)


def _is_binary(start: bytes) -> bool:
    if start.startswith(_SIGNATURES):
        return True
    if start.startswith(_BOMS) or b"<\0" in start or b"\0<" in start:
        return False  # of UTF-16, any byte may be half a letter
    strange = len(start) - len(start.translate(None, _NO_TEXT))
    return strange > _NO_TEXT_SHARE * len(start)
