"""A round's fetches in one bucket, and what is recorded of them."""

from __future__ import annotations

import math
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl import Crawl, CrawlFolder
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.state import restore
from focuscrawl.crawl.stopping import StopRules
from focuscrawl.crawl.traps import NearDuplicates, Traps
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import identity
from focuscrawl.frontier import Frontier
from focuscrawl.rounds.buckets import (
    BucketUrls,
    LinksInto,
    RoundLimits,
    RoundUrls,
    bucket_of,
    recall,
)
from focuscrawl.rounds.context import (
    KnownPages,
    Laps,
    NearPages,
    RoundEnd,
    content_id,
    keeper_of,
)
from focuscrawl.rounds.live_rounds import fetch_live, keep_recordings
from focuscrawl.rounds.tables import CONTENT, EVIDENCE, NAME, PAGE, QUOTA
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from focuscrawl.crawl import CrawlConfig
    from focuscrawl.crawl.assembly import CheckedConfig
    from focuscrawl.crawl.traps import Quotas
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.store import CrawlStore
    from focuscrawl.store.history import StoredFetch


TAKEN_OVER = 1  #: the round that `take_over` writes
_FOUND = 40  # bits: URLs found in a round are numbered from its number times two to this on
_BY = 28  # and those of a bucket from its number times two to this on
_BROKEN = ("error", "store_error")  # reasons to stop that a round does not end for


class Output(Part):
    """Writes the tables of a round and a bucket when its crawl ends.

    A crawl that was interrupted, or that has failed, writes nothing: it can be resumed.
    """

    def __init__(
        self,
        crawl: Crawl,
        context: RoundsContext,
        where: tuple[int, int],
        urls: RoundUrls,
        limits: RoundLimits,
    ) -> None:
        self._crawl = crawl
        self._context = context
        self._where = where
        self._urls = urls
        self._limits = limits

    def release(self) -> None:
        """Write everything."""
        stop = self._crawl.stop_reason
        if stop is None or stop in _BROKEN:
            return
        crawl, urls, quotas = self._crawl, self._urls, self._limits.quotas
        queued = crawl.frontier.queued().tolist()
        urls.first |= {number for number in queued if crawl.frontier.score(number) == math.inf}
        keep_recordings(self._context.tables, crawl.folder.path, *self._where)
        write_tables(
            crawl,
            self._context,
            self._where,
            fetches=History(crawl.store).fetches(),
            first=urls.first,
            others=urls.decided(),
            pages=[*pages_of(crawl)],
            excluded=excluded(urls),
            limits=[*quotas.rows()],
            generosity=quotas.multiplier,
            judged=_judged(crawl),
        )


def write_tables(
    crawl: Crawl,
    context: RoundsContext,
    where: tuple[int, int],
    *,
    fetches: Iterable[StoredFetch],
    first: Collection[int],
    others: Iterable[int],
    pages: Sequence[Mapping[str, Any]],
    excluded: Iterable[str],
    limits: Sequence[Mapping[str, Any]],
    generosity: int,
    judged: bytes,
) -> None:
    """Write what a bucket has of a round; the pages last, since they stand for all the rest.

    Parameters
    ----------
    where : bucket and round
    fetches : whose links are written
    first, others : numbers of URLs to write, too; `first` come before every link
    pages, excluded, limits : see `PAGE`; URLs that may not be fetched; see `QUOTA`
    """
    (bucket, round_), tables = where, context.tables
    name = f"{bucket:03}/{round_:05}"
    _write_links(crawl, context, where, fetches, first=first, others=others)
    contents: dict[int, list[Mapping[str, Any]]] = {}
    for page in pages:
        if page.get("content") is not None:
            to = keeper_of(page["content"], context.buckets)
            contents.setdefault(to, []).append(page)
    for to, rows in contents.items():
        tables.write(f"digests/{round_:05}/{bucket:03}-{to:03}", CONTENT, rows)
    tables.write(f"quotas/{name}", QUOTA, limits)
    ended = {"excluded": sorted(map(identity, excluded)), "generosity": generosity}
    tables.write_json(f"ended/{name}.json", ended)
    tables.write_bytes(f"judged/{name}", judged)
    tables.write_bytes(f"outcomes/{name}", crawl.strategy.export_outcomes() or b"")
    tables.write(f"pages/{name}", PAGE, pages)


def _judged(crawl: Crawl) -> bytes:
    return (crawl.strategy.export_judged() if crawl.strategy.learns else None) or b""


