"""URLs as the crawler compares them: absolute, http(s), normalised as browsers do, no fragment.

Parsing, resolving and normalising follow the WHATWG URL standard (``can_ada``), which is
what pages are written for. Query arguments keep their order: a server may tell them apart.
"""

from __future__ import annotations

import re
from hashlib import blake2b

import can_ada

_RESERVED = ("example", "test", "invalid")  # last parts of names that nobody has [RFC 6761]
MAX_URL = 2083  # characters; longer URLs are what traps make

_LONGEST = 16 * MAX_URL  # as written: a host of 250 kB in another script takes seconds to parse
_WEB = ("http:", "https:")
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\\\s]*@")
_BARE = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?([/?#][^\s@]*)?")  # one without its scheme
_NO_URL = (ValueError, TypeError)  # can_ada: the parser refuses; a lone surrogate in the text


def normalize(url: str) -> str | None:
    """Return `url` in the form the crawler compares, or None if it is no http(s) URL.

    None, too, if it is many times as long as a URL may be.
    """
    if len(url) > _LONGEST:
        return None
    try:
        parsed = can_ada.parse(url)
    except _NO_URL:
        return None
    return _finish(parsed)


def no_url(text: str) -> str:
    """Say of `text` that it is no http(s) URL, and what to write: the rest of a sentence."""
    bare = text.strip()
    if _BARE.fullmatch(bare) and normalize(f"https://{bare}"):
        return f"is no http(s) URL: write https://{bare:.120}"
    return "is no http(s) URL: one begins with http:// or https://"


def resolve(base: str, references: list[str]) -> list[str | None]:
    """Resolve the links of a page.

    Parameters
    ----------
    base : absolute URL of the page, or of its ``<base href>``
    references : the ``href`` and ``src`` values as written

    Returns
    -------
    One normalised URL a reference; None where the reference leads to no http(s) resource.
    """
    try:
        parsed = can_ada.parse(base) if len(base) <= _LONGEST else None
    except _NO_URL:
        parsed = None
    if parsed is None:
        return [normalize(reference) for reference in references]
    urls: list[str | None] = []
    for reference in references:
        if len(reference) > _LONGEST:
            urls.append(None)
            continue
        try:
            urls.append(_finish(parsed + reference))
        except _NO_URL:
            urls.append(None)
    return urls


def host(url: str) -> str:
    """Return the host (and port, if it is not the scheme's own) of an absolute http(s) `url`."""
    start = url.index("//") + 2
    end = len(url)
    for mark in "/?#":
        at = url.find(mark, start)
        if at != -1:
            end = min(end, at)
    return url[start:end].rpartition("@")[2]


def is_reserved(url: str) -> bool:
    """Tell whether an absolute http(s) `url` is of a host that cannot be on the Internet."""
    name = re.sub(r":\d*$", "", host(url)).rstrip(".")
    return name.rpartition(".")[2].lower() in _RESERVED


def identity(name: str) -> int:
    """Return a number of a URL or host that nobody has to be asked for: 63 bits of its hash.

    Two of a billion URLs have the same number with a chance of one in twenty; the second one is
    then taken for the first.
    """
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def without_credentials(text: str) -> str:
    """Return `text` with every ``name:password@`` taken out of the URLs in it."""
    return _CREDENTIALS.sub("", text)


def _finish(parsed: can_ada.URL) -> str | None:
    url: str = parsed.href
    if not url.startswith(_WEB) or len(url) > _LONGEST:
        return None
    if "@" in url and parsed.has_credentials():
        parsed.username = ""
        parsed.password = ""
        url = parsed.href
    return url.partition("#")[0] if "#" in url else url
