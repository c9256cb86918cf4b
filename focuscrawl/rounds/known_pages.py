"""Which pages are here already under another URL, in whatever bucket."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.foundation.urls import identity
from focuscrawl.rounds.tables import KNOWN, Tables

if TYPE_CHECKING:
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.foundation.arrays import Ints

COLUMNS = ["url", *KNOWN.names]


def content_id(digest: bytes) -> int:
    """Return a number of a page's content, 63 bits of its digest."""
    return int.from_bytes(digest[:8], "little") >> 1


class KnownPages(Duplicates):
    """`Duplicates` that knows the pages of all earlier rounds by their content and their names.

    Two pages of one round in different buckets do not know of each other: both count.
    """

    def __init__(self, earlier: EarlierPages, urls: UrlTable) -> None:
        super().__init__()
        self._earlier = earlier
        self._urls = urls

    def find(self, digest: bytes, names: list[str]) -> int | None:
        """Return the number of the earlier page; see `Duplicates.find`."""
        found = super().find(digest, names)
        if found is not None:
            return found
        known = [self.stands_for(name) for name in names]
        same = self._number(self._earlier.with_content(digest))
        return next((each for each in [*known, same] if each is not None), None)

    def stands_for(self, name: str) -> int | None:
        """Return the number of the fetched page that stands for the URL `name`."""
        found = super().stands_for(name)
        return self._number(self._earlier.named(name)) if found is None else found

    def _number(self, url: str | None) -> int | None:
        return None if url is None else self._urls.add(url, 0, None)


class EarlierPages:
    """What makes a page a duplicate of one of the rounds up to some, in any bucket."""

    def __init__(self, tables: Tables, buckets: int, until: int) -> None:
        self._tables = tables
        self._parts = [
            name for bucket in range(buckets) for name in tables.of_bucket("known", bucket, until)
        ]
        parts = [tables.read(name, KNOWN.names) for name in self._parts]
        self._ends = np.cumsum([len(part) for part in parts])
        pages = pa.concat_tables([KNOWN.empty_table(), *parts])
        names = pages["names"].combine_chunks()
        page = np.repeat(np.arange(len(pages)), names.value_lengths().to_numpy())
        self._contents = _Index(pages["content"].to_numpy(), np.arange(len(pages)))
        self._names = _Index(names.flatten().to_numpy(), page)
        self._urls: dict[int, pa.ChunkedArray] = {}  # of parts, as far as somebody asked

    def with_content(self, digest: bytes) -> str | None:
        """Return the URL of the first page with some content."""
        return self._url(self._contents.get(content_id(digest)))

    def named(self, name: str) -> str | None:
        """Return the URL of the first page that is known by the URL `name`."""
        return self._url(self._names.get(identity(name)))

    def _url(self, page: int | None) -> str | None:
        if page is None:
            return None
        part = int(np.searchsorted(self._ends, page, side="right"))
        if part not in self._urls:
            self._urls[part] = self._tables.read(self._parts[part], ["url"])["url"]
        urls = self._urls[part]
        found: str = urls[page - int(self._ends[part]) + len(urls)].as_py()
        return found


@lru_cache(maxsize=1)
def earlier_pages(root: str, buckets: int, until: int) -> EarlierPages:
    """Return the pages of all rounds up to one; tasks of a process share them."""
    return EarlierPages(Tables(root), buckets, until)


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
