"""What a store holds of a crawl, fetch by fetch: the one reader of its past."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from focuscrawl.store import schema
from focuscrawl.store.schema import NewUrl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from focuscrawl.store.crawl_store import CrawlStore

DIGEST = 16  # bytes of the digest of a body; the page's MinHash may follow it in the store


class StoredLink(NamedTuple):
    """A link that a fetch has found; `score` is None where it was not followed."""

    id: int
    target: int
    score: float | None


class StoredEvent(NamedTuple):
    """Something that happened when `seq` pages had been fetched; `at` is UTC, ISO 8601."""

    seq: int
    kind: str
    detail: str
    at: str


class StoredFetch(NamedTuple):
    """A fetch, with the links that were first found by it.

    Attributes
    ----------
    seq : its place in the crawl, from 1; of a page fetched again, that of the last first fetch
    url, name : number of the URL, and the URL itself
    status : of the answer; 0 where none was received
    error : why there is no status, or no judgement
    depth, referrer : clicks from a seed, and the number of the URL that it was first found on,
        None for a seed
    digest : of its body, None for what was no page
    minhash : of its words, None for few of them or where nobody asked
    memo : what the strategy wanted back of its links
    score : that it was fetched with; None for a seed, and for where a redirect leads
    again : the page was fetched before, and is here for the links that were new on it
    """

    seq: int
    url: int
    name: str
    depth: int
    referrer: int | None
    status: int
    error: str | None
    relevance: float
    topic: str | None = None
    title: str | None = None
    canonical: str | None = None
    digest: bytes | None = None
    duplicate_of: int | None = None
    memo: bytes | None = None
    minhash: bytes | None = None
    links: tuple[StoredLink, ...] = ()
    again: bool = False
    score: float | None = None

    @property
    def is_page(self) -> bool:
        """True for an HTML page that was judged; False for duplicates and whatever else came."""
        return self.digest is not None and self.duplicate_of is None


class StoredAnswer(NamedTuple):
    """What the next crawl wants to know of a fetch; `content` is the digest of the text."""

    url: int
    name: str
    status: int
    relevance: float
    fetched_at: str
    is_page: bool
    title: str | None
    content: bytes | None
    headings: str | None
    etag: str | None
    last_modified: str | None


class History:
    """Reads a store; rows are streamed. URLs, hosts, links are numbered from 0 in the order found.

    Parameters
    ----------
    store : the crawl may be running
    """

    def __init__(self, store: CrawlStore) -> None:
        self._store = store

    def n_fetches(self) -> int:
        """Return how many pages were fetched; one fetched again counts once."""
        return self._length(schema.page)

    def n_urls(self) -> int:
        """Return how many URLs are known."""
        return self._length(schema.url)

    def _length(self, table: sa.Table) -> int:
        # count(*) is one step of SQLite's, however long, which nothing gives up
        rows = sa.func.coalesce(sa.func.sum(1), 0).label("n")
        return int(self._store.row(sa.select(rows).select_from(table)).n)

    def hosts(self) -> Iterator[str]:
        """Return the hosts in the order of their numbers."""
        return (name for _, name in self.numbered_hosts())

    def numbered_hosts(self) -> Iterator[tuple[int, str]]:
        """Return the hosts with their numbers, in the order of these."""
        h = schema.host.c
        rows = self._store.rows(sa.select(h.id, h.name).order_by(h.id))
        return ((row.id, row.name) for row in rows)

    def urls(self) -> Iterator[NewUrl]:
        """Return the URLs in the order of their numbers."""
        u = schema.url.c
        columns = (u.id, u.url, u.host, u.depth, u.referrer, u.score, u.state)
        return map(NewUrl._make, self._store.rows(sa.select(*columns).order_by(u.id)))

    def links(self) -> NDArray[np.int64]:
        """Return source and target of all links in the order of their numbers, int64 (n, 2)."""
        link = schema.link.c
        rows = self._store.rows(sa.select(link.source, link.target).order_by(link.id))
        return np.fromiter(itertools.chain.from_iterable(rows), np.int64).reshape(-1, 2)

    def anchors(self) -> Iterator[tuple[int, str]]:
        """Return targets and texts of all links in the order of the targets' numbers."""
        link = schema.link.c
        rows = self._store.rows(sa.select(link.target, link.anchor).order_by(link.target, link.id))
        return ((row.target, row.anchor) for row in rows)

    def last_model(self) -> tuple[int, bytes] | None:
        """Return the fetches when the last lesson began, and its state; None without a lesson."""
        m = schema.models.c
        kept = sa.select(m.trained_at_seq, m.state).where(m.state.is_not(None))
        for row in self._store.rows(kept.order_by(m.version.desc()).limit(1)):
            return int(row.trained_at_seq), row.state
        return None

    def events(self, *kinds: str, last: int | None = None) -> list[StoredEvent]:
        """Return the events of some kinds in their order; only the `last` ones if told so."""
        e = schema.events.c
        rows = sa.select(e.seq, e.kind, e.detail, e.at).where(e.kind.in_(kinds))
        newest_first = self._store.rows(rows.order_by(e.id.desc()).limit(last))
        return [StoredEvent._make(row) for row in newest_first][::-1]

    def fetches(self, *, links: bool = True, memos: bool = True) -> Iterator[StoredFetch]:
        """Return every fetch, pages fetched again among them, in the order they were made.

        Of second fetches made after the same page, those without a new link come first.

        Parameters
        ----------
        links, memos : False leaves them out, which is faster
        """
        p, u, m = schema.page.c, schema.url.c, schema.memo.c
        address = (p.url, u.url, u.depth, u.referrer)
        judged = (p.relevance, p.topic, p.title, p.canonical, p.digest, p.duplicate_of)
        memo = m.data if memos else sa.null()
        pages = sa.select(p.seq, *address, p.status, p.error, *judged, memo, p.score)
        pages = pages.join(schema.url, u.id == p.url).order_by(p.seq)
        if memos:
            pages = pages.outerjoin(schema.memo, m.seq == p.seq)
        found = _Links(self._store) if links else None
        again = self._again()
        for row in self._store.rows(pages):
            fetch = StoredFetch(*tuple(row)[:-1])._replace(score=row.score)
            if fetch.digest is not None:
                minhash = fetch.digest[DIGEST:] or None
                fetch = fetch._replace(digest=fetch.digest[:DIGEST], minhash=minhash)
            yield fetch if found is None else fetch._replace(links=found.of(fetch.url))
            for later, n_links in again.get(fetch.seq, ()):
                new = found.of(later.url) if found is not None and n_links else ()
                yield later._replace(links=new)

    def first_fetches(self) -> Iterator[StoredFetch]:
        """Return every page once, without its links and memo, in the order first fetched."""
        return (fetch for fetch in self.fetches(links=False, memos=False) if not fetch.again)

    def answers(self) -> Iterator[StoredAnswer]:
        """Return what is kept of all first fetches, in the order of the numbers of their URLs.

        Where nothing else is kept, the digest of the body stands for that of the text.
        """
        p, u, a = schema.page.c, schema.url.c, schema.answer.c
        is_page = sa.and_(p.digest.is_not(None), p.duplicate_of.is_(None))
        content = sa.func.coalesce(a.content, sa.func.substr(p.digest, 1, DIGEST))
        fetched = (u.id, u.url, p.status, p.relevance, p.fetched_at, is_page, p.title)
        rows = sa.select(*fetched, content, a.headings, a.etag, a.last_modified)
        rows = rows.join(schema.url, u.id == p.url).outerjoin(schema.answer, a.seq == p.seq)
        return (StoredAnswer._make(row) for row in self._store.rows(rows.order_by(u.id)))

    def _again(self) -> dict[int, list[tuple[StoredFetch, int]]]:
        """Return second fetches by how many pages were fetched before, in the order of links.

        Each with the number of its links.
        """
        rows: defaultdict[int, list[tuple[StoredFetch, int]]] = defaultdict(list)
        a, u = schema.revisit.c, schema.url.c
        relevance = sa.func.coalesce(a.relevance, 0.0)
        address = (a.url, u.url, u.depth, u.referrer)
        made = sa.select(a.links, a.memo, a.seq, *address, a.status, a.error, relevance)
        made = made.join(schema.url, u.id == a.url).where(a.status.is_not(None))
        in_order = made.order_by(a.seq, a.first_link.nulls_first(), a.id)
        for n_links, memo, *fetched in map(tuple, self._store.rows(in_order)):
            fetch = StoredFetch(*fetched)._replace(memo=memo, again=True)
            rows[fetch.seq].append((fetch, n_links))
        return rows


class _Links:
    """The links of a crawl in the order of its fetches, cut into those of each."""

    def __init__(self, store: CrawlStore) -> None:
        link, again = schema.link.c, schema.revisit.c
        rows = sa.select(link.source, link.id, link.target, link.score).order_by(link.id)
        first = sa.select(again.first_link).where(again.first_link.is_not(None))
        starts = [row.first_link for row in store.rows(first.order_by(again.first_link))]
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
