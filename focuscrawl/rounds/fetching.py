"""A round's fetches in one bucket: an ordinary crawl of what was chosen, and of nothing else."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl import Crawl, CrawlFolder
from focuscrawl.crawl.parts.stopping import StopRules
from focuscrawl.crawl.replay import replay
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.foundation.urls import identity
from focuscrawl.frontier import Frontier
from focuscrawl.rounds.bucket_urls import BucketUrls, bucket_of
from focuscrawl.rounds.evidence import evidence_for, recall
from focuscrawl.rounds.known_pages import KnownPages
from focuscrawl.rounds.tables import EVIDENCE, NAME, PAGE
from focuscrawl.store import CrawlStore, schema
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy

_FOUND = 40  # bits: URLs found in a round are numbered from its number times two to this on
_BY = 28  # and those of a bucket from its number times two to this on


class ChosenUrls(UrlTable):
    """A `UrlTable` that holds what was chosen only.

    Attributes
    ----------
    chosen : numbers of these
    first : URLs that come next, in another round: where redirects lead
    """

    def __init__(self) -> None:
        super().__init__()
        self.chosen: set[int] = set()
        self.first: set[int] = set()

    def holds(self, number: int) -> bool:
        """Tell whether a URL was chosen."""
        return number in self.chosen

    def leave_to_others(self, number: int, score: float) -> None:
        """Leave a URL to the rounds that follow."""
        if score == math.inf:
            self.first.add(number)


def fetch(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Fetch what was chosen of a bucket; return how much it was. Done already, it does nothing."""
    tables = context.tables
    name = f"{bucket:03}/{round_:05}"
    if not tables.has(f"pages/{name}"):
        with tempfile.TemporaryDirectory() as scratch:
            _fetch(context, bucket, round_, Path(scratch))
    pages = tables.read(f"pages/{name}", ["relevance"])["relevance"].to_numpy()
    return {"bucket": bucket, "fetched": len(pages), "relevance": float(pages.sum())}


def _fetch(context: RoundsContext, bucket: int, round_: int, scratch: Path) -> None:
    tables, checked, before = context.tables, context.checked, round_ - 1
    all_chosen = tables.read(f"chosen/{round_:05}").to_pylist()
    chosen = [row for row in all_chosen if row["bucket"] == bucket]
    strategy, urls, folder = context.strategy(), ChosenUrls(), CrawlFolder(scratch)
    crawl = Crawl(
        critic=checked.critic,
        strategy=strategy,
        frontier=Frontier(),
        store=folder.open_store(checked.identity, checked.about),
        folder=folder,
        web=checked.web,
        plan=replace(checked.plan, crawl_dir=str(scratch), budget=len(chosen)),
        within=checked.within,
        urls=urls,
        duplicates=KnownPages(tables, context.buckets, before, urls),
    )
    crawl.parts = [StopRules(crawl)]
    for row in chosen:
        referrer = None if row["referrer"] is None else urls.add(row["referrer"], 0, None)
        urls.chosen.add(urls.add(row["url"], row["depth"], referrer))
    wanted = np.array([row["id"] for row in chosen], np.int64)
    recall(
        strategy,
        evidence_for(tables, bucket, before, wanted),
        BucketUrls(tables, bucket, before),
        lambda url: urls.add(url, 0, None),
        outcomes=context.outcomes(bucket, before),
        model=context.model(before),
    )
    for row in chosen:
        number = urls.get(row["url"])
        assert number is not None
        crawl.queue(number, row["score"])
    replay(crawl)
    store = CrawlStore.open(folder.store_path, read_only=True)
    try:
        _write(context, (bucket, round_), urls, strategy, store)
    finally:
        store.close()


def _write(
    context: RoundsContext,
    where: tuple[int, int],
    urls: ChosenUrls,
    strategy: Strategy,
    store: CrawlStore,
) -> None:
    """Write down what came; the pages last, as where they are everything is."""
    (bucket, round_), tables, history = where, context.tables, History(store)
    name = f"{bucket:03}/{round_:05}"
    names: dict[int, dict[int, dict[str, Any]]] = {}
    links: dict[int, list[dict[str, Any]]] = {}
    start = (round_ << _FOUND) + (bucket << _BY)
    for number in sorted(urls.first):
        to, row = _name(context, urls, number, start, first=True)
        names.setdefault(to, {})[number] = row
    for page in history.fetches():
        for to, row, targets in _evidence(context, urls, strategy, page):
            links.setdefault(to, []).append(row)
            for number in targets:
                if number not in names.setdefault(to, {}):
                    _, names[to][number] = _name(context, urls, number, start, first=False)
    for to, rows in names.items():
        tables.write(f"names/{round_:05}/{bucket:03}-{to:03}", NAME, [*rows.values()])
    for to, found in links.items():
        tables.write(f"links/{round_:05}/{bucket:03}-{to:03}", EVIDENCE, found)
    judged = strategy.hand_in() if strategy.learns else None
    tables.write_bytes(f"judged/{name}", b"" if judged is None else judged[0])
    tables.write_bytes(f"outcomes/{name}", strategy.outcomes() or b"")
    excluded = [identity(urls[n]) for n in urls.chosen if urls.state(n) == EXCLUDED]
    tables.write_json(f"excluded/{name}", {"ids": sorted(excluded)})
    tables.write(f"pages/{name}", PAGE, [*_pages(store, urls)])


def _name(
    context: RoundsContext, urls: ChosenUrls, number: int, start: int, *, first: bool
) -> tuple[int, dict[str, Any]]:
    url = urls[number]
    return bucket_of(url, context.buckets), {
        "id": identity(url),
        "url": url,
        "depth": urls.depth(number),
        "referrer": urls.referrer(number),
        "found": start + number,
        "first": first,
    }


def _evidence(
    context: RoundsContext, urls: ChosenUrls, strategy: Strategy, page: StoredFetch
) -> Iterator[tuple[int, dict[str, Any], list[int]]]:
    """Yield what the links of a page say, a row a bucket, and the URLs they lead to."""
    if not page.links:
        return
    targets = [link.target for link in page.links]
    to = np.array([bucket_of(urls[target], context.buckets) for target in targets])
    order = np.argsort(to, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(to[order])) + 1)
    memos = strategy.parts(page.memo, groups) if len(groups) > 1 else [page.memo]
    for kept, memo in zip(groups, memos, strict=True):
        found = [page.links[at] for at in kept.tolist()]
        row = {
            "source": page.name,
            "relevance": page.relevance,
            "targets": [identity(urls[link.target]) for link in found],
            "scores": [-math.inf if link.score is None else link.score for link in found],
            "memo": memo,
        }
        yield int(to[kept[0]]), row, [link.target for link in found]


def _pages(store: CrawlStore, urls: ChosenUrls) -> Iterator[dict[str, Any]]:
    for page in store.rows(sa.select(schema.page).order_by(schema.page.c.seq)):
        row = page._asdict()
        url, twin = urls[row["url"]], row["duplicate_of"]
        yield {name: row.get(name) for name in PAGE.names} | {
            "id": identity(url),
            "url": url,
            "depth": urls.depth(row["url"]),
            "referrer": urls.referrer(row["url"]),
            "duplicate_of": None if twin is None else urls[twin],
        }
