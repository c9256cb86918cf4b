"""Determines the media type of a response from ``Content-Type`` or from the first bytes."""

from __future__ import annotations

import re
from functools import lru_cache

_HTML = ("text/html", "application/xhtml+xml")
_XML = ("application/xml", "text/xml")  # can be XHTML
_UNKNOWN = ("unknown/unknown", "application/unknown")

_TOKEN = r"[!#$%&'*+.^`|~\w-]+"
_VALUE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*+"?)++', re.DOTALL)  # commas separate values
_MEDIA_TYPE = re.compile(rf"\s*({_TOKEN}/{_TOKEN})\s*(?:;(.*))?", re.ASCII | re.DOTALL)
_PARAMETER = re.compile(
    r'\s*([^;=]*)(?:=(?:"((?:[^"\\]|\\.)*+)"?[^;]*|([^;]*)))?(?:;|\Z)', re.DOTALL
)
_MAX_FIELD_LENGTH = 20_000  # characters that are read

# Elements that pages without a media type start with: those of the standard, `meta` and `link`
_HTML_START = re.compile(
    rb"""(?:<!--.*?(?:-->|\Z) | <\?.*?(?:\?>|\Z) | \s++)*+
    <(?:!doctype\s+html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p
    |meta|link)[\s/>]""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_XHTML_START = re.compile(
    rb"(?:<!--.*?-->|<\?.*?\?>|<!doctype\s+html[^>]*>|\s++)*+<html[\s/>]",
    re.IGNORECASE | re.DOTALL,
)
_MAX_PROLOGUE = 64 * 1024  # bytes before the first element that are read

# Signatures of files that servers wrongly declare as HTML: documents, images, archives
_SIGNATURES = (
    *(b"%PDF-", b"%!PS-", b"\xd0\xcf\x11\xe0", b"{\\rtf"),
    *(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF", b"OggS", b"ID3"),
    *(b"PK\x03\x04", b"\x1f\x8b", b"Rar!\x1a", b"7z\xbc\xaf", b"\x7fELF"),
)
# Bytes that no text has. ESC occurs in ISO-2022, and NUL in UTF-16
_BINARY_BYTES = bytes(set(range(1, 32)) - set(b"\t\n\v\f\r\x1b"))
_MAX_BINARY_SHARE = 0.02
_SNIFFED_BYTES = 1024
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_BOM_BYTES = b"".join(_BOMS)


@lru_cache(maxsize=64)  # few different values are common
def read_content_type(header: str | None) -> tuple[str | None, str | None]:
    """Return the media type (lower-case, without parameters) and the charset of a response.

    If a response has several Content-Type values, the last valid value is used, as in browsers
    (WHATWG Fetch, "extract a MIME type"). An invalid or unknown media type is returned as None,
    and a missing charset as None.

    Parameters
    ----------
    header : the values of all ``Content-Type`` fields, joined by commas
    """
    media_type, charset = None, None
    for value in _VALUE.findall((header or "")[:_MAX_FIELD_LENGTH]):
        found = _MEDIA_TYPE.fullmatch(value)
        if found is None or found[1] == "*/*":
            continue
        if found[1].lower() != media_type:
            media_type, charset = found[1].lower(), None
        charset = _charset(found[2] or "") or charset
    return None if media_type in _UNKNOWN else media_type, charset


def _charset(parameters: str) -> str | None:
    for name, quoted, plain in _PARAMETER.findall(parameters):
        value = re.sub(r"\\(.)", r"\1", quoted) or plain
        if name.lower() == "charset" and value.strip():
            return str(value.strip().lower())
    return None


def can_be_html(media_type: str | None) -> bool:
    """Return whether a response with this media type, or without a type, can be an HTML page."""
    return media_type is None or media_type in _HTML or media_type in _XML


def is_html(media_type: str | None, body: bytes = b"") -> bool:
    """Return whether a response is an HTML page.

    Parameters
    ----------
    media_type : as returned by `read_content_type`; for XML and without it, the start of `body`
        decides
    body : first bytes of the body, if known; a binary file is never HTML
    """
    if not can_be_html(media_type) or _is_binary(body[:_SNIFFED_BYTES]):
        return False
    if media_type in _HTML:
        return True
    start = body[:_MAX_PROLOGUE].translate(None, b"\0").lstrip(_BOM_BYTES)  # also UTF-16
    return (_HTML_START if media_type is None else _XHTML_START).match(start) is not None


def _is_binary(start: bytes) -> bool:
    if start.startswith(_SIGNATURES):
        return True
    if start.startswith(_BOMS) or b"<\0" in start or b"\0<" in start:
        return False  # in UTF-16, any byte may be half of a character
    strange = len(start) - len(start.translate(None, _BINARY_BYTES))
    return strange > _MAX_BINARY_SHARE * len(start)
