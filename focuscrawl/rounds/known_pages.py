"""Which pages are here already under another URL, in whatever bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.foundation.urls import identity
from focuscrawl.rounds.tables import KNOWN, PAGE

if TYPE_CHECKING:
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.rounds.tables import Tables


COLUMNS = ["url", *KNOWN.names]


def content_id(digest: bytes) -> int:
    """Return a number of a page's content, 63 bits of its digest."""
    return int.from_bytes(digest[:8], "little") >> 1


class KnownPages(Duplicates):
    """`Duplicates` that knows the pages of all earlier rounds by their content and their names.

    Two pages of one round in different buckets do not know of each other: both count.
    """

    def __init__(self, tables: Tables, buckets: int, until: int, urls: UrlTable) -> None:
        super().__init__()
        self._urls = urls
        parts = [
            tables.read(name)
            for bucket in range(buckets)
            for name in tables.of_bucket("known", bucket, until)
        ]
        pages = pa.concat_tables([PAGE.empty_table().select(COLUMNS), *parts])
        self._pages = pages["url"].combine_chunks()
        names = pages["names"].combine_chunks()
        page = np.repeat(np.arange(len(pages)), names.value_lengths().to_numpy())
        self._contents = _Index(pages["content"].to_numpy(), np.arange(len(pages)))
        self._names = _Index(names.flatten().to_numpy(), page)

    def find(self, digest: bytes, names: list[str]) -> int | None:
        """Return the number of the earlier page; see `Duplicates.find`."""
        found = super().find(digest, names)
        if found is not None:
            return found
        known = [self.stands_for(name) for name in names]
        same = self._number(self._contents.get(content_id(digest)))
        return next((each for each in [*known, same] if each is not None), None)

    def stands_for(self, name: str) -> int | None:
        """Return the number of the fetched page that stands for the URL `name`."""
        found = super().stands_for(name)
        return self._number(self._names.get(identity(name))) if found is None else found

    def _number(self, page: int | None) -> int | None:
        return None if page is None else self._urls.add(self._pages[page].as_py(), 0, None)


class _Index:
    """The first page of each id.

    Parameters
    ----------
    ids : int64 (n,)
    pages : int64 (n,), ascending
    """

    def __init__(self, ids: Ints, pages: Ints) -> None:
        self._ids, first = np.unique(ids, return_index=True)
        self._pages = pages[first]

    def get(self, id_: int) -> int | None:
        at = int(np.searchsorted(self._ids, id_))
        known = at < len(self._ids) and self._ids[at] == id_
        return int(self._pages[at]) if known else None
