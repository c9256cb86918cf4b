"""A crawl in rounds as a folder, for whatever reads those: reports, hubs, knowledge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from focuscrawl.crawl.folder import CrawlFolder
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.rounds.bucket_urls import BucketUrls
from focuscrawl.rounds.context import RoundsContext
from focuscrawl.store import PageRow, StoreWriter, VisitRecord
from focuscrawl.store.records import LinkRow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

#: columns that a page has in both
_PAGE = (
    *("status", "relevance", "topic", "score", "fetched_at", "content_type", "size"),
    *("title", "canonical", "digest", "error", "links", "dropped"),
)


def write_folder(root: str, path: Path) -> int:
    """Write the crawl at `root` into a new folder; return how many pages that is.

    Texts of links and what the strategy remembers of them are not in it: it cannot be resumed.

    Raises
    ------
    UserError
        There is a crawl in the folder, or it cannot be written.
    """
    context, folder = RoundsContext(root), CrawlFolder(path)
    tables, checked, numbers = context.tables, context.checked, UrlTable()
    last = tables.read_json("rounds/last.json") or {"round": 0}
    # no crawl that might be resumed is this one
    identity = checked.identity | {"strategy": f"{checked.identity['strategy']} in rounds"}
    store = folder.open_store(identity | {"rounds": root}, checked.about)
    writer = StoreWriter(store.engine)
    known = [
        row
        for bucket in range(context.buckets)
        for row in _urls(BucketUrls(tables, bucket, last["round"]))
    ]
    known.sort(key=lambda row: row["found"])
    for row in known:
        referrer = None if row["referrer"] is None else numbers.get(row["referrer"])
        number = numbers.add(row["url"], row["depth"], referrer)
        numbers.change(number, row["state"], row["score"] if math.isfinite(row["score"]) else None)
    url_of = {row["id"]: row["url"] for row in known}
    record = VisitRecord(events=[(0, "start", f"rounds of {root}")])
    links, seq = 0, 0
    found = _links(context, last["round"])
    for seq, page in enumerate(_pages(context, last["round"]), 1):
        at, twin = numbers.get(page["url"]), page["duplicate_of"]
        assert at is not None
        record.page = PageRow(
            seq=seq,
            url=at,
            duplicate_of=None if twin is None else numbers.get(twin),
            **{name: page[name] for name in _PAGE},
        )
        for target, score in found.get(page["url"], ()):
            to = numbers.get(url_of[target])
            assert to is not None
            record.links.append(LinkRow(links, at, to, "", 0, score, 0))
            links += 1
        numbers.flush(record)
        writer.put(record)
        record = VisitRecord()
    record.events.append((seq, "stop", str(last.get("stop", "interrupted"))))
    numbers.flush(record)
    writer.put(record)
    writer.close()
    store.close()
    folder.release()
    return seq


def _urls(urls: BucketUrls) -> Iterator[dict[str, Any]]:
    yield from urls.rows(urls.places(urls.ids)).to_pylist()


def _pages(context: RoundsContext, until: int) -> Iterator[dict[str, Any]]:
    """Yield the pages round by round, of a round bucket by bucket."""
    for round_ in range(1, until + 1):
        for bucket in range(context.buckets):
            if context.tables.has(f"pages/{bucket:03}/{round_:05}"):
                yield from context.tables.read(f"pages/{bucket:03}/{round_:05}").to_pylist()


def _links(context: RoundsContext, until: int) -> dict[str, list[tuple[int, float | None]]]:
    """Return where the links of each page lead, and their scores."""
    links: dict[str, list[tuple[int, float | None]]] = {}
    for bucket in range(context.buckets):
        for name in context.tables.of_bucket("evidence", bucket, until):
            columns = ["source", "targets", "scores"]
            for row in context.tables.read(name, columns).to_pylist():
                scores = [score if math.isfinite(score) else None for score in row["scores"]]
                pairs = zip(row["targets"], scores, strict=True)
                links.setdefault(row["source"], []).extend(pairs)
    return links
