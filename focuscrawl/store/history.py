"""Reads the past of a crawl from its store, fetch by fetch."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focuscrawl.store.schema import NewUrl

if TYPE_CHECKING:
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.store.crawl_store import CrawlStore

DIGEST = 16  # bytes of the digest of a body; in the store, the signature of the text follows


class StoredLink(NamedTuple):
    """A link on a fetched page; `score` is None if the strategy did not follow the link."""

    id: int
    target: int
    score: float | None


class StoredEvent(NamedTuple):
    """An event of a crawl, such as a start or an alarm, after `seq` fetched pages."""

    seq: int
    kind: str
    detail: str
    at: str


class StoredFetch(NamedTuple):
    """One fetch of a crawl, with the page's links that were not found before.

    Attributes
    ----------
    seq : int
        Position in the crawl, from 1; of a repeated fetch, the position of the last first fetch.
    url, url_text : int, str
        Id of the URL, and the URL.
    depth, referrer : int, int or None
        Clicks from a seed, and the id of the page that first linked to the URL; None for seeds.
    status : int
        HTTP status; 0 without a response.
    error : str or None
        Reason for a missing status or a missing judgement.
    digest : bytes or None
        Digest of the body; None if the response is not an HTML page.
    duplicate_of : int or None
        Id of the URL of an equal page.
    memo : bytes or None
        Bytes of the strategy about the links.
    signature : bytes
        Signature of the text, see `focuscrawl.crawl.duplicates`; empty for duplicates.
    score : float or None
        Score of the URL when it left the frontier; None for seeds and redirect targets.
    is_revisit : bool
        Whether the page was fetched before; `links` then contains its new links.
    """

    seq: int
    url: int
    url_text: str
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
    signature: bytes = b""
    score: float | None = None
    links: tuple[StoredLink, ...] = ()
    is_revisit: bool = False

    @property
    def is_page(self) -> bool:
        """Whether the fetch is an HTML page that was judged and is not a duplicate."""
        return self.digest is not None and self.duplicate_of is None


class StoredAnswer(NamedTuple):
    """The data of a fetch that a later crawl reuses, such as the ETag of the response."""

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
    """Reads the fetches, URLs, links and events of a crawl from its store, row by row.

    Ids of URLs, hosts and links count from 0 in the order of discovery.

    Parameters
    ----------
    store : CrawlStore
        Store of a stopped or running crawl.
    """

    def __init__(self, store: CrawlStore) -> None:
        self._store = store

    def n_fetches(self) -> int:
        """Return the number of fetched pages; a page that was fetched twice counts once."""
        return int(self._store.row("SELECT coalesce(sum(1), 0) FROM page")[0])

    def n_urls(self) -> int:
        """Return the number of all URLs that the crawl has found."""
        # count(*) is a single step of SQLite, which the step limit cannot interrupt
        return int(self._store.row("SELECT coalesce(sum(1), 0) FROM url")[0])

    def hosts(self) -> Iterator[str]:
        """Yield the names of all hosts in the order of the host ids."""
        return (name for _, name in self.numbered_hosts())

    def numbered_hosts(self) -> Iterator[tuple[int, str]]:
        """Yield the id and the name of each host in the order of the host ids."""
        return map(tuple, self._store.rows("SELECT id, name FROM host ORDER BY id"))

    def urls(self) -> Iterator[NewUrl]:
        """Yield all URLs of the crawl in the order of the URL ids."""
        urls = "SELECT id, url, host, depth, referrer, score, state FROM url ORDER BY id"
        return map(NewUrl._make, self._store.rows(urls))

    def links(self) -> Ints:
        """Return source and target ids of all links by link id, int64 (n_links, 2)."""
        rows = self._store.rows("SELECT source, target FROM link ORDER BY id")
        return np.fromiter(itertools.chain.from_iterable(rows), np.int64).reshape(-1, 2)

    def anchors(self) -> Iterator[tuple[int, str]]:
        """Yield the target id and anchor text of all links in the order of the target ids."""
        return map(tuple, self._store.rows("SELECT target, anchor FROM link ORDER BY target, id"))

    def last_model(self) -> tuple[int, bytes] | None:
        """Return the latest stored model and when it was trained; None without a stored model.

        The result contains the number of fetches before the training, and the model.
        """
        last = """SELECT trained_at_seq, state FROM models WHERE state IS NOT NULL
                  ORDER BY version DESC LIMIT 1"""
        return next(map(tuple, self._store.rows(last)), None)

    def events(self, *kinds: str, last: int | None = None) -> list[StoredEvent]:
        """Return all events of the given kinds, or only the latest `last` events, oldest first."""
        newest_first = """SELECT seq, kind, detail, at FROM events
                          WHERE kind IN (SELECT value FROM json_each(?))
                          ORDER BY id DESC LIMIT ?"""
        rows = self._store.rows(newest_first, (json.dumps(kinds), -1 if last is None else last))
        return [StoredEvent._make(row) for row in rows][::-1]

    def fetches(self, *, links: bool = True, memos: bool = True) -> Iterator[StoredFetch]:
        """Yield every fetch, including repeated fetches, in the order of the crawl.

        Between the first fetches of two pages, repeated fetches without new links come before
        repeated fetches with new links.

        Parameters
        ----------
        links, memos : bool
            Whether to read links and memos; False is faster.
        """
        found = _Links(self._store) if links else None
        revisits = self._revisits()
        for row in self._store.rows(_FETCHES, {"digest": DIGEST, "memos": memos}):
            fetch = StoredFetch(*row)
            yield fetch if found is None else fetch._replace(links=found.of(fetch.url))
            for later, n_links in revisits.get(fetch.seq, ()):
                new = found.of(later.url) if found is not None and n_links else ()
                yield later._replace(links=new)

    def first_fetches(self) -> Iterator[StoredFetch]:
        """Yield the first fetch of every page in the order of the crawl, without links."""
        return (fetch for fetch in self.fetches(links=False, memos=False) if not fetch.is_revisit)

    def answers(self) -> Iterator[StoredAnswer]:
        """Yield the data of each page that a later crawl reuses, in the order of URL ids.

        The field `content` is the digest of the text or, if there is none, the digest of the body.
        """
        for row in self._store.rows(_ANSWERS, {"digest": DIGEST}):
            answer = StoredAnswer._make(row)
            yield answer._replace(is_page=bool(answer.is_page))

    def _revisits(self) -> dict[int, list[tuple[StoredFetch, int]]]:
        """Return repeated fetches and their numbers of links, by earlier first fetches."""
        rows: defaultdict[int, list[tuple[StoredFetch, int]]] = defaultdict(list)
        for n_links, memo, *fetched in self._store.rows(_REVISITS):
            fetch = StoredFetch(*fetched)._replace(memo=memo, is_revisit=True)
            rows[fetch.seq].append((fetch, n_links))
        return rows


_FETCHES = """
SELECT p.seq, p.url, u.url, u.depth, u.referrer, p.status, p.error,
       p.relevance, p.topic, p.title, p.canonical, substr(p.digest, 1, :digest), p.duplicate_of,
       CASE WHEN :memos THEN (SELECT data FROM memo m WHERE m.seq = p.seq) END,
       coalesce(substr(p.digest, :digest + 1), x''), p.score
