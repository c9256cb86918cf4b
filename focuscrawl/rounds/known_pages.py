"""Which pages are here already under another URL, in whatever bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.foundation.urls import identity
from focuscrawl.store.history import DIGEST

if TYPE_CHECKING:
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.rounds.tables import Tables


class KnownPages(Duplicates):
    """`Duplicates` that knows the pages of all earlier rounds by their digest and their names.

    Two pages of one round in different buckets do not know of each other: both count.
    """

    def __init__(self, tables: Tables, buckets: int, until: int, urls: UrlTable) -> None:
        super().__init__()
        self._urls = urls
        columns = ["url", "canonical", "digest", "duplicate_of"]
        parts = [
            tables.read(name, columns)
            for bucket in range(buckets)
            for name in tables.of_bucket("pages", bucket, until)
        ]
        self._of_digest: dict[bytes, str] = {}
        self._of_name: dict[int, str] = {}
        for row in pa.concat_tables(parts).to_pylist() if parts else ():
            if row["digest"] is None or row["duplicate_of"] is not None:
                continue
            self._of_digest.setdefault(row["digest"][:DIGEST], row["url"])
            for name in self.names(row["url"], row["canonical"]):
                self._of_name.setdefault(identity(name), row["url"])

    def find(self, digest: bytes, names: list[str]) -> int | None:
        """Return the number of the earlier page; see `Duplicates.find`."""
        found = super().find(digest, names)
        if found is not None:
            return found
        known = [self._of_name.get(identity(name)) for name in names]
        url = next(filter(None, [*known, self._of_digest.get(digest)]), None)
        return None if url is None else self._urls.add(url, 0, None)
