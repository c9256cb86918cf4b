"""Bytes of a page to clean UTF-8: which encoding it is in, and what no parser should see.

The order is that of browsers (WHATWG HTML, "determining the character encoding"): byte order
mark, ``Content-Type`` header, what the page declares, then a guess. Labels follow the WHATWG
encoding standard, in which latin-1 and ASCII mean windows-1252.
"""

from __future__ import annotations

from codecs import utf_8_decode

import charset_normalizer
from w3lib.encoding import (
    html_body_declared_encoding,
    read_bom,
    resolve_encoding,
    to_unicode,
)

# The encodings of the WHATWG standard, as Python names them. Python knows more under names that
# pages can write ("hex", "rot13", "undefined", "idna"): those decode to no text, or raise.
_WEB_ENCODINGS = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5hkscs"),
        *("euc_jp", "iso2022_jp", "cp932", "cp949", "koi8-r", "koi8-u"),
        *("cp866", "cp874", "mac-roman", "mac-cyrillic"),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in range(1250, 1259)),
    }
)
_FALLBACK = "cp1252"
# How far into a page a declaration is looked for; `w3lib` reads as many.
_PRESCAN_BYTES = 4096

# Accents make up a few percent of a Western text. Only where many more bytes are not ASCII is
# it worth the milliseconds to tell Cyrillic, Chinese and the rest apart, on a sample.
_FOREIGN_SHARE = 0.08
_FOREIGN_MIN_BYTES = 32  # bytes; fewer could be anything
_SAMPLE_BYTES = 4096
_ASCII = bytes(range(128))
# What charset-normalizer calls Japanese, and the encoding of the web it extends.
_JAPANESE = {
    "euc_jis_2004": "euc_jp",
    "euc_jisx0213": "euc_jp",
    "shift_jis_2004": "cp932",
    "shift_jisx0213": "cp932",
}

# Control characters separate words at max_bytes; libxml2 stops at some. NUL is dropped instead,
# as browsers do: UTF-16 that nobody declared stays readable.
_CONTROLS = bytes(set(range(1, 32)) - set(b"\t\n\f\r")) + b"\x7f"
_CONTROLS_TO_SPACES = bytes.maketrans(_CONTROLS + b"\f", b" " * (len(_CONTROLS) + 1))


def to_utf8(
    body: bytes, header: str | None = None, max_bytes: int | None = None
) -> tuple[bytes, str]:
    """Decode a page, whatever it holds.

    Parameters
    ----------
    body : the page as it came, decompressed
    header : charset parameter of the ``Content-Type`` header; an unknown one is ignored
    max_bytes : bytes that are returned; of a longer page the beginning, up to a whole character.
        No more than twice as many are read: in no encoding does a text take more

    Returns
    -------
    The page in valid UTF-8, undecodable bytes replaced by U+FFFD, NULs dropped and other
    control characters blanked; and the encoding it was read in, by its Python name.
    """
    is_complete = max_bytes is None or len(body) <= 2 * max_bytes
    if max_bytes is not None and not is_complete:
        body = body[: 2 * max_bytes]
    utf8, encoding = _decode(body, header, is_complete=is_complete)
    if max_bytes is not None and len(utf8) > max_bytes:
        utf8 = utf8[:max_bytes].decode("utf-8", "ignore").encode()
    return utf8.translate(_CONTROLS_TO_SPACES, b"\0"), encoding


def _decode(body: bytes, header: str | None, *, is_complete: bool) -> tuple[bytes, str]:
    bom_encoding, bom = read_bom(body)
    if bom_encoding is not None and bom is not None:
        body = body[len(bom) :]
        encoding = bom_encoding
    else:
        encoding = (header and _web_encoding(header)) or _declared_encoding(body) or ""
    if encoding in {"", "utf-8"}:
        try:
            utf_8_decode(
                body, "strict", is_complete
            )  # otherwise half a character may be at the end
        except UnicodeDecodeError:
            encoding = encoding or _guess_encoding(body)
        else:
            return body, "utf-8"
    return to_unicode(body, encoding).encode("utf-8", "replace"), encoding


def _web_encoding(label: str) -> str | None:
    """Return the Python name of an encoding of the web, None for any other label."""
    label = label.strip().strip("\"'").lower()
    if not label.isascii() or "\0" in label:
        return None
    # "-i" and "-e" say in which order Hebrew is written, not how it is encoded.
    name = resolve_encoding("iso-8859-8" if label.startswith("iso-8859-8-") else label)
    return name if name in _WEB_ENCODINGS else None


def _declared_encoding(body: bytes) -> str | None:
    head = body[:_PRESCAN_BYTES]
    lowered = head.lower()
    if b"charset" not in lowered and b"encoding" not in lowered:
        return None
    label = html_body_declared_encoding(head)
    name = label and _web_encoding(label)
    # A declaration that could be read as ASCII cannot be in UTF-16 (WHATWG, prescan).
    return "utf-8" if name and name.startswith("utf-16") else name


def _guess_encoding(body: bytes) -> str:
    """Guess among the encodings older than UTF-8; Western unless much speaks against it."""
    sample = body.lstrip(_ASCII)[:_SAMPLE_BYTES]
    if len(sample) == _SAMPLE_BYTES:
        sample = sample[: sample.rfind(b"<") + 1] or sample  # not in the middle of a character
    if len(sample.translate(None, _ASCII)) < max(_FOREIGN_MIN_BYTES, _FOREIGN_SHARE * len(sample)):
        return _FALLBACK
    best = charset_normalizer.from_bytes(sample).best()
    if best is None:
        return _FALLBACK
    return _web_encoding(_JAPANESE.get(best.encoding, best.encoding)) or _FALLBACK
