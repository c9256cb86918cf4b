"""Words of the pages of a recording, cached on disk; bags of words packed into arrays."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from importlib import resources
from itertools import chain, pairwise
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from focuscrawl.critic.bag_of_words import Vocabulary
from focuscrawl.foundation.arrays import decode_lines, encode_lines, require_array
from focuscrawl.foundation.databases import open_database
from focuscrawl.foundation.files import cache_dir
from focuscrawl.foundation.processes import safe_python_path
from focuscrawl.foundation.urls import normalize, resolve_header
from focuscrawl.foundation.user_input import NO_PROGRESS
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.critic.bag_of_words import Bag
    from focuscrawl.foundation.user_input import Progress
    from focuscrawl.webs.web_protocol import Web

T = TypeVar("T")

_BATCH = 32  # pages of a parsing task: smooth progress at little overhead
_PROCESSES = 2
_MIN_PARALLEL_PAGES = 400  # with fewer pages, starting child processes takes longer than parsing
_MAX_REDIRECTS = 5


def find_urls(web: Web, urls: Sequence[str]) -> list[str | None]:
    """Return for each URL in `urls` the recorded URL, or None if `web` does not have the URL."""
    normalized = [normalize(url) for url in urls]
    known = iter(web.resolve([url for url in normalized if url is not None]))
    return [None if url is None else next(known) for url in normalized]


def read_bags(
    web: Web, urls: Sequence[str], *, progress: Progress = NO_PROGRESS
) -> list[Bag | None]:
    """Read pages from a recording, and count their words.

    Parameters
    ----------
    web : web that has the pages
    urls : URLs of `web`, as `find_urls` returns them
    progress : reports the number of pages read

    Returns
    -------
    The bag of words of each URL; None if the response is not an HTML page
    """
    with closing(_BagCache(web.fingerprint)) as cache:
        bags: dict[str, Bag | None] = cache.get(dict.fromkeys(urls))
        missing = [url for url in dict.fromkeys(urls) if url not in bags]
        progress.advance(len(urls) - len(missing))
        for found in process_pages(web, missing, _parse_bags, _PROCESSES):
            cache.put(found)
            bags.update(found)
            progress.advance(len(found))
        progress.advance(sum(url not in bags for url in missing))
    return [bags.get(url) for url in urls]


def process_pages(
    web: Web,
    urls: Sequence[str],
    work: Callable[[Sequence[str], list[HtmlAnswer | None]], T],
    processes: int,
) -> Iterator[T]:
    """Yield the results of `work` for batches of pages, from child processes if there are many.

    Parameters
    ----------
    work : callable
        Takes the URLs of a batch and the pages, with None for a response that is no page.
    """
    from joblib import Parallel, delayed  # noqa: PLC0415

    # a child process has one core, and would wait minutes for idle workers at its exit
    is_parallel = len(urls) >= _MIN_PARALLEL_PAGES and parent_process() is None
    parallel = Parallel(n_jobs=processes if is_parallel else 1, return_as="generator")
    batches = (urls[start : start + _BATCH] for start in range(0, len(urls), _BATCH))
    tasks = (
        delayed(work)(batch, [HtmlAnswer.from_answer(web.fetch(url)) for url in batch])
        for batch in batches
    )
    with safe_python_path():
        yield from parallel(tasks)


class FoundPage(NamedTuple):
    """A page found in a recording: its URL after redirects, and its words."""

    url: str
    bag: Bag


def find_pages(
    webs: Sequence[Web], urls: Sequence[str], *, progress: Progress = NO_PROGRESS
) -> dict[str, FoundPage]:
    """Find pages in several recordings, follow redirects, and count the words of the pages.

    Parameters
    ----------
    webs : searched in this order
    urls : URLs as written by users
    progress : reports the number of pages read

    Returns
    -------
    Pages by the URL in `urls`. URLs without an HTML page that has words are left out
    """
    pages: dict[str, FoundPage] = {}
    for web in webs:
        left = [url for url in urls if url not in pages]
        at = {a: b for a, b in zip(left, find_urls(web, left), strict=True) if b is not None}
        pages.update(_read_found(web, at, progress))
        moved = {a: _follow_redirects(web, url) for a, url in at.items() if a not in pages}
        pages.update(_read_found(web, moved, NO_PROGRESS))
    return pages


def _read_found(web: Web, at: Mapping[str, str], progress: Progress) -> dict[str, FoundPage]:
    bags = read_bags(web, list(at.values()), progress=progress)
    return {a: FoundPage(url, bag) for (a, url), bag in zip(at.items(), bags, strict=True) if bag}


def _follow_redirects(web: Web, url: str) -> str:
    """Return the URL that redirects lead to, as far as the web has the URLs."""
    for _ in range(_MAX_REDIRECTS):
        answer = web.fetch(url)
        if answer is None or not 300 <= answer.status < 400:
            break
        to = resolve_header(url, answer.header("location") or "")
        (known,) = [None] if to is None else web.resolve([to])
        if known is None:
            break
        url = known
    return url


def _parse_bags(urls: Sequence[str], pages: list[HtmlAnswer | None]) -> dict[str, Bag | None]:
    """Count the words of pages; pages that exceed a parse limit are left out and not cached."""
    views = [None if page is None else page.parse() for page in pages]
    return {
        url: None if view is None else view.words.bag
        for url, page, view in zip(urls, pages, views, strict=True)
        if page is None or view is not None
    }


class _BagCache:
    """Bags of words of one web, in an SQLite file that several processes can share.

    A change to the code that parses pages creates a new file, so cached words are never outdated.
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
        # this statement does not wait for a lock; the process with the lock sets the same mode
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