def _write_links(
    crawl: Crawl,
    context: RoundsContext,
    where: tuple[int, int],
    fetches: Iterable[StoredFetch],
    *,
    first: Collection[int],
    others: Iterable[int],
) -> None:
    (bucket, round_), urls, buckets = where, crawl.urls, context.buckets
    names: dict[int, dict[int, dict[str, Any]]] = {}
    links: dict[int, list[dict[str, Any]]] = {}

    def name(number: int) -> None:
        url = urls[number]
        of_bucket = names.setdefault(bucket_of(url, buckets), {})
        if number not in of_bucket:
            of_bucket[number] = {
                "id": identity(url),
                "url": url,
                "depth": urls.depth(number),
                "referrer": urls.referrer(number),
                "found": (round_ << _FOUND) + (bucket << _BY) + number,
                "first": number in first,
            }

    for number in sorted({*first, *others}):
        name(number)
    for page in fetches:
        for to, row in _evidence(crawl, page, buckets):
            links.setdefault(to, []).append(row)
        for link in page.links:
            name(link.target)
    for to, rows in names.items():
        context.tables.write(f"names/{round_:05}/{bucket:03}-{to:03}", NAME, [*rows.values()])
    for to, found in links.items():
        context.tables.write(f"links/{round_:05}/{bucket:03}-{to:03}", EVIDENCE, found)


def _evidence(
    crawl: Crawl, page: StoredFetch, buckets: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the evidence of a page's links, a row a bucket."""
    if not page.links:
        return
    urls = crawl.urls
    to = np.array([bucket_of(urls[link.target], buckets) for link in page.links])
    order = np.argsort(to, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(to[order])) + 1)
    memos = crawl.strategy.split_memo(page.memo, groups) if len(groups) > 1 else [page.memo]
    for kept, memo in zip(groups, memos, strict=True):
        found = [page.links[at] for at in kept.tolist()]
        row = {
            "source": page.name,
            "relevance": page.relevance,
            "targets": [identity(urls[link.target]) for link in found],
            "scores": [-math.inf if link.score is None else link.score for link in found],
            "memo": memo,
        }
        yield int(to[kept[0]]), row


def excluded(urls: UrlTable) -> list[str]:
    """Return the URLs that may not be fetched."""
    return [urls[number] for number in range(len(urls)) if urls.state(number) == EXCLUDED]


def pages_of(crawl: Crawl) -> Iterator[dict[str, Any]]:
    """Yield the pages of a crawl, see `PAGE`."""
    urls = crawl.urls
    for row in map(dict, crawl.store.rows("SELECT * FROM page ORDER BY seq")):
        url, twin = urls[row["url"]], row["duplicate_of"]
        yield {name: row.get(name) for name in PAGE.names} | {
            "id": identity(url),
            "url": url,
            "depth": urls.depth(row["url"]),
            "referrer": urls.referrer(row["url"]),
            "duplicate_of": None if twin is None else urls[twin],
            **_known_by(row, url),
        }


