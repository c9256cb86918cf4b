"""A crawl in a folder that becomes one in rounds: what it has fetched is the first round."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl import Crawl, CrawlFolder
from focuscrawl.crawl.parts.near_duplicates import NearDuplicates
from focuscrawl.crawl.parts.traps import Traps
from focuscrawl.crawl.restore import restore
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import identity
from focuscrawl.frontier import Frontier
from focuscrawl.rounds.bucket_urls import bucket_of
from focuscrawl.rounds.output import excluded, pages_of, write_bucket, write_links
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.crawl.assembly import Checked
    from focuscrawl.crawl.quotas import Quotas
    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.store import CrawlStore
    from focuscrawl.store.history import StoredFetch

TAKEN_OVER = 1  #: the round that does it


def take_over(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Write the tables of a round as if it had fetched what a folder holds, which stays as it is.

    Parameters
    ----------
    bucket : what is not of one bucket belongs to this one

    Returns
    -------
    What came of it, see `focuscrawl.rounds.fetching.fetch`

    Raises
    ------
    UserError
        There is no crawl, it is another, somebody crawls there, or it is damaged.
    """
    assert context.folder is not None
    with _restored(context, Path(context.folder)) as (crawl, quotas):
        _write(context, (bucket, round_), crawl, quotas)
        done = {"bucket": bucket, "fetched": crawl.fetched, "relevance": crawl.relevance_sum}
        return done | {"excluded": len(excluded(crawl.urls))}


@contextmanager
def opened(checked: Checked, path: Path) -> Iterator[tuple[CrawlFolder, CrawlStore]]:
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


def _write(context: RoundsContext, where: tuple[int, int], crawl: Crawl, quotas: Quotas) -> None:
    urls, strategy, buckets = crawl.urls, crawl.strategy, context.buckets
    pages: list[list[dict[str, Any]]] = [[] for _ in range(buckets)]
    gone: list[list[str]] = [[] for _ in range(buckets)]
    limits: list[list[dict[str, Any]]] = [[] for _ in range(buckets)]
    for page in pages_of(crawl):
        pages[bucket_of(page["url"], buckets)].append(page)
    for url in excluded(urls):
        gone[bucket_of(url, buckets)].append(url)
    for row in quotas.rows():
        limits[identity(row["name"].partition("/")[0]) % buckets].append(row)
    judged = strategy.judged() if strategy.learns else None
    waiting = crawl.frontier.queued().tolist()
    first = [number for number in waiting if crawl.frontier.score(number) == np.inf]
    for bucket in range(buckets):
        own, place = bucket == where[0], (bucket, where[1])
        write_links(
            crawl,
            context,
            place,
            _fetches(crawl, bucket, buckets),
            first=first if own else (),
            others=range(len(urls)) if own else (),
        )
        write_bucket(
            context,
            place,
            pages[bucket],
            limits=limits[bucket],
            generosity=quotas.generosity,
            excluded=gone[bucket],
            judged=(judged or b"") if own else b"",
            outcomes=strategy.outcomes() or b"",
        )


def _fetches(crawl: Crawl, bucket: int, buckets: int) -> list[StoredFetch]:
    """Return the fetches of a bucket, page by page, with memos that are to be read alone."""
    urls = crawl.urls
    found: dict[int, list[StoredFetch]] = {}
    for fetch in History(crawl.store).fetches():
        if fetch.links and bucket_of(fetch.name, buckets) == bucket:
            memo = crawl.strategy.contained(
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
            frontier=Frontier(checked.plan.per_host, checked.plan.delay),
            store=store,
            folder=folder,
            web=checked.web,
            plan=checked.plan,
            within=checked.within,
        )
        traps = Traps(crawl)
        crawl.parts = [NearDuplicates(crawl), traps]
        try:
            restore(crawl)
            yield crawl, traps.quotas
        finally:
            crawl.writer.close()