class PackedBags(NamedTuple):
    """Bags of words packed into arrays.

    Attributes
    ----------
    words : distinct words of all pages
    ids : integer (nnz,), word indices, page after page
    counts : integer (nnz,), from 1
    starts : integer (n_pages + 1,); page i is ``ids[starts[i]:starts[i + 1]]``
    """

    words: tuple[str, ...] = ()
    ids: NDArray[np.integer] = np.zeros(0, np.int32)
    counts: NDArray[np.integer] = np.zeros(0, np.int32)
    starts: NDArray[np.integer] = np.zeros(1, np.int64)

    @classmethod
    def from_bags(cls, bags: Sequence[Bag]) -> Self:
        """Pack bags of words."""
        words = sorted(set(chain.from_iterable(bags)))
        rows = Vocabulary(words).transform(bags)
        ids, counts = rows.ids.astype(np.int32), rows.counts.astype(np.int32)
        return cls(tuple(words), ids, counts, rows.starts.astype(np.int64))

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Unpack the bags of words in the arrays of a model file; raise ValueError on damage."""
        if _ARRAYS[0] not in arrays:
            return cls()
        words = decode_lines(arrays, _ARRAYS[0])
        ids, counts, starts = (
            require_array(arrays, name, (arrays[name].size,), "i") for name in _ARRAYS[1:]
        )
        is_valid = (
            len(starts) > 0
            and starts[0] == 0
            and starts[-1] == len(ids) == len(counts)
            and bool((np.diff(starts) >= 0).all())
            and bool(((ids >= 0) & (ids < len(words)) & (counts > 0)).all())
        )
        if not is_valid:
            raise ValueError("the arrays of the pages do not fit their words")
        return cls(words, ids, counts, starts)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file; an empty dictionary if there are no pages."""
        if self.n_pages == 0:
            return {}
        values = (encode_lines(self.words), self.ids, self.counts, self.starts)
        return dict(zip(_ARRAYS, values, strict=True))

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return len(self.starts) - 1

    def bags(self) -> list[Bag]:
        """Return the bag of words of each page."""
        words = [self.words[i] for i in self.ids.tolist()]
        counts = self.counts.tolist()
        return [
            dict(zip(words[start:end], counts[start:end], strict=True))
            for start, end in pairwise(self.starts.tolist())
        ]
