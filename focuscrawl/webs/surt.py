"""The key by which archives of the Web sort and find a URL: hosts from right to left, all small.

SURT (Sort-friendly URI Reordering Transform) is what indexes of archives have been sorted by since
Heritrix; how a URL is made plain before is agreed on by Wayback machines. The package ``surt``
makes the same keys, but is no wheel, and under the AGPL: tests compare with it where pywb is.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from focuscrawl.foundation.urls import host

_ESCAPED = re.compile(rb"[\x00-\x20#%\x7f-\xff]")
_PORT = re.compile(rb":\d+$")
_WWW = re.compile(rb"^www\d*\.(?=.)")
_SESSION_PATH = re.compile(
    rb"/(?:\([0-9a-z]{24}\)|\((?:[a-z]\([0-9a-z]{24}\))+\))(?=/[^?]+\.aspx)"
)
_SESSION_QUERY = re.compile(
    rb"(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}"
    rb"|cfid=[^&]+&cftoken=[^&]+)(?:&|$)"
)


def surt(url: str) -> str:
    """Return the key of a normalised URL, in ASCII and without spaces: ``com,example)/a?b=1``."""
    name = host(url)
    rest = url.partition("://")[2][len(name) :].partition("#")[0]
    path, mark, query = rest.partition("?")
    plain = _escape(_without_dots(_unescape(path))).lower()
    key = _SESSION_PATH.sub(b"", plain)
    if mark:
        key += _arguments(_escape(_unescape(query)).lower())
    return (_reversed(name) + b")" + key).decode("ascii")


def _reversed(name: str) -> bytes:
    """Return ``com,example:8080`` for ``www.example.com:8080``."""
    plain = _escape(_unescape(name)).lower()
    port = _PORT.search(plain)
    plain = _WWW.sub(b"", _PORT.sub(b"", plain).strip(b"."))
    if not plain.startswith(b"["):
        plain = b",".join(reversed(plain.split(b".")))
    return plain.strip(b"[]") + (b"" if port is None else port[0])


def _arguments(query: bytes) -> bytes:
    """Return the arguments in order, without those that name a visit."""
    left = _SESSION_QUERY.sub(b"", query)
    arguments = sorted(left.split(b"&"), key=lambda each: each.partition(b"="))
    return b"?" + b"&".join(arguments) if left else b""


def _unescape(text: str) -> bytes:
    """Undo percent-encoding until nothing is left of it, however often it was done."""
    data = text.encode("utf-8", "surrogatepass")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return data


def _escape(data: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: b"%%%02x" % match[0][0], data)


def _without_dots(path: bytes) -> bytes:
    """Return a path without empty parts, ``.`` and ``..``, and without the slash at its end."""
    parts: list[bytes] = []
    for part in path[1:].split(b"/"):
        if part == b".." and parts:
            del parts[-1]
        elif part != b".":
            parts.append(part)
    return b"/" + b"/".join(filter(None, parts))
