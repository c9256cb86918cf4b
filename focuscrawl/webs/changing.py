"""`ChangingWeb`: version 1, 2, 3, ... of a web whose pages change, by a seeded rule."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from focuscrawl.webs.life_cycles import Lives
from focuscrawl.webs.page_versions import revised
from focuscrawl.webs.protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from focuscrawl.webs.protocol import Web

_MOVED = "moved-here"  # first part of the path of a page that has moved
_GONE = b"<!doctype html><title>Not found</title><p>This page is not here any more."
_HTML = ("Content-Type", "text/html; charset=utf-8")


class ChangingWeb:
    """One version of a web whose pages come, change, move and go (`protocol.Web`).

    Pages are those of `web`; some of them come only with a later version, and links to them with
    the next edit of the pages that hold them. A page may be edited; move to another URL of its
    host, which the old one redirects to; or be removed, which its URL answers 404 from then on,
    while the links to it stay. HTML is served with ETag and Last-Modified.
    `focuscrawl.webs.life_cycles` has the rates.

    Parameters
    ----------
    web : what it is made of
    version : from 1, where nothing was edited, moved or removed yet
    random_state : two of one web, version and state are the same to the byte
    """

    def __init__(self, web: Web, version: int, random_state: int = 0) -> None:
        self._web = web
        self._lives = Lives(random_state)
        self.version = version
        self.name = f"{web.name}@{version}"
        content = f"changing web 1 {web.fingerprint} {version} {random_state}"
        self.fingerprint = blake2b(content.encode(), digest_size=16).hexdigest()

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Map URLs to those of this version; what was removed is known, what is to come is not."""
        found: list[str | None] = []
        for url, own in zip(urls, self._web.resolve(urls), strict=True):
            if own is not None:
                found.append(own if self._lives.of(own).born <= self.version else None)
                continue
            old = self._before_moving(url)
            found.append(None if old is None else _moved(old))
        return found

    def fetch(self, url: str) -> Answer | None:
        """Return the answer for a URL that `resolve` returned; None if there is none."""
        answer = self._web.fetch(url)
        old = url
        if answer is None:
            before = self._before_moving(url)
            answer = None if before is None else self._web.fetch(before)
            if before is None or answer is None:
                return None
            old = before
        life = self._lives.of(old)
        if life.born > self.version:
            return None
        if life.removed <= self.version:
            return Answer(url, 404, [_HTML], _GONE)
        if old == url and life.moved <= self.version:
            return Answer(url, 301, [("Location", _moved(url))], b"")
        return revised(answer, url, life, self.version, self._births)

    def urls(self) -> Iterator[str]:
        """Iterate over the URL of every page there is."""
        for url in self._web.urls():
            life = self._lives.of(url)
            if life.born <= self.version < life.removed:
                yield _moved(url) if life.moved <= self.version else url

    def _births(self, targets: Sequence[str | None]) -> list[int]:
        """Return the versions that the pages behind links come with; 1 where nothing is known."""
        known = self._web.resolve([target or "" for target in targets])
        return [1 if url is None else self._lives.of(url).born for url in known]

    def _before_moving(self, url: str) -> str | None:
        """Return where the page was that is at `url` since it moved; None if none is."""
        front, moved, path = url.partition(f"/{_MOVED}/")
        if not moved or front.count("/") > 2:
            return None
        old = self._web.resolve([f"{front}/{path}"])[0]
        return old if old is not None and self._lives.of(old).moved <= self.version else None


def _moved(url: str) -> str:
    scheme, _, host, path = url.split("/", 3)
    return f"{scheme}//{host}/{_MOVED}/{path}"
