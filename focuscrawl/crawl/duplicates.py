"""Which pages are here already under another URL."""

from __future__ import annotations

import hashlib

from focuscrawl.store.history import DIGEST


class Duplicates:
    """Knows the pages fetched by their canonical URL and by their content.

    A page is a duplicate if its bytes are those of an earlier page, or if it names a canonical
    URL on its own host that was fetched, or that an earlier page named. Canonical URLs of other
    hosts are not believed: anybody can claim them.
    """

    def __init__(self) -> None:
        self._by_digest: dict[bytes, int] = {}
        self._by_canonical: dict[str, int] = {}

    def clear(self) -> None:
        """Forget all pages."""
        self._by_digest.clear()
        self._by_canonical.clear()

    @staticmethod
    def digest(body: bytes) -> bytes:
        """Return the digest that stands for a body."""
        return hashlib.blake2b(body, digest_size=DIGEST).digest()

    @staticmethod
    def names(url: str, canonical: str | None) -> list[str]:
        """Return the URLs a page is known by: its own, and its canonical one on its own host."""
        if canonical is None or canonical == url:
            return [url]
        same_host = canonical.split("/", 3)[2] == url.split("/", 3)[2]
        return [url, canonical] if same_host else [url]

    def find(self, digest: bytes, names: list[str]) -> int | None:
        """Return the number of the earlier page with this content or one of these URLs."""
        for name in names:
            earlier = self._by_canonical.get(name)
            if earlier is not None:
                return earlier
        return self._by_digest.get(digest)

    def stands_for(self, name: str) -> int | None:
        """Return the number of the fetched page that stands for the URL `name`."""
        return self._by_canonical.get(name)

    def add(self, url: int, digest: bytes, names: list[str]) -> None:
        """Remember the page numbered `url`, known by `names`."""
        self._by_digest.setdefault(digest, url)
        for name in names:
            self._by_canonical.setdefault(name, url)
