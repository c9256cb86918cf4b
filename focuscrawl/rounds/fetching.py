"""A round's fetches in one bucket: a crawl of what was chosen, and of what that leads to.

As many are fetched as were chosen of the bucket. A URL that no round knew before, of a host of the
bucket, may take the place of one that was chosen: it comes when its score is the best. So a round
of many fetches goes on from what it finds, with the model of the round before.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl import Crawl, CrawlFolder
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.parts.stopping import StopRules
from focuscrawl.crawl.parts.traps import Traps
from focuscrawl.crawl.replay import replay
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.foundation.urls import identity
from focuscrawl.frontier import Frontier
from focuscrawl.rounds.bucket_urls import BucketUrls, bucket_of
from focuscrawl.rounds.evidence import evidence_for, recall
from focuscrawl.rounds.known_pages import KnownPages, content_id
from focuscrawl.rounds.tables import EVIDENCE, NAME, PAGE, QUOTA
from focuscrawl.store import CrawlStore, schema
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.store.history import StoredFetch
    from focuscrawl.strategies import Strategy

_FOUND = 40  # bits: URLs found in a round are numbered from its number times two to this on
_BY = 28  # and those of a bucket from its number times two to this on


class RoundUrls(UrlTable):
    """A `UrlTable` that holds what was chosen of a bucket, and what is new there.

    Parameters
    ----------
    known : the URLs of the bucket

    Attributes
    ----------
    chosen : numbers of what was chosen
    first : URLs of other buckets, or known ones, that redirects lead to: they come next
    """

    def __init__(self, known: BucketUrls, bucket: int, buckets: int) -> None:
        super().__init__()
        self._known = known
        self._bucket = bucket, buckets
        self._own: dict[int, bool] = {}
        self.chosen: set[int] = set()
        self.first: set[int] = set()

    def holds(self, number: int) -> bool:
        """Tell whether a URL may be fetched in this round."""
        if number in self.chosen:
            return True
        own = self._own.get(number)
        if own is None:
            bucket, buckets = self._bucket
            url = self[number]
            own = bucket_of(url, buckets) == bucket
            own = own and not self._known.known(np.array([identity(url)], np.int64))[0]
            self._own[number] = own
        return own

    def leave_to_others(self, number: int, score: float) -> None:
        """Leave a URL to the rounds that follow."""
        if score == math.inf:
            self.first.add(number)


class RoundLimits(Traps):
    """Limits on hosts and patterns, of all rounds; what they bar is left to the next rounds."""

    def relent(self) -> bool:
        """Let go of all that waits, if it is all barred."""
        frontier = self._crawl.frontier
        if not frontier.all_deferred:
            return False
        for number in frontier.deferred().tolist():
            frontier.remove(number)
        return True


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
    known = BucketUrls(tables, bucket, before)
    urls = RoundUrls(known, bucket, context.buckets)
    strategy, folder = context.strategy(), CrawlFolder(scratch)
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
    quotas = context.quotas(bucket, before)
    while any(quotas.barred(row["url"]) for row in chosen if row["score"] != math.inf):
        quotas.raise_all()  # as when they were named
    limits = RoundLimits(crawl, quotas)
    crawl.parts = [StopRules(crawl), limits]
    for row in chosen:
        referrer = None if row["referrer"] is None else urls.add(row["referrer"], 0, None)
        urls.chosen.add(urls.add(row["url"], row["depth"], referrer))
    recall(
        strategy,
        evidence_for(tables, bucket, before, np.array([row["id"] for row in chosen], np.int64)),
        known,
        lambda url: urls.add(url, 0, None),
        outcomes=context.outcomes(bucket, before),
        model=context.model(before),
    )
    for row in chosen:
        number = urls.get(row["url"])
        assert number is not None
        crawl.queue(number, row["score"])
    replay(crawl)
    waiting = crawl.frontier.queued().tolist()
    urls.first |= {number for number in waiting if crawl.frontier.score(number) == math.inf}
    tables.write(f"quotas/{bucket:03}/{round_:05}", QUOTA, [*limits.quotas.rows()])
    excluded = [identity(urls[n]) for n in range(len(urls)) if urls.state(n) == EXCLUDED]
    ended = {"excluded": sorted(excluded), "generosity": limits.quotas.generosity}
    tables.write_json(f"ended/{bucket:03}/{round_:05}.json", ended)
    store = CrawlStore.open(folder.store_path, read_only=True)
    try:
        _write(context, (bucket, round_), urls, strategy, store)
    finally:
        store.close()


def _write(
    context: RoundsContext,
    where: tuple[int, int],
    urls: RoundUrls,
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
    tables.write(f"pages/{name}", PAGE, [*_pages(store, urls)])


def _name(
    context: RoundsContext, urls: RoundUrls, number: int, start: int, *, first: bool
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
    context: RoundsContext, urls: RoundUrls, strategy: Strategy, page: StoredFetch
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


def _pages(store: CrawlStore, urls: RoundUrls) -> Iterator[dict[str, Any]]:
    for page in store.rows(sa.select(schema.page).order_by(schema.page.c.seq)):
        row = page._asdict()
        url, twin = urls[row["url"]], row["duplicate_of"]
        yield {name: row.get(name) for name in PAGE.names} | {
            "id": identity(url),
            "url": url,
            "depth": urls.depth(row["url"]),
            "referrer": urls.referrer(row["url"]),
            "duplicate_of": None if twin is None else urls[twin],
            **_known_by(row, urls[row["url"]]),
        }


def _known_by(row: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return by what others are known to be duplicates of a page."""
    if row["digest"] is None or row["duplicate_of"] is not None:
        return {}
    names = Duplicates.names(url, row["canonical"])
    return {"content": content_id(row["digest"]), "names": [identity(name) for name in names]}
