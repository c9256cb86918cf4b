"""Which URLs are of one kind: what a trap makes without end looks alike."""

from __future__ import annotations

import re
from functools import lru_cache

_CHANGING = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{8,}|[0-9]+")  # numbers, dates, session ids
_DEEP = 12  # segments of a path
_KEYS = 6  # arguments of a query
_TWICE = re.compile(r"((?:/[^/]+){1,4})\1{2}(?=/|$)")  # after two more times it is no accident


@lru_cache(maxsize=1024)  # a page is looked up with every page found on it
def pattern(url: str) -> str:
    """Return the pattern of a normalised `url`: its host, its folder and its query's names.

    Numbers count for one another, the last segment for any, values of arguments and their order
    not at all. Paths that repeat themselves are one pattern a host, and so are very deep ones.

    >>> pattern("https://a.example/wiki/2019/Start?version=3&action=diff")
    'a.example/wiki/#/*?action&version'
    """
    address, _, query = url.partition("?")
    host, _, path = address.partition("://")[2].partition("/")
    path = f"/{path}".partition(";")[0]
    if _TWICE.search(path):
        return f"{host}/… (segments that repeat)"
    segments = path.rstrip("/").split("/")[1:]
    if len(segments) > _DEEP:
        return f"{host}/… (more than {_DEEP} levels)"
    folder = "/".join([host, *(_CHANGING.sub("#", each) for each in segments[:-1]), "*"])
    if not query:
        return folder
    names = sorted({_CHANGING.sub("#", part.partition("=")[0]) for part in query.split("&")})
    shown = "&".join(names) if len(names) <= _KEYS else f"… (more than {_KEYS} arguments)"
    return f"{folder}?{shown}"
