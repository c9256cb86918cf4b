"""What a store has of a crawl's links, fetch by fetch, and of pages that were fetched again."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from focuscrawl.store import CrawlStore


class LinkHistory:
    """The links of a crawl in the order found, which is that of their fetches; streamed."""

    def __init__(self, store: CrawlStore) -> None:
        link, again = schema.link.c, schema.revisit.c
        first = sa.select(again.first_link).where(again.first_link.is_not(None))
        starts = [row.first_link for row in store.rows(first.order_by(again.first_link))]
        links = sa.select(link.id, link.source, link.target, link.score).order_by(link.id)
        # a page may be fetched again right after itself: its source alone would not do
        self._groups: Iterator[tuple[tuple[int, int], Any]] = itertools.groupby(
            store.rows(links), key=lambda row: (row.source, bisect_right(starts, row.id))
        )
        self._next = next(self._groups, None)

    def of(self, url: int) -> Sequence[sa.Row[Any]]:
        """Return the links of the next fetch, if that is of `url`; each is asked for in turn."""
        if self._next is None or self._next[0][0] != url:
            return []
        found = [*self._next[1]]
        self._next = next(self._groups, None)
        return found


def fetched_again(store: CrawlStore) -> Mapping[int, Sequence[sa.Row[Any]]]:
    """Return second fetches by how many pages were fetched before, in the order of their links.

    Each has ``url``, ``seq``, ``relevance``, ``links`` (that the page did not have before) and
    ``data``, the strategy's own. None in a store of a schema before 3.
    """
    rows: defaultdict[int, list[sa.Row[Any]]] = defaultdict(list)
    if sa.inspect(store.engine).has_table(schema.revisit.name):
        again = schema.revisit.c
        over = sa.select(
            again.url, again.seq, again.relevance, again.links, again.memo.label("data")
        ).where(again.seq.is_not(None))
        for row in store.rows(over.order_by(again.seq, again.first_link, again.id)):
            rows[row.seq].append(row)
    return rows
