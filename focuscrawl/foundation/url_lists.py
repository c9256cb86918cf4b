"""Lists of URLs, their parts, hosts, languages, as users write them: with commas, or a file.

Parts of URLs have wildcards as robots.txt has them (RFC 9309, section 2.2.3), and no regular
expressions: whoever writes a page writes the URLs that they are held against, and could make an
expression that goes back and forth take minutes. Here the time grows with the URL's length.
"""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import lines_of, read_text
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.foundation.values import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_PATTERNS = 1000  # of a list; each is looked for in every URL
_NEXT_URL = re.compile(r",\s*(?=https?:|www\.)|,(?=\s)|\s(?=https?:|www\.)", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_FILE = re.compile(r"^[^*]+\.(?:txt|csv|tsv|lst|list)$")  # what lists are called
_NO_WILDCARD = re.compile(r"\\|\||\^|\.[*+]")  # what regular expressions are written with


def split_urls(text: str) -> list[str]:
    """Return what is written with commas or blanks between; a comma within a URL belongs to it."""
    return [part.strip() for part in _NEXT_URL.split(text)]


class Hosts:
    """Some hosts, and all hosts below them: ``a.example`` is ``www.a.example``, too.

    Parameters
    ----------
    names : as `HOSTS` reads them; one with a port is that port alone, one without is any
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._most_dots = max((name.count(".") for name in self._names), default=0)

    def has(self, name: str) -> bool:
        """Tell whether a host is among them; with its port, if that is not the scheme's own."""
        bare, _, port = name.rpartition(":")
        named = (name, bare) if port.isdecimal() and not bare.endswith(":") else (name,)
        return any(self._has(each.rstrip(".")) for each in named)

    def _has(self, name: str) -> bool:
        labels = name.rsplit(".", self._most_dots + 1)
        return any(".".join(labels[at:]) in self._names for at in range(len(labels)))


class UrlPatterns:
    """Finds parts of URLs: ``*`` stands for anything, ``$`` at the end for the end of the URL.

    Parameters
    ----------
    patterns : as `URL_PATTERNS` reads them
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [
            ([part for part in each.removesuffix("$").split("*") if part], _ends(each))
            for each in patterns
        ]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, url: str) -> bool:
        """Tell whether one of them is found in a normalised URL."""
        return any(_found(parts, url, ends=ends) for parts, ends in self._patterns)


def _ends(pattern: str) -> bool:
    """Tell whether the last part is to be at the end of a URL."""
    return pattern.endswith("$") and not pattern.endswith("*$")


def _found(parts: Sequence[str], url: str, *, ends: bool) -> bool:
    """Tell whether the parts follow each other in `url`: each where it comes first, so once."""
    *before, last = parts
    at = 0
    for part in before:
        at = url.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if ends:
        return url.endswith(last) and len(url) - len(last) >= at
    return url.find(last, at) >= 0


def _entries(written: Any) -> list[str]:
    """Return what a user lists: with commas, in a file with one a line, or in a settings module.

    Blank lines of a file are skipped, and those that begin with ``#``.

    Raises
    ------
    UserError
        There is such a file, and it cannot be read, or nothing is in it; or there is none, and
        it is called like one.
    """
    if not isinstance(written, str):
        found = [str(each) for each in written]
    elif "," not in written and written.strip() and Path(written).is_file():
        found = [*lines_of(read_text(written)).values()]
        if not found:  # no limit at all is not what a list is for
            raise UserError(f"{written}: nothing in it; write one a line, or leave it out")
    elif "," not in written and _FILE.search(written):
        raise UserError(f"there is no file {written}; as a part of URLs it is *{written}")
    else:
        found = written.split(",")
    return [*dict.fromkeys(each.strip() for each in found if each.strip())]


def _hosts(written: Any) -> tuple[str, ...]:
    return tuple(map(_host, _entries(written)))


def _host(written: str) -> str:
    url = None if re.search(r"[/@?#*\\\s]", written) else normalize(f"http://{written}/")
    if url is None:
        raise UserError(
            f"{written!r} is no host: write it as in www.example.org, without scheme and path; "
            "hosts below it are in"
        )
    return host(url).rstrip(".")


def _patterns(written: Any) -> tuple[str, ...]:
    found = _entries(written)
    for each in found:
        if _NO_WILDCARD.search(each):
            raise UserError(
                f"{each!r} is a regular expression: write a part of the URL, with * for anything "
                "and $ for its end, several with commas between"
            )
        if not each.strip("*$"):
            raise UserError(f"{each!r} stands for every URL: write a part of those that are meant")
    if len(found) > MOST_PATTERNS:
        raise UserError(
            f"{len(found):,} parts of URLs are too many: no more than {MOST_PATTERNS:,} are "
            "looked for in every URL; put those with something in common together, with *"
        )
    return tuple(quote(each, safe=string.punctuation) for each in found)


def _languages(written: Any) -> tuple[str, ...]:
    found = [each.lower() for each in _entries(written)]
    if not all(_LANGUAGE.fullmatch(each) for each in found):
        raise ValueError
    return tuple(found)


HOSTS = Reader("hosts, with commas between, or a file with one a line", _hosts)
URL_PATTERNS = Reader("parts of URLs, with commas between, or a file with one a line", _patterns)
LANGUAGES = Reader("codes of languages, with commas between, as in en,de", _languages)


def some_of(*choices: str) -> Reader[tuple[str, ...]]:
    """Return a reader of some of some words, each once, in the order of `choices`."""

    def value_of(written: Any) -> tuple[str, ...]:
        found = _entries(written)
        if not set(found) <= set(choices):
            raise ValueError
        return tuple(each for each in choices if each in found)

    return Reader(f"one or more of {', '.join(choices)}, with commas between", value_of)
