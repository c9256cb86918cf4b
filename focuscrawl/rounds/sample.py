"""Some pages of a crawl, drawn at random, and the URLs that have to do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.foundation.urls import identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.rounds.context import RoundsContext


class Sample:
    """Pages drawn at random, by the seed of the crawl: the same every time, and more have these.

    Held is what was drawn, and no more: ids of URLs are hashes, so the least of them, with bits
    flipped as the seed says, are a sample.

    Parameters
    ----------
    until : the last round
    most : so many pages, if there are

    Attributes
    ----------
    pages : int64 (n,), their ids
    urls : int64 (m,), ids of all URLs that they, or their links, name
    """

    def __init__(self, context: RoundsContext, until: int, most: int) -> None:
        self._context = context
        self._until = until
        flipped = np.random.default_rng(context.checked.plan.random_state).integers(1 << 63)
        drawn = np.zeros(0, np.int64)
        for name in page_tables(context, until):
            found = context.tables.read(name, ["id"])["id"].to_numpy() ^ flipped
            drawn = np.sort(np.concatenate([drawn, found]))[:most]
        self.pages: Ints = np.sort(drawn ^ flipped)
        self._chosen = pa.array(self.pages, pa.int64())
        named: set[int] = set()
        sources: list[str] = []
        for name in page_tables(context, until):
            columns = ["id", "url", "referrer", "duplicate_of"]
            for row in self.of_pages(context.tables.read(name, columns)).to_pylist():
                named |= {identity(url) for key, url in row.items() if key != "id" and url}
                sources.append(row["url"])
        self._sources = pa.array(sources, pa.string())
        ids = [np.array([*named], np.int64)]
        for bucket in range(context.buckets):
            for name in context.tables.of_bucket("evidence", bucket, until):
                ids += [
                    self.of_links(rows)["targets"].flatten().to_numpy()
                    for rows in context.tables.read_some(name, ["source", "targets"])
                ]
        self.urls: Ints = np.unique(np.concatenate(ids))

    def of_pages(self, rows: pa.Table) -> pa.Table:
        """Return those rows whose ``id`` is a page's that was drawn."""
        return rows.filter(pc.is_in(rows["id"], value_set=self._chosen))

    def of_links(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return those rows whose ``source`` is a page that was drawn."""
        return rows.filter(pc.is_in(rows["source"], value_set=self._sources))


def page_tables(context: RoundsContext, until: int) -> Iterator[str]:
    """Yield the tables of pages round by round, of a round bucket by bucket."""
    for round_ in range(1, until + 1):
        for bucket in range(context.buckets):
            if context.tables.has(f"pages/{bucket:03}/{round_:05}"):
                yield f"pages/{bucket:03}/{round_:05}"