FROM page p JOIN url u ON u.id = p.url ORDER BY p.seq
"""
_REVISITS = """
SELECT r.links, r.memo, r.seq, r.url, u.url, u.depth, u.referrer, r.status, r.error,
       coalesce(r.relevance, 0.0)
FROM revisit r JOIN url u ON u.id = r.url
WHERE r.status IS NOT NULL ORDER BY r.seq, r.first_link NULLS FIRST, r.id
"""
_ANSWERS = """
SELECT u.id, u.url, p.status, p.relevance, p.fetched_at,
       p.digest IS NOT NULL AND p.duplicate_of IS NULL, p.title,
       coalesce(a.content, substr(p.digest, 1, :digest)), a.headings, a.etag, a.last_modified
FROM page p JOIN url u ON u.id = p.url LEFT JOIN answer a ON a.seq = p.seq ORDER BY u.id
"""


class _Links:
    """The links of a crawl, grouped by fetch."""

    def __init__(self, store: CrawlStore) -> None:
        first = "SELECT first_link FROM revisit WHERE first_link IS NOT NULL ORDER BY first_link"
        starts = [start for (start,) in store.rows(first)]
        links = store.rows("SELECT source, id, target, score FROM link ORDER BY id")
        # consecutive fetches may have the same URL: the source alone does not separate them
        self._groups = itertools.groupby(
            links, key=lambda row: (row[0], bisect_right(starts, row[1]))
        )
        self._next = next(self._groups, None)

    def of(self, url: int) -> tuple[StoredLink, ...]:
        """Return the links of the next fetch, given the id of the fetched URL."""
        if self._next is None or self._next[0][0] != url:
            return ()
        found = tuple(StoredLink(*row[1:]) for row in self._next[1])
        self._next = next(self._groups, None)
        return found