def _known_by(row: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return by what others are known to be duplicates of a page."""
    if row["digest"] is None or row["duplicate_of"] is not None:
        return {}
    names = Duplicates.known_urls(url, row["canonical"])
    return {"content": content_id(row["digest"]), "names": [identity(name) for name in names]}


def fetch(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Fetch what was chosen of a bucket; return what came of it, in numbers.

    As many URLs are fetched as were chosen. One that no round knew before, of a host of the
    bucket, may take the place of a chosen one: it comes when its score is the best. So a round of
    many fetches follows what it finds, by the model of the round before.

    Done already, it does nothing. The time of a replay is that to ``open``, which reads what is
    known and scores what was chosen, and to ``crawl``.
    """
    tables, name, laps = context.tables, f"pages/{bucket:03}/{round_:05}", Laps()
    if not tables.has(name):
        if context.checked.web is None:
            fetch_live(context, bucket, round_)
        else:
            with tempfile.TemporaryDirectory() as scratch:
                config = context.checked.config.with_values(crawl_dir=scratch)
                crawl = open_round(context, bucket, round_, config)
                laps.end("open")
                replay(crawl)
            laps.end("crawl")
    pages = tables.read(name, ["relevance"])["relevance"].to_numpy()
    ended = tables.read_json(f"ended/{bucket:03}/{round_:05}.json", "excluded")
    assert ended is not None
    done = {"bucket": bucket, "fetched": len(pages), "relevance": float(pages.sum())}
    return done | {"excluded": len(ended["excluded"]), "laps": laps.seconds}


def open_round(context: RoundsContext, bucket: int, round_: int, config: CrawlConfig) -> Crawl:
    """Open the crawl of a bucket in a round; when it ends it writes the tables, see `Output`.

    Parameters
    ----------
    config : how to fetch; the round decides what and how much. Its `crawl_dir` holds the fetches
        meanwhile; a crawl that is there is resumed
    """
    tables, checked, before = context.tables, context.checked, round_ - 1
    all_chosen = tables.read(f"chosen/{round_:05}").to_pylist()
    chosen = [row for row in all_chosen if row["bucket"] == bucket]
    known = BucketUrls(tables, bucket, before)
    urls = RoundUrls(known, bucket, context.buckets)
    assert config.crawl_dir is not None
    folder = CrawlFolder(Path(config.crawl_dir))
    crawl = Crawl(
        critic=checked.critic,
        strategy=context.strategy(),
        frontier=Frontier(config.per_host, config.delay),
        store=folder.open_store(checked.identity, checked.about),
        folder=folder,
        web=checked.web,
        config=config.with_values(budget=len(chosen)),
        within=checked.within,
        urls=urls,
        duplicates=KnownPages(context, bucket, before, urls),
    )

    def limits_before() -> Quotas:
        quotas = context.quotas(bucket, before)
        while any(quotas.closed_quota(row["url"]) for row in chosen if row["score"] != np.inf):
            quotas.raise_limits()  # as when they were named
        return quotas

    limits = RoundLimits(crawl, limits_before)
    output = Output(crawl, context, (bucket, round_), urls, limits)
    near = [NearPages(crawl, tables, bucket, before)] if config.near_duplicates else []
    ends = [] if context.time is None else [RoundEnd(context.time.seconds)]
    crawl.parts = [*ends, StopRules(crawl), *near, limits, output]
    restore(crawl)
    for row in chosen:
        referrer = None if row["referrer"] is None else urls.add(row["referrer"], 0, None)
        urls.chosen.add(urls.add(row["url"], row["depth"], referrer))
    ids = np.array([row["id"] for row in chosen], np.int64)
    recall(
        context,
        bucket,
        before,
        crawl.strategy,
        rows=LinksInto(tables, bucket, before).evidence(ids),
        urls=known,
        number=lambda url: urls.add(url, 0, None),
    )
    for row in chosen:
        number = urls.get(row["url"])
        assert number is not None
        crawl.queue(number, row["score"])
    return crawl


def take_over(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Write the tables of a round as if it had fetched what a folder holds, which stays as it is.

    Parameters
    ----------
    bucket : what is not of one bucket belongs to this one

    Returns
    -------
    What came of it, see `fetch`

    Raises
    ------
    UserError
        There is no crawl, it is another, a process crawls there, or it is damaged.
    """
    assert context.folder is not None
    with _restored(context, Path(context.folder)) as (crawl, quotas):
        _write_buckets(context, (bucket, round_), crawl, quotas)
        done = {"bucket": bucket, "fetched": crawl.fetched, "relevance": crawl.relevance_sum}
        return done | {"excluded": len(excluded(crawl.urls))}


@contextmanager
def opened(checked: CheckedConfig, path: Path) -> Iterator[tuple[CrawlFolder, CrawlStore]]:
    """Open the crawl in a folder; `UserError` if it is no such crawl."""
    folder = CrawlFolder(path)
    if not folder.exists:
        raise UserError(f"there is no crawl in {path}")
    store = folder.open_store(checked.identity, checked.about)
    try:
        yield folder, store
    finally:
        store.close()
        folder.release()


def _write_buckets(
    context: RoundsContext, where: tuple[int, int], crawl: Crawl, quotas: Quotas
) -> None:
    urls, buckets = crawl.urls, context.buckets
    pages: list[list[dict[str, Any]]] = [[] for _ in range(buckets)]
    gone: list[list[str]] = [[] for _ in range(buckets)]
    limits: list[list[dict[str, Any]]] = [[] for _ in range(buckets)]
    for page in pages_of(crawl):
        pages[bucket_of(page["url"], buckets)].append(page)
    for url in excluded(urls):
        gone[bucket_of(url, buckets)].append(url)
    for row in quotas.rows():
        limits[identity(row["name"].partition("/")[0]) % buckets].append(row)
    judged, queued = _judged(crawl), crawl.frontier.queued().tolist()
    first = [number for number in queued if crawl.frontier.score(number) == np.inf]
    for bucket in range(buckets):
        own = bucket == where[0]
        write_tables(
            crawl,
            context,
            (bucket, where[1]),
            fetches=_fetches(crawl, bucket, buckets),
            first=first if own else (),
            others=range(len(urls)) if own else (),
            pages=pages[bucket],
            excluded=gone[bucket],
            limits=limits[bucket],
            generosity=quotas.multiplier,
            judged=judged if own else b"",
        )


def _fetches(crawl: Crawl, bucket: int, buckets: int) -> list[StoredFetch]:
    """Return the fetches of a bucket, page by page, with memos that are to be read alone."""
    urls = crawl.urls
    found: dict[int, list[StoredFetch]] = {}
    for fetch in History(crawl.store).fetches():
        if fetch.links and bucket_of(fetch.name, buckets) == bucket:
            memo = crawl.strategy.make_self_contained(
                fetch.memo, [urls[link.target] for link in fetch.links]
            )
            found.setdefault(fetch.url, []).append(fetch._replace(memo=memo))
    return [fetch for fetches in found.values() for fetch in fetches]


@contextmanager
def _restored(context: RoundsContext, path: Path) -> Iterator[tuple[Crawl, Quotas]]:
    """Restore a crawl, to look at it."""
    checked = context.checked
    with opened(checked, path) as (folder, store):
        crawl = Crawl(
            critic=checked.critic,
            strategy=context.strategy(),
            frontier=Frontier(checked.config.per_host, checked.config.delay),
            store=store,
            folder=folder,
            web=checked.web,
            config=checked.config,
            within=checked.within,
        )
        traps = Traps(crawl)
        crawl.parts = [NearDuplicates(crawl), traps]
        try:
            restore(crawl)
            yield crawl, traps.quotas
        finally:
            crawl.writer.close()
