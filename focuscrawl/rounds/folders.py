"""Converts a crawl in rounds, or a sample of its pages, to a crawl folder for reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.crawl.crawl_folder import TABLES_KEY, CrawlFolder
from focuscrawl.crawl.target_pages import write_targets
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import hashed_id
from focuscrawl.rounds.buckets import BucketUrls
from focuscrawl.rounds.context import RoundsContext
from focuscrawl.store import PageRow, StoreWriter, VisitRecord
from focuscrawl.store.schema import LinkRow
from focuscrawl.strategies import StoredPage

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Ints


#: columns of pages that the tables and the store share
_PAGE_COLUMNS = (
    *("status", "relevance", "topic", "score", "fetched_at", "content_type", "size"),
    *("title", "canonical", "digest", "error", "links", "dropped"),
)


def write_crawl_folder(root: str, path: Path, most: int | None = None) -> int:
    """Write the crawl in rounds at `root` to a new crawl folder, but without anchor texts.

    Parameters
    ----------
    most : int, optional
        Number of pages to draw at random, with their links; by default all pages, whose URLs are
        then in memory.

    Returns
    -------
    int
        Number of pages.

    Raises
    ------
    UserError
        The folder contains a crawl or cannot be written, or tables contradict each other.
    """
    context, folder = RoundsContext(root), CrawlFolder(path)
    tables, checked, numbers = context.tables, context.checked, UrlTable()
    last = tables.read_json("rounds/last.json") or {"round": 0}
    selection = _Selection(context, last["round"], most)
    store = folder.open_store(checked.identity | {TABLES_KEY: root}, checked.about)
    if checked.targets and most is None:
        write_targets(path, checked.targets)
    writer = StoreWriter(store)
    known = [
        row
        for bucket in range(context.buckets)
        for row in selection.urls(BucketUrls(tables, bucket, last["round"]))
    ]
    known.sort(key=lambda row: row["found"])
    for row in known:
        referrer = None if row["referrer"] is None else numbers.get(row["referrer"])
        number = numbers.add(row["url"], row["depth"], referrer)
        numbers.set_state(
            number, row["state"], row["score"] if math.isfinite(row["score"]) else None
        )
    url_of = {row["id"]: row["url"] for row in known}
    record = VisitRecord(events=[(0, "start", f"rounds of {root}")])
    n_links, seq, strategy = 0, 0, context.strategy()
    links = _Links(context, selection)
    for seq, page in enumerate(selection.pages(), 1):
        at, twin = numbers.get(page["url"]), page["duplicate_of"]
        assert at is not None
        record.page = PageRow(
            seq=seq,
            url=at,
            duplicate_of=None if twin is None else numbers.get(twin),
            **{name: page[name] for name in _PAGE_COLUMNS},
        )
        parts = []
        for row in links.of(page["url"]):
            to = [numbers.add(url_of[target], 0, None) for target in row["targets"]]
            scores = [score if math.isfinite(score) else None for score in row["scores"]]
            for target, score in zip(to, scores, strict=True):
                record.links.append(LinkRow(n_links, at, target, "", 0, score, 0))
                n_links += 1
            targets, given = np.array(to, np.int64), np.array(row["scores"])
            parts.append(StoredPage(at, seq, row["relevance"], targets, given, row["memo"]))
        record.memo = strategy.join_memos(parts) if parts else None
        numbers.flush(record)
        writer.put(record)
        record = VisitRecord()
    links.refuse_more()
    record.events.append((seq, "stop", str(last.get("stop", "interrupted"))))
    numbers.flush(record)
    writer.put(record)
    writer.close()
    store.close()
    folder.release()
    return seq


class _Selection:
    """The part of a crawl to write: all pages, or a random sample of pages with their links.

    The seed of the crawl determines the sample, and a larger sample contains the smaller ones.
    Ids of URLs are hashes, so the smallest ids, with bits flipped by the seed, are a random
    sample. Only the ids of the sample are in memory.

    Parameters
    ----------
    until : int
        Last round.
    most : int or None
        Size of the sample; None: all pages.
    """

    def __init__(self, context: RoundsContext, until: int, most: int | None) -> None:
        self._context = context
        self._until = until
        self._pages: pa.Array | None = None  # ids
        if most is None:
            return
        flipped = np.random.default_rng(context.checked.config.random_state).integers(1 << 63)
        least = np.zeros(0, np.int64)
        for name in self._page_tables():
            found = context.tables.read(name, ["id"])["id"].to_numpy() ^ flipped
            least = np.sort(np.concatenate([least, found]))[:most]
        self._pages = pa.array(np.sort(least ^ flipped), pa.int64())
        named: set[int] = set()
        sources: list[str] = []
        for row in self.pages(["id", "url", "referrer", "duplicate_of"]):
            named |= {hashed_id(url) for key, url in row.items() if key != "id" and url}
            sources.append(row["url"])
        self._sources = pa.array(sources, pa.string())
        ids = [np.array([*named], np.int64)]
        for bucket in range(context.buckets):
            ids += [
                rows["targets"].flatten().to_numpy()
                for rows in self._evidence(bucket, ["source", "targets"])
            ]
        self._urls: Ints = np.unique(np.concatenate(ids))  # ids in pages and links

    def urls(self, urls: BucketUrls) -> list[dict[str, Any]]:
        """Return the table rows of the URLs of a bucket (group of hosts)."""
        ids = urls.ids if self._pages is None else np.intersect1d(urls.ids, self._urls)
        rows: list[dict[str, Any]] = urls.rows(urls.positions(ids)).to_pylist()
        return rows

    def pages(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the table rows of fetched pages, ordered by round (batch) and bucket of hosts."""
        for name in self._page_tables():
            rows = self._context.tables.read(name, columns)
            if self._pages is not None:
                rows = rows.filter(pc.is_in(rows["id"], value_set=self._pages))
            yield from rows.to_pylist()

    def links(self, bucket: int) -> Iterator[dict[str, Any]]:
        """Yield the links to URLs of a bucket of hosts, in the order of the linking pages."""
        for rows in self._evidence(bucket):
            yield from rows.to_pylist()

    def _evidence(
        self, bucket: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        tables = self._context.tables
        for name in tables.bucket_tables("evidence", bucket, self._until):
            for rows in tables.read_batches(name, columns):
                if self._pages is None:
                    yield rows
                else:
                    yield rows.filter(pc.is_in(rows["source"], value_set=self._sources))

    def _page_tables(self) -> Iterator[str]:
        for round_ in range(1, self._until + 1):
            for bucket in range(self._context.buckets):
                name = f"pages/{bucket:03}/{round_:05}"
                if self._context.tables.has(name):
                    yield name


class _Links:
    """Links of a crawl in the order of its pages; one batch of each bucket is in memory."""

    def __init__(self, context: RoundsContext, selection: _Selection) -> None:
        self._root = context.tables.root
        self._rows = [selection.links(bucket) for bucket in range(context.buckets)]
        self._next = [next(rows, None) for rows in self._rows]

    def of(self, url: str) -> Iterator[dict[str, Any]]:
        """Yield the links of a page; pages must be given in the order of the crawl."""
        for bucket, rows in enumerate(self._rows):
            row = self._next[bucket]
            while row is not None and row["source"] == url:
                yield row
                self._next[bucket] = row = next(rows, None)

    def refuse_more(self) -> None:
        """Raise `UserError` if some links belong to no page."""
        for row in self._next:
            if row is not None:
                raise UserError(
                    f"{self._root} is damaged (the page {row['source']} of some links is "
                    "missing): crawl again into another folder"
                )
