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
    from collections.abc import Sequence

    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.rounds.context import RoundsContext

_HELD = 64  # buckets whose contents a process holds


def content_id(digest: bytes) -> int:
    """Return a number of a page's content, 63 bits of its digest."""
    return int.from_bytes(digest[:8], "little") >> 1


def keeper_of(content: int, buckets: int) -> int:
    """Return the bucket that keeps what is known of a content, whatever host it is from."""
    return content % buckets


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
    """What makes a page a duplicate of one of the rounds up to some.

    URLs are those of a bucket, as a page is known by URLs on its own host alone. Contents may be
    of any bucket: they are kept by `keeper_of` them, and read as far as somebody asks.
    """

    def __init__(self, context: RoundsContext, bucket: int, until: int) -> None:
        self._context = context
        self._until = until
        self._names = _names(context.tables, bucket, until)

    def with_content(self, digest: bytes) -> str | None:
        """Return the URL of the first page with some content."""
        content = content_id(digest)
        keeper = keeper_of(content, self._context.buckets)
        return _contents(self._context.tables.root, keeper, self._until).get(content)

    def named(self, name: str) -> str | None:
        """Return the URL of the first page that is known by the URL `name`."""
        return self._names.get(identity(name))


class _Index:
    """URLs of pages in tables, by ids; held are the ids.

    Parameters
    ----------
    names : of the tables
    lengths : rows of each
    ids : int64 (n,)
    rows : int64 (n,), ascending, of all tables together; of an id the first one counts
    """

    def __init__(
        self, tables: Tables, names: Sequence[str], lengths: Sequence[int], ids: Ints, rows: Ints
    ) -> None:
        self._tables = tables
        self._names = names
        self._begin = np.cumsum([0, *lengths])
        self._ids, first = np.unique(ids, return_index=True)
        self._rows = rows[first]

    def get(self, id_: int) -> str | None:
        """Return the URL of a page; None if there is none."""
        at = int(np.searchsorted(self._ids, id_))
        if at == len(self._ids) or self._ids[at] != id_:
            return None
        row = self._rows[at]
        part = int(np.searchsorted(self._begin, row, side="right")) - 1
        here = np.array([row - self._begin[part]], np.int64)
        (found,) = self._tables.read_rows(self._names[part], here)
        url: str = found["url"][0].as_py()
        return url


def _names(tables: Tables, bucket: int, until: int) -> _Index:
    """Return the pages of a bucket by the URLs that they are known by."""
    names = tables.of_bucket("known", bucket, until)
    parts = [tables.read(name, ["names"]) for name in names]
    lists = pa.concat_tables([KNOWN.empty_table().select(["names"]), *parts])["names"]
    row = np.repeat(np.arange(len(lists)), lists.combine_chunks().value_lengths().to_numpy())
    ids = lists.combine_chunks().flatten().to_numpy()
    return _Index(tables, names, [*map(len, parts)], ids, row)


@lru_cache(maxsize=_HELD)
def _contents(root: str, bucket: int, until: int) -> _Index:
    """Return the pages whose contents a bucket keeps; tasks of a process share them."""
    tables = Tables(root)
    names = tables.of_bucket("contents", bucket, until)
    parts = [tables.read(name, ["content"])["content"].to_numpy() for name in names]
    ids = np.concatenate([np.zeros(0, np.int64), *parts])
    return _Index(tables, names, [*map(len, parts)], ids, np.arange(len(ids)))
