"""The Link header field (RFC 8288), as far as it names a page in other languages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from focuscrawl.foundation.urls import MAX_URL, resolve
from focuscrawl.page.metadata import MAX_TAG, MAX_TRANSLATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONGEST = 20_000  # characters of a field that are looked at
_LINK = re.compile(r"<([^<>]*)>((?:\"[^\"]*\"|[^\"<,])*)")
_PARAMETER = re.compile(r";\s*([\w!#$&+.^`|~-]+)\*?\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]*))")


def translations_of(fields: Iterable[str], url: str) -> list[tuple[str, str]]:
    """Return where a page is in other languages, by ``rel=alternate`` with ``hreflang``.

    Parameters
    ----------
    fields : values of its Link header fields
    url : of the page

    Returns
    -------
    Languages as written, and URLs
    """
    found = []
    for reference, language in _alternates(fields):
        target = resolve(url, [reference])[0] if len(reference) <= MAX_URL else None
        if target is not None and len(target) <= MAX_URL:
            found.append((language[:MAX_TAG], target))
        if len(found) >= MAX_TRANSLATIONS:
            break
    return found


def _alternates(fields: Iterable[str]) -> Iterator[tuple[str, str]]:
    for field in fields:
        for reference, written in _LINK.findall(field[:_LONGEST]):
            said: dict[str, str] = {}
            for name, quoted, plain in _PARAMETER.findall(written):
                said.setdefault(name.lower(), (quoted or plain).strip())  # the first counts
            if "alternate" in said.get("rel", "").lower().split() and said.get("hreflang"):
                yield reference.strip(), said["hreflang"]
