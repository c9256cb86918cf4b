"""What a bucket's fetches of a round are written down as, when they are all made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.part import Part
from focuscrawl.foundation.urls import identity
from focuscrawl.rounds.bucket_urls import bucket_of
from focuscrawl.rounds.known_pages import content_id, keeper_of
from focuscrawl.rounds.tables import CONTENT, EVIDENCE, NAME, PAGE, QUOTA
from focuscrawl.rounds.under_way import keep_recordings
from focuscrawl.store import schema
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.rounds.round_urls import RoundLimits, RoundUrls
    from focuscrawl.store.history import StoredFetch

_FOUND = 40  # bits: URLs found in a round are numbered from its number times two to this on
_BY = 28  # and those of a bucket from its number times two to this on
_BROKEN = ("error", "store_error")  # reasons to stop that a round does not end for


class Output(Part):
    """Writes the tables of a round and a bucket when the crawl of it has come to its end.

    A crawl that somebody has ended, or that has failed, writes nothing: it can be gone on with.
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
        """Write everything; the pages last, as where they are all else is."""
        stop = self._crawl.stop_reason
        if stop is None or stop in _BROKEN:
            return
        crawl, urls, context = self._crawl, self._urls, self._context
        frontier, strategy, quotas = crawl.frontier, crawl.strategy, self._limits.quotas
        waiting = frontier.queued().tolist()
        urls.first |= {number for number in waiting if frontier.score(number) == math.inf}
        fetches = History(crawl.store).fetches()
        write_links(crawl, context, self._where, fetches, first=urls.first, others=urls.decided())
        judged = strategy.judged() if strategy.learns else None
        keep_recordings(context.tables, crawl.folder.path, *self._where)
        write_bucket(
            context,
            self._where,
            [*pages_of(crawl)],
            limits=quotas.rows(),
            generosity=quotas.generosity,
            excluded=excluded(urls),
            judged=judged or b"",
            outcomes=strategy.outcomes() or b"",
        )


def write_bucket(
    context: RoundsContext,
    where: tuple[int, int],
    pages: Sequence[Mapping[str, Any]],
    *,
    limits: Iterable[Mapping[str, Any]],
    generosity: int,
    excluded: Iterable[str],
    judged: bytes,
    outcomes: bytes,
) -> None:
    """Write what a bucket has of a round; the pages last, as where they are all else is."""
    (bucket, round_), tables = where, context.tables
    name = f"{bucket:03}/{round_:05}"
    contents: dict[int, list[Mapping[str, Any]]] = {}
    for page in pages:
        if page.get("content") is not None:
            to = keeper_of(page["content"], context.buckets)
            contents.setdefault(to, []).append(page)
    for to, rows in contents.items():
        tables.write(f"digests/{round_:05}/{bucket:03}-{to:03}", CONTENT, rows)
    tables.write(f"quotas/{name}", QUOTA, [*limits])
    ended = {"excluded": sorted(map(identity, excluded)), "generosity": generosity}
    tables.write_json(f"ended/{name}.json", ended)
    tables.write_bytes(f"judged/{name}", judged)
    tables.write_bytes(f"outcomes/{name}", outcomes)
    tables.write(f"pages/{name}", PAGE, pages)


def write_links(
    crawl: Crawl,
    context: RoundsContext,
    where: tuple[int, int],
    fetches: Iterable[StoredFetch],
    *,
    first: Collection[int],
    others: Iterable[int],
) -> None:
    """Write the links of some of a crawl's fetches, and the URLs they lead to.

    Parameters
    ----------
    where : bucket and round
    first, others : numbers of URLs to write, too; `first` come before every link
    """
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
    """Yield what the links of a page say, a row a bucket."""
    if not page.links:
        return
    urls = crawl.urls
    to = np.array([bucket_of(urls[link.target], buckets) for link in page.links])
    order = np.argsort(to, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(to[order])) + 1)
    memos = crawl.strategy.parts(page.memo, groups) if len(groups) > 1 else [page.memo]
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
    for page in crawl.store.rows(sa.select(schema.page).order_by(schema.page.c.seq)):
        row = page._asdict()
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
    names = Duplicates.names(url, row["canonical"])
    return {"content": content_id(row["digest"]), "names": [identity(name) for name in names]}
