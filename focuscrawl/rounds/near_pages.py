"""Which pages resemble those of earlier rounds, in the same bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.crawl.parts.near_duplicates import NearDuplicates
from focuscrawl.store.history import DIGEST

if TYPE_CHECKING:
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.rounds.tables import Tables

_REMEMBERED = 2_000  # pages of a bucket


class NearPages(NearDuplicates):
    """`NearDuplicates` that begins with the last pages of a bucket."""

    def __init__(self, crawl: CrawlState, tables: Tables, bucket: int, until: int) -> None:
        super().__init__(crawl)
        self._last = _last_sketches(tables, bucket, until)

    def reset(self) -> None:
        """Forget the pages of this round."""
        super().reset()
        for url, minhash in self._last:
            self.remember(self._crawl.urls.add(url, 0, None), minhash)


def _last_sketches(tables: Tables, bucket: int, until: int) -> list[tuple[str, bytes]]:
    """Return URL and MinHash of the last pages of a bucket, in the order fetched."""
    found: list[tuple[str, bytes]] = []
    for name in reversed(tables.of_bucket("pages", bucket, until)):
        rows = tables.read(name, ["url", "digest", "duplicate_of"]).to_pylist()
        sketches = [
            (row["url"], row["digest"][DIGEST:])
            for row in rows
            if row["digest"] is not None and row["duplicate_of"] is None
        ]
        found = [each for each in sketches if each[1]] + found
        if len(found) >= _REMEMBERED:
            break
    return found[-_REMEMBERED:]
