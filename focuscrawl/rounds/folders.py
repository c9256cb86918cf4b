"""A crawl in rounds as a folder that reports read, and a sample of its pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.crawl.crawl_folder import IN_ROUNDS, CrawlFolder
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import identity
from focuscrawl.rounds.buckets import BucketUrls
from focuscrawl.rounds.context import RoundsContext
from focuscrawl.store import PageRow, StoreWriter, VisitRecord
from focuscrawl.store.schema import LinkRow
from focuscrawl.strategies import RecalledPage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.rounds.tables import Tables


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


#: columns that a page has in both
_PAGE = (
    *("status", "relevance", "topic", "score", "fetched_at", "content_type", "size"),
    *("title", "canonical", "digest", "error", "links", "dropped"),
)


def write_folder(root: str, path: Path, most: int | None = None) -> int:
    """Write the crawl at `root` into a new folder; return how many pages that is.

    Texts of links are not in it.

    Parameters
    ----------
    most : so many pages, drawn at random, with their links; None: all, whose URLs are then held
        in memory

    Raises
    ------
    UserError
        There is a crawl in the folder, it cannot be written, or tables do not fit together.
    """
    context, folder = RoundsContext(root), CrawlFolder(path)
    tables, checked, numbers = context.tables, context.checked, UrlTable()
    last = tables.read_json("rounds/last.json") or {"round": 0}
    sample = None if most is None else Sample(context, last["round"], most)
    store = folder.open_store(checked.identity | {IN_ROUNDS: root}, checked.about)
    writer = StoreWriter(store)
    known = [
        row
        for bucket in range(context.buckets)
        for row in _urls(BucketUrls(tables, bucket, last["round"]), sample)
    ]
    known.sort(key=lambda row: row["found"])
    for row in known:
        referrer = None if row["referrer"] is None else numbers.get(row["referrer"])
        number = numbers.add(row["url"], row["depth"], referrer)
        numbers.change(number, row["state"], row["score"] if math.isfinite(row["score"]) else None)
    url_of = {row["id"]: row["url"] for row in known}
    record = VisitRecord(events=[(0, "start", f"rounds of {root}")])
    n_links, seq, strategy = 0, 0, context.strategy()
    links = _Links(context, last["round"], sample)
    for seq, page in enumerate(_pages(context, last["round"], sample), 1):
        at, twin = numbers.get(page["url"]), page["duplicate_of"]
        assert at is not None
        record.page = PageRow(
            seq=seq,
            url=at,
            duplicate_of=None if twin is None else numbers.get(twin),
            **{name: page[name] for name in _PAGE},
        )
        parts = []
        for row in links.of(page["url"]):
            to = [numbers.add(url_of[target], 0, None) for target in row["targets"]]
            scores = [score if math.isfinite(score) else None for score in row["scores"]]
            for target, score in zip(to, scores, strict=True):
                record.links.append(LinkRow(n_links, at, target, "", 0, score, 0))
                n_links += 1
            targets, given = np.array(to, np.int64), np.array(row["scores"])
            parts.append(RecalledPage(at, seq, row["relevance"], targets, given, row["memo"]))
        record.memo = strategy.joined(parts) if parts else None
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


def _urls(urls: BucketUrls, sample: Sample | None) -> Iterator[dict[str, Any]]:
    ids = urls.ids if sample is None else np.intersect1d(urls.ids, sample.urls)
    yield from urls.rows(urls.places(ids)).to_pylist()


def _pages(context: RoundsContext, until: int, sample: Sample | None) -> Iterator[dict[str, Any]]:
    for name in page_tables(context, until):
        rows = context.tables.read(name)
        yield from (rows if sample is None else sample.of_pages(rows)).to_pylist()


class _Links:
    """Links of a crawl, in the order of its pages; held are a few of each bucket."""

    def __init__(self, context: RoundsContext, until: int, sample: Sample | None) -> None:
        self._where = context.tables.root
        self._rows = [_evidence(context.tables, n, until, sample) for n in range(context.buckets)]
        self._next = [next(rows, None) for rows in self._rows]

    def of(self, url: str) -> Iterator[dict[str, Any]]:
        """Yield what there is of a page, the one after the page that was asked for last."""
        for bucket, rows in enumerate(self._rows):
            row = self._next[bucket]
            while row is not None and row["source"] == url:
                yield row
                self._next[bucket] = row = next(rows, None)

    def refuse_more(self) -> None:
        """Raise UserError if there are links of pages that are none."""
        for row in self._next:
            if row is not None:
                raise UserError(f"{self._where} is damaged: no page has links of {row['source']}")


def _evidence(
    tables: Tables, bucket: int, until: int, sample: Sample | None
) -> Iterator[dict[str, Any]]:
    for name in tables.of_bucket("evidence", bucket, until):
        for some in tables.read_some(name):
            yield from (some if sample is None else sample.of_links(some)).to_pylist()
