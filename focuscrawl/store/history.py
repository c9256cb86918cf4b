"""What a store holds of a crawl, fetch by fetch: the one reader of its past."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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
    url, url_text : id of the URL, and the URL itself
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
    minhash: bytes | None = None
    score: float | None = None
    links: tuple[StoredLink, ...] = ()
    is_revisit: bool = False

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
        return int(self._store.row("SELECT coalesce(sum(1), 0) FROM page")[0])

    def n_urls(self) -> int:
        """Return how many URLs are known."""
        # count(*) is one step of SQLite's, however long, which nothing gives up
        return int(self._store.row("SELECT coalesce(sum(1), 0) FROM url")[0])

    def hosts(self) -> Iterator[str]:
        """Return the hosts in the order of their numbers."""
        return (name for _, name in self.numbered_hosts())

    def numbered_hosts(self) -> Iterator[tuple[int, str]]:
        """Return the hosts with their numbers, in the order of these."""
        return map(tuple, self._store.rows("SELECT id, name FROM host ORDER BY id"))

    def urls(self) -> Iterator[NewUrl]:
        """Return the URLs in the order of their numbers."""
        urls = "SELECT id, url, host, depth, referrer, score, state FROM url ORDER BY id"
        return map(NewUrl._make, self._store.rows(urls))

    def links(self) -> NDArray[np.int64]:
        """Return source and target of all links in the order of their numbers, int64 (n, 2)."""
        rows = self._store.rows("SELECT source, target FROM link ORDER BY id")
        return np.fromiter(itertools.chain.from_iterable(rows), np.int64).reshape(-1, 2)

    def anchors(self) -> Iterator[tuple[int, str]]:
        """Return targets and texts of all links in the order of the targets' numbers."""
        return map(tuple, self._store.rows("SELECT target, anchor FROM link ORDER BY target, id"))

    def last_model(self) -> tuple[int, bytes] | None:
        """Return the fetches when the last lesson began, and its state; None without a lesson."""
        last = """SELECT trained_at_seq, state FROM models WHERE state IS NOT NULL
                  ORDER BY version DESC LIMIT 1"""
        return next(map(tuple, self._store.rows(last)), None)

    def events(self, *kinds: str, last: int | None = None) -> list[StoredEvent]:
        """Return the events of some kinds in their order; only the `last` ones if told so."""
        newest_first = """SELECT seq, kind, detail, at FROM events
                          WHERE kind IN (SELECT value FROM json_each(?))
                          ORDER BY id DESC LIMIT ?"""
        rows = self._store.rows(newest_first, (json.dumps(kinds), -1 if last is None else last))
        return [StoredEvent._make(row) for row in rows][::-1]

    def fetches(self, *, links: bool = True, memos: bool = True) -> Iterator[StoredFetch]:
        """Return every fetch, pages fetched again among them, in the order they were made.

        Of second fetches made after the same page, those without a new link come first.

        Parameters
        ----------
        links, memos : False leaves them out, which is faster
        """
        found = _Links(self._store) if links else None
        again = self._again()
        for row in self._store.rows(_FETCHES, {"digest": DIGEST, "memos": memos}):
            fetch = StoredFetch(*row)
            yield fetch if found is None else fetch._replace(links=found.of(fetch.url))
            for later, n_links in again.get(fetch.seq, ()):
                new = found.of(later.url) if found is not None and n_links else ()
                yield later._replace(links=new)

    def first_fetches(self) -> Iterator[StoredFetch]:
        """Return every page once, without its links and memo, in the order first fetched."""
        return (fetch for fetch in self.fetches(links=False, memos=False) if not fetch.is_revisit)

    def answers(self) -> Iterator[StoredAnswer]:
        """Return what is kept of all first fetches, in the order of the numbers of their URLs.

        Where nothing else is kept, the digest of the body stands for that of the text.
        """
        for row in self._store.rows(_ANSWERS, {"digest": DIGEST}):
            answer = StoredAnswer._make(row)
            yield answer._replace(is_page=bool(answer.is_page))

    def _again(self) -> dict[int, list[tuple[StoredFetch, int]]]:
        """Return second fetches by how many pages were fetched before, in the order of links.

        Each with the number of its links.
        """
        rows: defaultdict[int, list[tuple[StoredFetch, int]]] = defaultdict(list)
        for n_links, memo, *fetched in self._store.rows(_SECOND_FETCHES):
            fetch = StoredFetch(*fetched)._replace(memo=memo, is_revisit=True)
            rows[fetch.seq].append((fetch, n_links))
        return rows


_FETCHES = """
SELECT p.seq, p.url, u.url, u.depth, u.referrer, p.status, p.error,
       p.relevance, p.topic, p.title, p.canonical, substr(p.digest, 1, :digest), p.duplicate_of,
       CASE WHEN :memos THEN (SELECT data FROM memo m WHERE m.seq = p.seq) END,
       nullif(substr(p.digest, :digest + 1), x''), p.score
FROM page p JOIN url u ON u.id = p.url ORDER BY p.seq
"""
_SECOND_FETCHES = """
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
    """The links of a crawl in the order of its fetches, cut into those of each."""

    def __init__(self, store: CrawlStore) -> None:
        first = "SELECT first_link FROM revisit WHERE first_link IS NOT NULL ORDER BY first_link"
        starts = [start for (start,) in store.rows(first)]
        links = store.rows("SELECT source, id, target, score FROM link ORDER BY id")
        # a page may be fetched again right after itself: its source alone would not do
        self._groups = itertools.groupby(
            links, key=lambda row: (row[0], bisect_right(starts, row[1]))
        )
        self._next = next(self._groups, None)

    def of(self, url: int) -> tuple[StoredLink, ...]:
        """Return the links of the next fetch, if that is of `url`; each is asked for in turn."""
        if self._next is None or self._next[0][0] != url:
            return ()
        found = tuple(StoredLink(*row[1:]) for row in self._next[1])
        self._next = next(self._groups, None)
        return found
