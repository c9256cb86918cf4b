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
from focuscrawl.rounds.known_pages import content_id
from focuscrawl.rounds.tables import EVIDENCE, NAME, PAGE, QUOTA
from focuscrawl.store import schema
from focuscrawl.store.history import History
from focuscrawl.store.schema import EXCLUDED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from focuscrawl.crawl import Crawl
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
        frontier, urls, strategy = self._crawl.frontier, self._urls, self._crawl.strategy
        context, (bucket, round_) = self._context, self._where
        tables, name = context.tables, f"{bucket:03}/{round_:05}"
        waiting = frontier.queued().tolist()
        urls.first |= {number for number in waiting if frontier.score(number) == math.inf}
        self._write_links()
        quotas = self._limits.quotas
        tables.write(f"quotas/{name}", QUOTA, [*quotas.rows()])
        excluded = [identity(urls[n]) for n in range(len(urls)) if urls.state(n) == EXCLUDED]
        ended = {"excluded": sorted(excluded), "generosity": quotas.generosity}
        tables.write_json(f"ended/{name}.json", ended)
        judged = strategy.hand_in() if strategy.learns else None
        tables.write_bytes(f"judged/{name}", b"" if judged is None else judged[0])
        tables.write_bytes(f"outcomes/{name}", strategy.outcomes() or b"")
        tables.write(f"pages/{name}", PAGE, [*self._pages()])

    def _write_links(self) -> None:
        bucket, round_ = self._where
        names: dict[int, dict[int, dict[str, Any]]] = {}
        links: dict[int, list[dict[str, Any]]] = {}
        for number in sorted(self._urls.first.union(self._urls.decided())):
            to, row = self._name(number, first=number in self._urls.first)
            names.setdefault(to, {})[number] = row
        for page in History(self._crawl.store).fetches():
            for to, row, targets in self._evidence(page):
                links.setdefault(to, []).append(row)
                for number in targets:
                    if number not in names.setdefault(to, {}):
                        _, names[to][number] = self._name(number, first=False)
        tables = self._context.tables
        for to, rows in names.items():
            tables.write(f"names/{round_:05}/{bucket:03}-{to:03}", NAME, [*rows.values()])
        for to, found in links.items():
            tables.write(f"links/{round_:05}/{bucket:03}-{to:03}", EVIDENCE, found)

    def _name(self, number: int, *, first: bool) -> tuple[int, dict[str, Any]]:
        urls, (bucket, round_) = self._urls, self._where
        url = urls[number]
        return bucket_of(url, self._context.buckets), {
            "id": identity(url),
            "url": url,
            "depth": urls.depth(number),
            "referrer": urls.referrer(number),
            "found": (round_ << _FOUND) + (bucket << _BY) + number,
            "first": first,
        }

    def _evidence(self, page: StoredFetch) -> Iterator[tuple[int, dict[str, Any], list[int]]]:
        """Yield what the links of a page say, a row a bucket, and the URLs they lead to."""
        if not page.links:
            return
        urls, buckets = self._urls, self._context.buckets
        to = np.array([bucket_of(urls[link.target], buckets) for link in page.links])
        order = np.argsort(to, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(to[order])) + 1)
        parts = self._crawl.strategy.parts
        memos = parts(page.memo, groups) if len(groups) > 1 else [page.memo]
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

    def _pages(self) -> Iterator[dict[str, Any]]:
        urls = self._urls
        for page in self._crawl.store.rows(sa.select(schema.page).order_by(schema.page.c.seq)):
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
