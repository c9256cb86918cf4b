"""URLs in parts, how one lies to another, and the shapes of words: features of paths."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from focuscrawl.distiller.sites import registered_domain
from focuscrawl.foundation.urls import host as host_of

DIGITS = re.compile(r"\d+")
_PIECES = re.compile(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]")
_LONGEST_SHAPE = 5


class UrlParts(NamedTuple):
    """Parts of a URL.

    Attributes
    ----------
    host : with its port
    domain : the registered domain, or the host where there is none
    subdomain : what of the host stands before it
    directory : of the path, up to the last slash
    rest : path and query
    facts : what its form says, as features: depth, ending, a home directory, a query
    """

    host: str
    domain: str
    subdomain: str
    directory: str
    rest: str
    facts: tuple[str, ...]


@lru_cache(maxsize=50_000)
def parts_of(url: str) -> UrlParts:
    """Return the parts of a normalised URL."""
    host = host_of(url)
    rest = url.partition("://")[2][len(host) :] or "/"
    path, _, query = rest.partition("?")
    directory, _, name = path.rpartition("/")
    domain = registered_domain(host)
    stem, dot, ending = name.rpartition(".")
    facts = [f"depth{min(path.count('/'), 6)}"]
    facts.append(f"ends.{ending.lower()}" if dot and stem else "ends" if name else "ends/")
    if query:
        facts.append("query")
    if "/~" in path or "/%7e" in path.lower():
        facts.append("~")
        inside = path.lower().replace("%7e", "~").partition("/~")[2].strip("/")
        facts.append("~home" if "/" not in inside else "~inside")
    if stem.lower() in {"index", "home", "default", "welcome"} or not name:
        facts.append("index")
    return UrlParts(
        host,
        domain,
        host.removesuffix(domain).strip("."),
        directory,
        rest,
        tuple(f"place:{fact}" for fact in facts),
    )


@lru_cache(maxsize=50_000)
def words_of(url: str) -> str:
    """Return the words of a URL: of its path and query, and of its host all but the domain."""
    parts = parts_of(url)
    return DIGITS.sub("0", f"{parts.subdomain} {parts.rest}")


def relation(url: UrlParts, seen_from: UrlParts) -> str:
    """Say where a URL is as seen from another: other domain, other host, below, beside, ..."""
    if url.domain != seen_from.domain:
        return "away"
    if url.host != seen_from.host:
        return "domain"
    if url.directory == seen_from.directory:
        return "beside"
    if url.directory.startswith(seen_from.directory + "/"):
        return "below"
    if seen_from.directory.startswith(url.directory + "/"):
        return "above"
    return "host"


@lru_cache(maxsize=50_000)
def word_shape(text: str) -> str:
    """Return the shape of a short text: ``Aa Aa`` for a name, ``AA 0`` for a course number."""
    pieces = _PIECES.findall(text[:80])
    shapes = []
    for piece in pieces[:_LONGEST_SHAPE]:
        if piece[0].isdigit():
            shapes.append("0")
        elif not piece[0].isalpha():
            shapes.append(piece)
        elif piece.islower():
            shapes.append("a")
        elif piece.isupper():
            shapes.append("A" if len(piece) == 1 else "AA")
        else:
            shapes.append("Aa")
    return "".join(shapes) + ("+" if len(pieces) > _LONGEST_SHAPE else "")
