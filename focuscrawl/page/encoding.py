"""Detect the encoding of pages, and convert pages to UTF-8 without control characters.

The encoding is determined as in browsers (WHATWG HTML, "determining the character encoding"). The
byte order mark, the ``Content-Type`` header or the declaration of the page determines the
encoding. Without any of the three, the encoding is guessed. Encoding labels have the meaning of
the WHATWG encoding standard, in which latin-1 and ASCII mean windows-1252.
"""

from __future__ import annotations

import re
from codecs import utf_8_decode

import charset_normalizer
from w3lib.encoding import (
    html_body_declared_encoding,
    read_bom,
    resolve_encoding,
    to_unicode,
)

# Python names of the encodings of the WHATWG standard. Pages may name other codecs of Python, such
# as "hex", "rot13", "undefined" and "idna", which do not return text, or raise errors.
_WEB_ENCODINGS = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5hkscs"),
        *("euc_jp", "iso2022_jp", "cp932", "cp949", "koi8-r", "koi8-u"),
        *("cp866", "cp874", "mac-roman", "mac-cyrillic"),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in range(1250, 1259)),
    }
)
# labels of the standard that neither Python nor `w3lib` knows
_LABELS = {
    label: encoding
    for encoding, labels in {
        "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
        "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff",
        "utf-16-be": "unicodefffe",
        "gb18030": "csgb2312 gb_2312 x-gbk",
        "big5hkscs": "cn-big5 x-x-big5",
        "euc_jp": "cseucpkdfmtjapanese x-euc-jp",
        "cp949": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601 windows-949",
        "koi8-r": "koi koi8",
        "koi8-u": "koi8-ru",
        "cp874": "dos-874 iso885911",
        "mac-roman": "csmacintosh mac x-mac-roman",
        "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
        "iso8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i",
        "iso8859-7": "sun_eu_greek",
        "iso8859-8": "csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i logical visual",
        "iso8859-15": "csisolatin9",
        "cp1252": "iso88591 x-user-defined",  # as browsers read `meta` elements
        "cp1254": "iso88599",
    }.items()
    for label in labels.split()
}
_LABELS |= {f"iso8859{part}": f"iso8859-{part}" for part in (*range(2, 9), 10, 13, 14, 15)}
_LABELS |= {f"x-cp{page}": f"cp{page}" for page in range(1250, 1259)}
_LABEL = re.compile(rb"((?:charset|encoding)\s*=\s*[\"']?\s*)([\w-]+)", re.IGNORECASE)
_FALLBACK = "cp1252"
_PRESCAN_BYTES = 4096  # in which a declaration is searched for, as in `w3lib`

# Accented letters are a few percent of a Western text. Detecting other encodings takes
# milliseconds, so only samples with a larger share of non-ASCII bytes are examined.
_FOREIGN_SHARE = 0.08
_FOREIGN_MIN_BYTES = 32  # bytes; fewer are not enough for detection
_SAMPLE_BYTES = 4096
_ASCII = bytes(range(128))
# Japanese encodings of charset-normalizer, and the WHATWG encodings that they extend
_JAPANESE = {
    "euc_jis_2004": "euc_jp",
    "euc_jisx0213": "euc_jp",
    "shift_jis_2004": "cp932",
    "shift_jisx0213": "cp932",
}

# Control characters become spaces, because libxml2 stops at some of them. NUL is dropped as in
# browsers, so that undeclared UTF-16 stays readable.
_CONTROLS = bytes(set(range(1, 32)) - set(b"\t\n\f\r")) + b"\x7f"
_CONTROLS_TO_SPACES = bytes.maketrans(_CONTROLS + b"\f", b" " * (len(_CONTROLS) + 1))


def to_utf8(
    body: bytes, header: str | None = None, max_bytes: int | None = None
) -> tuple[bytes, str]:
    """Convert a page to valid UTF-8, and return the page and the Python name of its encoding.

    Undecodable bytes become U+FFFD, NULs are dropped, other control characters become spaces.

    Parameters
    ----------
    body : decompressed body of the response
    header : charset parameter of the ``Content-Type`` header; unknown names are ignored
    max_bytes : longer pages are truncated to this many bytes of whole characters. Twice as many
        bytes are read, because a text is at most twice as long in other encodings
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
            )  # a truncated body may end within a character
        except UnicodeDecodeError:
            encoding = encoding or ("utf-8" if _is_damaged_utf8(body) else _guess_encoding(body))
        else:
            return body, "utf-8"
    return to_unicode(body, encoding).encode("utf-8", "replace"), encoding


def _web_encoding(label: str) -> str | None:
    """Return the Python name of an encoding of the WHATWG standard; None for other labels."""
    label = label.strip().strip("\"'").lower()
    if not label.isascii() or "\0" in label:
        return None
    name = _LABELS.get(label) or resolve_encoding(label)
    return name if name in _WEB_ENCODINGS else None


def _declared_encoding(body: bytes) -> str | None:
    head = body[:_PRESCAN_BYTES]
    lowered = head.lower()
    if b"charset" not in lowered and b"encoding" not in lowered:
        return None
    label = html_body_declared_encoding(head) or html_body_declared_encoding(
        _LABEL.sub(_replace_label, head)
    )
    name = label and _web_encoding(label)
    # a page with a declaration that is readable as ASCII is not in UTF-16 (WHATWG, prescan)
    return "utf-8" if name and name.startswith("utf-16") else name


def _replace_label(match: re.Match[bytes]) -> bytes:
    label = match[2].decode("latin-1").lower()
    return match[1] + _LABELS.get(label, label).encode("latin-1")


def _is_damaged_utf8(body: bytes) -> bool:
    """Return whether at least as many characters are valid UTF-8 as are not.

    Texts in other encodings have few valid sequences, and nearly all of their bytes are errors.
    """
    text = body.decode("utf-8", "replace")
    n_errors = text.count("\ufffd")
    n_foreign = len(text) - len(body) + len(body.translate(None, _ASCII))
    return n_foreign >= 2 * n_errors


def _guess_encoding(body: bytes) -> str:
    """Guess a legacy encoding; the default is windows-1252."""
    sample = body.lstrip(_ASCII)[:_SAMPLE_BYTES]
    if len(sample) == _SAMPLE_BYTES:
        sample = sample[: sample.rfind(b"<") + 1] or sample  # so that it ends with a character
    if len(sample.translate(None, _ASCII)) < max(_FOREIGN_MIN_BYTES, _FOREIGN_SHARE * len(sample)):
        return _FALLBACK
    best = charset_normalizer.from_bytes(sample).best()
    if best is None:
        return _FALLBACK
    return _web_encoding(_JAPANESE.get(best.encoding, best.encoding)) or _FALLBACK
