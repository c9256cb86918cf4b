"""What a store holds of a crawl, fetch by fetch: the one reader of its past."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from focuscrawl.store import schema
from focuscrawl.store.records import NewUrl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.store.store import CrawlStore

DIGEST = 16  # bytes of the digest of a body; the page's MinHash may follow it in the store


class StoredLink(NamedTuple):
    """A link that a fetch has found; `score` is None where it was not followed."""

    id: int
    target: int
    score: float | None


class StoredFetch(NamedTuple):
    """A fetch, with the links that were first found by it.

    Attributes
    ----------
    seq : its place in the crawl, from 1; of a page fetched again, that of the last first fetch
    again : the page was fetched before, and is here for the links that were new on it
    digest : of its body, None for what was no page
    minhash : of its words, None for few of them or where nobody asked
    memo : what the strategy wanted back of its links
    """

    seq: int
    url: int
    status: int
    relevance: float
    topic: str | None = None
    canonical: str | None = None
    digest: bytes | None = None
    minhash: bytes | None = None
    duplicate_of: int | None = None
    error: str | None = None
    memo: bytes | None = None
    links: tuple[StoredLink, ...] = ()
    again: bool = False

    @property
    def is_page(self) -> bool:
        """True for an HTML page that was judged; False for duplicates and whatever else came."""
        return self.digest is not None and self.duplicate_of is None


class History:
    """Reads a store in the order things happened; rows are streamed.

    Parameters
    ----------
    store : of a crawl in a folder; one that workers share numbers its links otherwise
    """

    def __init__(self, store: CrawlStore) -> None:
        self._store = store

    def hosts(self) -> Iterator[str]:
        """Return the hosts in the order of their numbers."""
        h = schema.host.c
        return (row.name for row in self._store.rows(sa.select(h.name).order_by(h.id)))

    def urls(self) -> Iterator[NewUrl]:
        """Return the URLs in the order of their numbers."""
        u = schema.url.c
        columns = (u.id, u.url, u.host, u.depth, u.referrer, u.score, u.state)
        return map(NewUrl._make, self._store.rows(sa.select(*columns).order_by(u.id)))

    def last_model(self) -> tuple[int, bytes] | None:
        """Return the fetches when the last lesson began, and its state; None without a lesson."""
        m = schema.models.c
        kept = sa.select(m.trained_at_seq, m.state).where(m.state.is_not(None))
        for row in self._store.rows(kept.order_by(m.version.desc()).limit(1)):
            return int(row.trained_at_seq), row.state
        return None

    def events(self, kind: str) -> list[tuple[int, str]]:
        """Return (seq, detail) of the events of a kind, in their order."""
        e = schema.events.c
        rows = sa.select(e.seq, e.detail).where(e.kind == kind).order_by(e.id)
        return [(row.seq, row.detail) for row in self._store.rows(rows)]

    def last_seq(self) -> int:
        """Return the number of pages fetched, second fetches apart."""
        (row,) = self._store.rows(sa.select(sa.func.max(schema.page.c.seq)))
        return row[0] or 0

    def fetches(self, *, links: bool = True) -> Iterator[StoredFetch]:
        """Return every fetch, pages fetched again among them, in the order they were made.

        Parameters
        ----------
        links : False leaves them out, which is faster
        """
        p, memo = schema.page.c, schema.memo.c
        pages = (
            sa.select(
                p.seq,
                p.url,
                p.status,
                p.relevance,
                p.topic,
                p.canonical,
                p.digest,
                p.duplicate_of,
                p.error,
                memo.data,
            )
            .outerjoin(schema.memo, memo.seq == p.seq)
            .order_by(p.seq)
        )
        found = _Links(self._store) if links else None
        again = self._again()
        for row in self._store.rows(pages):
            digest = row.digest
            yield StoredFetch(
                seq=row.seq,
                url=row.url,
                status=row.status,
                relevance=row.relevance,
                topic=row.topic,
                canonical=row.canonical,
                digest=None if digest is None else digest[:DIGEST],
                minhash=digest[DIGEST:] or None if digest is not None else None,
                duplicate_of=row.duplicate_of,
                error=row.error,
                memo=row.data,
                links=found.of(row.url) if found is not None else (),
            )
            for later, n_links in again.get(row.seq, ()):
                got = found.of(later.url) if found is not None and n_links else ()
                yield later._replace(links=got)

    def _again(self) -> dict[int, list[tuple[StoredFetch, int]]]:
        """Return second fetches by how many pages were fetched before, in the order of links."""
        rows: defaultdict[int, list[tuple[StoredFetch, int]]] = defaultdict(list)
        if not sa.inspect(self._store.engine).has_table(schema.revisit.name):
            return rows  # a store of a schema before 3
        a = schema.revisit.c
        made = sa.select(a.url, a.seq, a.status, a.relevance, a.links, a.memo)
        made = made.where(a.status.is_not(None)).order_by(a.seq, a.first_link, a.id)
        for row in self._store.rows(made):
            fetch = StoredFetch(
                seq=row.seq,
                url=row.url,
                status=row.status,
                relevance=row.relevance or 0.0,
                memo=row.memo,
                again=True,
            )
            rows[row.seq].append((fetch, row.links))
        return rows


class _Links:
    """The links of a crawl in the order found, cut into those of each fetch."""

    def __init__(self, store: CrawlStore) -> None:
        link, again = schema.link.c, schema.revisit.c
        starts: list[int] = []
        if sa.inspect(store.engine).has_table(schema.revisit.name):
            first = sa.select(again.first_link).where(again.first_link.is_not(None))
            starts = [row.first_link for row in store.rows(first.order_by(again.first_link))]
        rows = sa.select(link.source, link.id, link.target, link.score).order_by(link.id)
        # a page may be fetched again right after itself: its source alone would not do
        self._groups = itertools.groupby(
            store.rows(rows), key=lambda row: (row.source, bisect_right(starts, row.id))
        )
        self._next = next(self._groups, None)

    def of(self, url: int) -> tuple[StoredLink, ...]:
        """Return the links of the next fetch, if that is of `url`; each is asked for in turn."""
        if self._next is None or self._next[0][0] != url:
            return ()
        found = tuple(StoredLink(row.id, row.target, row.score) for row in self._next[1])
        self._next = next(self._groups, None)
        return found
