"""Parses and normalises URLs: absolute, http or https, without fragment and credentials.

URLs are parsed by the WHATWG URL standard (``can_ada``), which browsers follow. Query arguments
keep their order, because the order may matter to a server.
"""

from __future__ import annotations

import codecs
import re
from hashlib import blake2b
from urllib.parse import quote_from_bytes

import can_ada

from focuscrawl.errors import UserError

# domains of examples and tests, without sites to crawl [RFC 2606, RFC 6761]
_RESERVED = re.compile(r"(?:.*\.)?(?:example|test|invalid|example\.(?:com|net|org))")
MAX_URL_LENGTH = 2083  # characters; crawler traps produce longer URLs

# characters before normalising; a host of 250 kB in another script takes seconds to parse
_MAX_RAW_LENGTH = 16 * MAX_URL_LENGTH
_WEB = ("http:", "https:")
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\\\s]*@")
_BARE = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?([/?#][^\s@]*)?")  # a URL without its scheme
_NO_URL = (ValueError, TypeError)  # of can_ada; TypeError for a lone surrogate

_TRIMMED = "".join(map(chr, range(33)))  # characters that a URL may not end with
_REMOVED = str.maketrans("", "", "\t\n\r")
#: characters of a query that are not percent-encoded
_QUERY_SAFE = bytes(set(range(0x21, 0x7F)) - set(b"\"#<>'"))
_ESCAPED = "url-query"  # name of the error handler for characters that an encoding lacks
_NOT_PLAIN = re.compile(r"[^\x00-\x7f]|[\x0e\x0f\x1b]")
# Characters that Python encodes and the Encoding standard does not. Control characters would
# switch the state of ISO-2022-JP.
_NOT_ENCODED = {
    "iso2022_jp": str.maketrans(dict.fromkeys("\x0e\x0f\x1b", "\ufffd")),
    "gb18030": str.maketrans({"\ue5e5": "%26%2358853%3B"}),
}
# First bytes of characters that the Encoding standard decodes and does not encode: characters of
# Hong Kong in Big5, and JIS X 0212
_ONLY_DECODED = {"big5hkscs": range(0x81, 0xA1), "euc_jp": (0x8F,)}
_RAW_BYTES = re.compile("[\x80-\xff]")


def normalize(url: str) -> str | None:
    """Return the normalised form of `url`; None if `url` is no http(s) URL or far too long."""
    if len(url) > _MAX_RAW_LENGTH:
        return None
    try:
        parsed = can_ada.parse(url)
    except _NO_URL:
        return None
    return _normalized_href(parsed)


def parse_url(text: str, shown: str = "") -> str:
    """Return the normalised form of a URL.

    Parameters
    ----------
    shown : str
        The URL as the error message shows it, with the file and line, for example.

    Raises
    ------
    UserError
        The text is no http(s) URL.
    """
    url = normalize(text)
    if url is not None:
        return url
    bare, advice = text.strip(), "a URL starts with http:// or https://"
    if _BARE.fullmatch(bare) and normalize(f"https://{bare}"):
        advice = f"write https://{bare:.120}"
    raise UserError(f"{shown or text} is not an http(s) URL: {advice}")


def resolve(base: str, references: list[str], encoding: str = "utf-8") -> list[str | None]:
    """Resolve the link targets of a page to absolute, normalised URLs.

    Parameters
    ----------
    base : str
        Absolute URL of the page, or of its ``<base href>``.
    references : list of str
        Values of ``href`` and ``src`` as written.
    encoding : str
        Python name of the encoding of the page. Queries are in this encoding, other parts of URLs
        in UTF-8. Pages in UTF-16 have queries in UTF-8.

    Returns
    -------
    list of str or None
        The normalised URL of each reference; None for a reference to no http(s) resource.
    """
    try:
        parsed = can_ada.parse(base) if len(base) <= _MAX_RAW_LENGTH else None
    except _NO_URL:
        parsed = None
    if not encoding.startswith("utf"):
        references = [
            _encode_query(each, encoding) if _NOT_PLAIN.search(each) else each
            for each in references
        ]
    if parsed is None:
        return [normalize(reference) for reference in references]
    urls: list[str | None] = []
    for reference in references:
        if len(reference) > _MAX_RAW_LENGTH:
            urls.append(None)
            continue
        try:
            urls.append(_normalized_href(parsed + reference))
        except _NO_URL:
            urls.append(None)
    return urls


def resolve_header(base: str, field: str) -> str | None:
    """Resolve the URL in a header field such as ``Location`` to an absolute URL.

    Parameters
    ----------
    base : str
        URL of the response.
    field : str
        The value, decoded as Latin-1. Bytes above ASCII stay as they are in the URL,
        percent-encoded.
    """
    return resolve(base, [_RAW_BYTES.sub(lambda byte: f"%{ord(byte[0]):02X}", field)])[0]


def _encode_query(reference: str, encoding: str) -> str:
    """Percent-encode the query of a reference, whose characters are in `encoding`.

    The result has no fragment (URL standard, "query state"; Encoding standard, "encode").
    """
    before, mark, rest = reference.partition("#")[0].partition("?")
    if not _NOT_PLAIN.search(rest):
        return reference
    query = rest.rstrip(_TRIMMED).translate(_REMOVED).translate(_NOT_ENCODED.get(encoding, {}))
    if lead := _ONLY_DECODED.get(encoding):
        query = "".join(
            _escape(each) if each.encode(encoding, "replace")[0] in lead else each
            for each in query
        )
    return before + mark + quote_from_bytes(query.encode(encoding, _ESCAPED), _QUERY_SAFE)


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Return a character reference, percent-encoded, for each character of an error."""
    assert isinstance(error, UnicodeEncodeError)
    return _escape(error.object[error.start : error.end]), error.end


def _escape(text: str) -> str:
    return "".join(f"%26%23{ord(each)}%3B" for each in text)


codecs.register_error(_ESCAPED, _escape_unencodable)


def schemeless(url: str) -> str:
    """Return an absolute URL without its scheme, because ``http`` and ``https`` are equivalent."""
    return url.partition("//")[2]


def host(url: str) -> str:
    """Return the host of an absolute http(s) URL, with the port unless it is the default port."""
    start = url.index("//") + 2
    end = len(url)
    for mark in "/?#":
        at = url.find(mark, start)
        if at != -1:
            end = min(end, at)
    return url[start:end].rpartition("@")[2]


def is_reserved(url: str) -> bool:
    """Return whether the host of an absolute http(s) `url` is reserved for examples and tests."""
    name = re.sub(r":\d*$", "", host(url)).rstrip(".").lower()
    return _RESERVED.fullmatch(name) is not None


def hashed_id(name: str) -> int:
    """Return an id for a URL or host, computed without a table: 63 bits of its BLAKE2b hash.

    The probability that any two of a billion URLs have the same id is one in twenty. A URL with
    the same id as another URL counts as already known.
    """
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def without_credentials(text: str) -> str:
    """Return `text` without the credentials ``name:password@`` of URLs in the text."""
    return _CREDENTIALS.sub("", text)


def _normalized_href(parsed: can_ada.URL) -> str | None:
    url: str = parsed.href
    if not url.startswith(_WEB) or len(url) > _MAX_RAW_LENGTH:
        return None
    if "@" in url and parsed.has_credentials():
        parsed.username = ""
        parsed.password = ""
        url = parsed.href
    return url.partition("#")[0] if "#" in url else url
