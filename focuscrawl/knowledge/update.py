"""Add a finished crawl to the knowledge file of a topic."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.knowledge.keywords import distinct_words
from focuscrawl.knowledge.knowledge import (
    MAX_EXEMPLARS,
    MAX_FAILURES,
    PageRecord,
    describe_links,
    read_page,
    store_apprentice,
)
from focuscrawl.knowledge.knowledge_file import (
    KIND,
    SCHEMA_VERSION,
    UpdateCounts,
    key_of,
    open_draft,
    read_meta,
)

if TYPE_CHECKING:
    import sqlite3

    from focuscrawl.knowledge.knowledge_file import CrawlRecord, FetchRecord

MAX_QUEUED = 20_000  # unfetched URLs with the best scores
MAX_WORDS = 50_000  # most frequent words
MAX_SEEDS = 100
_NOT_MODIFIED = 304
_BATCH = 2_000  # pages described at a time
_GONE = (404, 410)
_MAX_KEY = (1 << 63) - 1


class AlreadyLearnedError(UserError):
    """The knowledge file already contains the crawl."""


def add_crawl(path: Path, crawl: CrawlRecord) -> UpdateCounts:
    """Add a crawl to the knowledge file at `path`; create the file if it does not exist.

    At the end, the updated knowledge file replaces the old knowledge file. After an error, the old
    knowledge file is unchanged.

    Raises
    ------
    UserError
        The file is not a knowledge file, belongs to another topic, critic or clock, contains the
        crawl already, or cannot be written.
    """
    with open_draft(path) as file:
        meta = read_meta(file)
        _check(path, meta, file, crawl)
        update = _Update(file, None if not crawl.replay else float(_next(meta)))
        for fetch in crawl.fetches:
            update.add(fetch)
        learned = update.finish(crawl.queued)
        if crawl.trained_apprentice is not None:
            store_apprentice(file, crawl.trained_apprentice)
        file.execute(
            "INSERT INTO crawl VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_next(meta), crawl.id, crawl.name, crawl.learned_at, *learned),
        )
        state = hashlib.blake2b(digest_size=16)
        state.update(f"{meta.get('state', '')} {crawl.id}".encode())
        now = {
            "kind": KIND,
            "schema_version": str(SCHEMA_VERSION),
            "topic": crawl.topic,
            "critic": crawl.critic,
            "critic_name": crawl.critic_name,
            "clock": _clock(crawl),
            "crawls": str(_next(meta)),
            "state": state.hexdigest(),
            "relevant_pages": str(int(meta.get("relevant_pages", 0)) + update.described[True]),
            "other_pages": str(int(meta.get("other_pages", 0)) + update.described[False]),
        }
        file.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", now.items())
    return learned


def _next(meta: Mapping[str, str]) -> int:
    return int(meta.get("crawls", 0)) + 1


def _clock(crawl: CrawlRecord) -> str:
    return "crawls" if crawl.replay else "days"


def _check(
    path: Path, meta: Mapping[str, str], file: sqlite3.Connection, new: CrawlRecord
) -> None:
    if not meta:
        return
    for key, value, label in (
        ("topic", new.topic, "topic"),
        ("critic", new.critic, "critic"),
        ("clock", _clock(new), "time unit"),
    ):
        if meta.get(key) != value:
            raise UserError(
                f"knowledge file {path} has the {label} {meta.get(key)}, crawl {new.name} has "
                f"{value}: add the crawl to another file"
            )
    if file.execute("SELECT 1 FROM crawl WHERE id = ?", (new.id,)).fetchone():
        raise AlreadyLearnedError(
            f"knowledge file {path} already contains crawl {new.name}: to include its later "
            "fetches, create a new file"
        )


class _Update:
    """Adds the fetches of a crawl to the tables.

    Parameters
    ----------
    file : draft of the knowledge file
    now : time of all fetches, if time is counted in crawls; None: each fetch has its own time
    """

    def __init__(self, file: sqlite3.Connection, now: float | None) -> None:
        self._file = file
        self._now = now
        self._counts: Counter[str] = Counter()
        self._words: Counter[tuple[str, bool]] = Counter()
        self._exemplars: list[tuple[int, str, str, float]] = []
        self._bound = self._last_exemplar()
        self.described: Counter[bool] = Counter()

    def add(self, fetch: FetchRecord) -> None:
        """Add one fetch."""
        key, now = key_of(fetch.url), fetch.day if self._now is None else self._now
        self._counts["fetches"] += 1
        self._counts["relevant"] += fetch.relevance > RELEVANT
        self._file.execute("DELETE FROM waiting WHERE key = ?", (key,))
        page = self._updated(fetch, read_page(self._file, key), now)
        if fetch.content is not None:
            self._learn_words(key, fetch)
        marks = ", ".join("?" * (1 + len(page)))
        self._file.execute(f"INSERT OR REPLACE INTO page VALUES ({marks})", (key, *page))

    def _updated(self, fetch: FetchRecord, old: PageRecord | None, now: float) -> PageRecord:
        if fetch.status == _NOT_MODIFIED and old is not None:
            self._counts["unchanged"] += 1
            return _seen_again(old, now, changed=False)
        if fetch.content is not None:
            if old is None or old.content is None:
                self._counts["new"] += 1
                page = PageRecord(fetch.url, visited=now)
            else:
                changed = old.content != fetch.content
                self._counts["changed" if changed else "unchanged"] += 1
                page = _seen_again(old, now, changed=changed)
            return page._replace(
                relevance=fetch.relevance,
                content=fetch.content,
                etag=fetch.etag,
                last_modified=fetch.last_modified,
                hub=fetch.hub,
                authority=fetch.authority,
            )
        failed = fetch.status in {0, *_GONE} or fetch.status >= 500
        self._counts["failed"] += failed
        if old is not None and old.content is not None and failed:
            failures = old.failures + 1
            relevance = 0.0 if failures >= MAX_FAILURES else old.relevance
            return old._replace(failures=failures, visited=now, relevance=relevance)
        # a redirect, a duplicate, a document other than HTML, or a URL without a page so far
        return PageRecord(fetch.url, visited=now, failures=int(failed))

    def _learn_words(self, key: int, fetch: FetchRecord) -> None:
        """Count the words of a judged page, and keep the page as a candidate exemplar."""
        relevant = fetch.relevance > RELEVANT
        words = distinct_words((*fetch.texts, *fetch.anchors))
        self._words.update((word, relevant) for word in words)
        self.described[relevant] += 1
        if key <= self._bound:
            self._exemplars.append((key, fetch.url, " ".join(fetch.anchors), fetch.relevance))
        if len(self._exemplars) >= _BATCH:
            self._describe_pages()

    def finish(self, queued: Iterable[tuple[str, float]]) -> UpdateCounts:
        """Write word counts and queued URLs to the file, and limit the size of every table."""
        self._describe_pages()
        file = self._file
        file.executemany(
            "INSERT INTO word (word, relevant, other) VALUES (?, ?, ?) ON CONFLICT (word) DO "
            "UPDATE SET relevant = relevant + excluded.relevant, other = other + excluded.other",
            (
                (word, n * relevant, n * (not relevant))
                for (word, relevant), n in self._words.items()
            ),
        )
        self._keep("word", "relevant + other DESC, word", MAX_WORDS, key="word")
        # ordered by key, so the sample does not depend on the order of the crawls
        self._keep("exemplar", "key", MAX_EXEMPLARS)
        file.executemany(
            "INSERT OR REPLACE INTO waiting VALUES (?, ?, ?)",
            ((key_of(url), url, score) for url, score in queued),
        )
        file.execute("DELETE FROM waiting WHERE key IN (SELECT key FROM page)")
        self._keep("waiting", "score DESC, key", MAX_QUEUED)
        file.execute("DELETE FROM seed")
        # good seeds have both scores; otherwise one of the scores, then relevance counts
        file.execute(
            "INSERT INTO seed (url, hub, authority) SELECT url, hub, authority FROM page "
            "WHERE content IS NOT NULL AND failures = 0 AND (hub > 0 OR relevance > ?) "
            "ORDER BY round(hub * authority, 9) DESC, round(hub + authority, 9) DESC, "
            "relevance DESC, key LIMIT ?",
            (RELEVANT, MAX_SEEDS),
        )
        return UpdateCounts(**{name: self._counts[name] for name in UpdateCounts._fields})

    def _keep(self, table: str, order: str, most: int, key: str = "key") -> None:
        """Delete the rows of a table after the first `most` rows by `order`."""
        beyond = f"SELECT {key} FROM {table} ORDER BY {order} LIMIT -1 OFFSET ?"
        self._file.execute(f"DELETE FROM {table} WHERE {key} IN ({beyond})", (most,))

    def _describe_pages(self) -> None:
        pages, self._exemplars = self._exemplars, []
        rows = describe_links([url for _, url, _, _ in pages], [texts for _, _, texts, _ in pages])
        words = rows.indices.astype("<i4")
        ends = rows.indptr.tolist()
        self._file.executemany(
            "INSERT OR REPLACE INTO exemplar VALUES (?, ?, ?)",
            (
                (key, relevance, words[start:end].tobytes())
                for (key, _, _, relevance), start, end in zip(pages, ends, ends[1:], strict=False)
            ),
        )
        self._bound = self._last_exemplar()

    def _last_exemplar(self) -> int:
        """Return the largest key of an exemplar that the file will keep."""
        row = self._file.execute(
            "SELECT key FROM exemplar ORDER BY key LIMIT 1 OFFSET ?", (MAX_EXEMPLARS - 1,)
        ).fetchone()
        return _MAX_KEY if row is None else int(row[0])


def _seen_again(page: PageRecord, now: float, *, changed: bool) -> PageRecord:
    time = now - page.visited
    if time > 0.0:  # a second fetch at the same time gives no information about changes
        page = page._replace(
            accesses=page.accesses + 1,
            changes=page.changes + changed,
            span=page.span + time,
            changed=now if changed else page.changed,
        )
    return page._replace(visited=max(page.visited, now), failures=0)
