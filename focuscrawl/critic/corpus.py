"""Words of the pages that a critic is trained and checked on, kept for later."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from contextlib import closing, suppress
from importlib import resources
from itertools import chain, islice, pairwise
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.critic.bag_of_words import Vocabulary
from focuscrawl.foundation.arrays import decode_lines, encode_lines, require_array
from focuscrawl.foundation.databases import open_database
from focuscrawl.foundation.files import cache_dir
from focuscrawl.foundation.processes import safe_python_path
from focuscrawl.foundation.urls import normalize
from focuscrawl.foundation.urls import resolve as resolve_links
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web


_BATCH = 32  # pages a task: few enough for a smooth progress bar, enough to be worth sending
_PROCESSES = 2  # that parse
_WORTH_PROCESSES = 400  # pages; below, starting worker processes takes longer than reading
_REDIRECTS = 5  # that are followed one after the other


def resolve(web: Web, urls: Sequence[str]) -> list[str | None]:
    """Map `urls` as people write them to the URLs `web` has; None where it has none."""
    normalized = [normalize(url) for url in urls]
    known = iter(web.resolve([url for url in normalized if url is not None]))
    return [None if url is None else next(known) for url in normalized]


def read_bags(
    web: Web, urls: Sequence[str], *, progress: Progress = NO_PROGRESS
) -> list[Bag | None]:
    """Return the words of pages.

    Parameters
    ----------
    web : where they are
    urls : URLs that `web` has, as `resolve` returns them
    progress : reports every few pages read

    Returns
    -------
    One bag a URL; None where the answer is no HTML page: the crawl would not ask the critic about
    it either.
    """
    with closing(_Cache(web.fingerprint)) as cache:
        bags: dict[str, Bag | None] = cache.get(dict.fromkeys(urls))
        missing = [url for url in dict.fromkeys(urls) if url not in bags]
        progress.advance(len(urls) - len(missing))
        from joblib import Parallel, delayed  # noqa: PLC0415

        # one of several processes has its core, and would wait minutes for idle ones when it ends
        worth = len(missing) >= _WORTH_PROCESSES and parent_process() is None
        parallel = Parallel(n_jobs=_PROCESSES if worth else 1, return_as="generator")
        tasks = (
            delayed(_read)(batch, [HtmlAnswer.from_answer(web.fetch(url)) for url in batch])
            for batch in _batches(missing)
        )
        with safe_python_path():
            for found in parallel(tasks):
                cache.put(found)
                bags.update(found)
                progress.advance(len(found))
        progress.advance(sum(url not in bags for url in missing))
    return [bags.get(url) for url in urls]


class KnownPage(NamedTuple):
    """A page that a web has: the URL that it has it under, redirects followed, and its words."""

    url: str
    bag: Bag


def read_known(
    webs: Sequence[Web], urls: Sequence[str], *, progress: Progress = NO_PROGRESS
) -> dict[str, KnownPage]:
    """Return those pages that one of several webs has.

    Parameters
    ----------
    webs : asked in this order
    urls : as people write them
    progress : reports every few pages read

    Returns
    -------
    By URL as given; without those that no web has, or not as an HTML page with words
    """
    pages: dict[str, KnownPage] = {}
    for web in webs:
        left = [url for url in urls if url not in pages]
        at = {a: b for a, b in zip(left, resolve(web, left), strict=True) if b is not None}
        pages.update(_with_words(web, at, progress))
        moved = {a: _target(web, url) for a, url in at.items() if a not in pages}
        pages.update(_with_words(web, moved, NO_PROGRESS))
    return pages


def _with_words(web: Web, at: Mapping[str, str], progress: Progress) -> dict[str, KnownPage]:
    bags = read_bags(web, list(at.values()), progress=progress)
    return {a: KnownPage(url, bag) for (a, url), bag in zip(at.items(), bags, strict=True) if bag}


def _target(web: Web, url: str) -> str:
    """Return the URL that one of a web redirects to in the end, as far as the web has it."""
    for _ in range(_REDIRECTS):
        answer = web.fetch(url)
        if answer is None or not 300 <= answer.status < 400:
            break
        (to,) = resolve_links(url, [answer.header("location") or ""])
        (known,) = [None] if to is None else web.resolve([to])
        if known is None:
            break
        url = known
    return url


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(urls)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _read(urls: list[str], pages: list[HtmlAnswer | None]) -> dict[str, Bag | None]:
    """Return the words of pages; those that are too hard to parse are left out, and not kept."""
    views = [None if page is None else page.parse() for page in pages]
    return {
        url: None if view is None else view.words.bag
        for url, page, view in zip(urls, pages, views, strict=True)
        if page is None or view is not None
    }


class _Cache:
    """Bags of one web, in an SQLite file that several processes may share.

    A change of the code that parses makes a new file: a stale word is worse than a slow start.
    """

    def __init__(self, web_fingerprint: str) -> None:
        digest = hashlib.sha256(web_fingerprint.encode())
        modules = resources.files("focuscrawl.page").iterdir()
        for module in sorted(modules, key=lambda each: each.name):
            if module.name.endswith(".py"):
                digest.update(module.read_bytes())
        folder = cache_dir() / "words"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{digest.hexdigest()[:32]}.sqlite"
        self._db = open_database(path, timeout=60.0)
        # a lock is waited for by all but this; who holds it has the file so, or will
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS bags (url TEXT PRIMARY KEY, bag BLOB)")

    def get(self, urls: Iterable[str]) -> dict[str, Bag | None]:
        found: dict[str, Bag | None] = {}
        for url in urls:
            row = self._db.execute("SELECT bag FROM bags WHERE url = ?", (url,)).fetchone()
            if row is not None:
                found[url] = None if row[0] is None else json.loads(zlib.decompress(row[0]))
        return found

    def put(self, bags: dict[str, Bag | None]) -> None:
        packed = [
            (url, None if bag is None else zlib.compress(json.dumps(bag).encode(), 1))
            for url, bag in bags.items()
        ]
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR REPLACE INTO bags VALUES (?, ?)", packed)
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


_ARRAYS = ("page_words", "page_ids", "page_counts", "page_starts")


class KeptPages(NamedTuple):
    """Bags of words in three arrays.

    Attributes
    ----------
    words : all that a page has, distinct
    ids : integer (nnz,), words of one page after the other's
    counts : integer (nnz,), how often, from 1
    starts : integer (n_pages + 1,), page i has ``ids[starts[i]:starts[i + 1]]``
    """

    words: tuple[str, ...] = ()
    ids: NDArray[np.integer] = np.zeros(0, np.int32)
    counts: NDArray[np.integer] = np.zeros(0, np.int32)
    starts: NDArray[np.integer] = np.zeros(1, np.int64)

    @classmethod
    def of(cls, bags: Sequence[Bag]) -> Self:
        """Keep the words of pages."""
        words = sorted(set(chain.from_iterable(bags)))
        rows = Vocabulary(words).read(bags)
        ids, counts = rows.ids.astype(np.int32), rows.counts.astype(np.int32)
        return cls(tuple(words), ids, counts, rows.starts.astype(np.int64))

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Take them from the arrays of a model; none if there are none.

        ValueError if they do not fit each other.
        """
        if _ARRAYS[0] not in arrays:
            return cls()
        words = decode_lines(arrays, _ARRAYS[0])
        ids, counts, starts = (
            require_array(arrays, name, (arrays[name].size,), "i") for name in _ARRAYS[1:]
        )
        whole = (
            len(starts) > 0
            and starts[0] == 0
            and starts[-1] == len(ids) == len(counts)
            and bool((np.diff(starts) >= 0).all())
            and bool(((ids >= 0) & (ids < len(words)) & (counts > 0)).all())
        )
        if not whole:
            raise ValueError("pages that do not fit their words")
        return cls(words, ids, counts, starts)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to keep: nothing if there is no page."""
        if self.n_pages == 0:
            return {}
        values = (encode_lines(self.words), self.ids, self.counts, self.starts)
        return dict(zip(_ARRAYS, values, strict=True))

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return len(self.starts) - 1

    def bags(self) -> list[Bag]:
        """Return the words of each page."""
        words = [self.words[i] for i in self.ids.tolist()]
        counts = self.counts.tolist()
        return [
            dict(zip(words[start:end], counts[start:end], strict=True))
            for start, end in pairwise(self.starts.tolist())
        ]
