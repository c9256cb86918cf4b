"""Duplicates of pages that other workers fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.duplicates import Duplicates

if TYPE_CHECKING:
    from focuscrawl.workers.url_ids import SharedUrlTable


class SharedDuplicates(Duplicates):
    """`Duplicates` that has heard of the pages of other workers, too.

    Two workers that fetch the same content at the same moment do not know it of each other: both
    pages count.
    """

    def __init__(self, urls: SharedUrlTable) -> None:
        super().__init__()
        self._urls = urls
        self._elsewhere: dict[bytes, str] = {}

    def clear(self) -> None:
        """Forget all pages."""
        super().clear()
        self._elsewhere.clear()

    def hear(self, digest: bytes, url: str) -> None:
        """Take note of a page of another worker."""
        self._elsewhere.setdefault(digest, url)

    def find(self, digest: bytes, names: list[str]) -> int | None:
        """Return the number of the earlier page; see `Duplicates.find`."""
        found = super().find(digest, names)
        if found is None and digest in self._elsewhere:
            return self._urls.add(self._elsewhere[digest], 0, None)
        return found
