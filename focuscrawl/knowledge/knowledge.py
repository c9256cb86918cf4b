"""Reads a knowledge file, in which earlier crawls of a topic have stored what they learned."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.apprentice.hashing import SparseRows, hstack, row_pointers, word_features
from focuscrawl.apprentice.link_features import HASH_BITS, HASH_SIZE, url_features, url_key_table
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.knowledge.keywords import Keywords, WordCount
from focuscrawl.knowledge.knowledge_file import key_of, open_knowledge_file, read_meta, url_keys

if TYPE_CHECKING:
    import sqlite3

    from scipy.sparse import csr_array

    from focuscrawl.foundation.arrays import Bools, Floats, Ints


N_START_URLS = 20  # start URLs for a crawl without start URLs
N_NEIGHBOURS = 10  # earlier pages that predict the relevance of a URL
MAX_EXEMPLARS = 20_000  # earlier pages for predictions, a limit of memory and time
MAX_FAILURES = 3  # consecutive failures after which a page is no longer visited
MIN_CHANGE_PROBABILITY = 0.1  # pages that are less likely to have changed are not visited again
_MIN_INTERVAL = 1e-6  # smallest interval between visits
_PRIOR_VISITS = 2.0  # number of visits that the mean of all pages counts for
_MAX_DOCUMENT_FREQUENCY = 500  # features on more pages are ignored
_PRIOR_WEIGHT = 0.5  # weight of the mean relevance of all pages among similarities
_ANCHOR_SALT = 3  # 1 and 2 are the salts of `url_features`
_APPRENTICE = "apprentice"
_KINDS = ("relevant", "other")


class PageRecord(NamedTuple):
    """The data of a URL in a knowledge file.

    Times are in days; if the crawls replay a recording, times are numbers of crawls.

    Attributes
    ----------
    relevance : last judged relevance; 0 for a URL without a page
    content : digest of the text; None for a URL without a page
    etag, last_modified : validators of the last response
    visited : time of the last visit
    changed : time of the last visit that found a changed page; None: never
    accesses, changes, span : see `focuscrawl.knowledge.knowledge.change_rate`
    failures : number of consecutive failed visits
    hub, authority : scores, divided by the largest score of the crawl
    """

    url: str
    relevance: float = 0.0
    content: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    visited: float = 0.0
    changed: float | None = None
    accesses: int = 0
    changes: int = 0
    span: float = 0.0
    failures: int = 0
    hub: float = 0.0
    authority: float = 0.0


class Knowledge:
    """An open knowledge file (what earlier crawls of a topic have learned).

    Attributes
    ----------
    meta : the table ``meta``: ``topic``, ``critic``, ``critic_name``, ``state``, ...
    close : closes the file, also called when the object is deleted

    Raises
    ------
    UserError
        See `focuscrawl.knowledge.knowledge_file.open_knowledge_file`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_knowledge_file(path)
        self.close = weakref.finalize(self, self._file.close)
        self.meta = read_meta(self._file)
        for count in ("crawls", "relevant_pages", "other_pages"):
            if not self.meta.get(count, "").isdecimal():
                raise self._damaged(count)
        rows = self._file.execute("SELECT key, relevance FROM page ORDER BY key")
        table = self._numbers(rows, [("key", np.int64), ("relevance", np.float32)], "relevances")
        self._keys = np.ascontiguousarray(table["key"])
        self._relevance = np.ascontiguousarray(table["relevance"])
        self._check_relevances(self._relevance, "relevances")

    def __len__(self) -> int:
        """Return the number of known URLs."""
        return len(self._keys)

    def check(self, topic: str, critic: str) -> Self:
        """Return `self`; raise UserError if the file is for another topic or critic."""
        if self.meta.get("topic") != topic:
            raise UserError(
                f"knowledge file {self.path} has the topic {self.meta.get('topic')}, not {topic}: "
                "use the knowledge file of this topic"
            )
        if self.meta.get("critic") != critic:
            raise UserError(
                f"knowledge file {self.path} belongs to another critic "
                f"({self.meta.get('critic_name')}): use that critic, or create a new file"
            )
        return self

    def _damaged(self, name: str) -> UserError:
        return UserError(
            f"knowledge file {self.path} is damaged: invalid {name}; create the file again with "
            "`focuscrawl knowledge learn`"
        )

    def _numbers(
        self, rows: Iterable[tuple[object, ...]], columns: list[tuple[str, Any]], name: str
    ) -> np.ndarray:
        """Return rows as an array with named columns; check types, which SQLite does not."""
        try:
            return np.fromiter(rows, np.dtype(columns))
        except (ValueError, TypeError, OverflowError):
            raise self._damaged(name) from None

    def _check_relevances(self, found: np.ndarray, name: str) -> None:
        if not ((found >= 0.0) & (found <= 1.0)).all():
            raise self._damaged(name)

    @property
    def now(self) -> float:
        """The number of the next crawl, which is the present time in crawls of a recording."""
        return float(self.meta.get("crawls", 0)) + 1.0

    # -- the three knowledge bases of the paper ------------------------------------------

    def seeds(self, most: int = N_START_URLS) -> list[str]:
        """Return stored start URLs, sorted by their hub and authority scores (methods.md 8)."""
        found = self._file.execute("SELECT url FROM seed ORDER BY rank LIMIT ?", (most,))
        return [url for url in (normalize(text) for (text,) in found) if url is not None]

    @cached_property
    def keywords(self) -> Keywords:
        """The keywords of the topic with their weights (methods.md 8)."""
        rows = self._file.execute("SELECT word, relevant, other FROM word")
        counts = {word: WordCount(relevant, other) for word, relevant, other in rows}
        relevant, other = (int(self.meta.get(f"{kind}_pages", 0)) for kind in _KINDS)
        return Keywords.from_counts(counts, relevant, other)

    def relevance(self, urls: Sequence[str]) -> Floats:
        """Return the stored relevance of n URLs, float64 (n,); NaN for URLs not in the file."""
        at = self.positions(urls)
        found = np.full(len(urls), np.nan)
        found[at >= 0] = self._relevance[at[at >= 0]]
        return found

    def predict(self, urls: Sequence[str], anchors: Sequence[str]) -> Floats:
        """Return the expected relevance of the targets of links, float64 (n,) (methods.md 8).

        If the knowledge file contains a URL, its expected relevance is the stored relevance.
        Otherwise the relevance of the URL is predicted from the most similar pages in the file.
        """
        predicted = self.relevance(urls)
        new = np.flatnonzero(np.isnan(predicted)).tolist()
        if new:
            of_new = self._nearest.predict([urls[i] for i in new], [anchors[i] for i in new])
            predicted[new] = of_new
        return predicted

    @cached_property
    def _nearest(self) -> NeighbourPrediction:
        relevances = self._file.execute("SELECT relevance FROM exemplar ORDER BY key")
        kept = self._numbers(relevances, [("relevance", np.float64)], "exemplars")["relevance"]
        self._check_relevances(kept, "exemplars")
        packed = [row[0] for row in self._file.execute("SELECT words FROM exemplar ORDER BY key")]
        if any(not isinstance(each, bytes) or len(each) % 4 for each in packed):
            raise self._damaged("exemplars")
        words = [np.frombuffer(each, "<i4") for each in packed]
        lengths = np.array([len(each) for each in words], np.int64)
        features = np.concatenate([np.zeros(0, "<i4"), *words]).astype(np.int32)
        if len(features) and not 0 <= features.min() <= features.max() < HASH_SIZE:
            raise self._damaged("exemplars")
        return NeighbourPrediction(SparseRows(features, row_pointers(lengths)), kept)

    # -- page by page --------------------------------------------------------------------

    def page(self, url: str) -> PageRecord | None:
        """Return the stored data of a URL; None for a URL that is not in the file."""
        return read_page(self._file, key_of(url))

    def visit_values(self, now: float, cheap: float) -> Floats:
        """Return the value of fetching each stored URL again, in the order of the URL keys.

        See `ChangeHistory.visit_values`. The value of fetching a URL again is 0 if the last fetch
        returned no page.
        """
        numbers = ChangeHistory._fields[:-1]
        rows = self._file.execute(
            f"SELECT {', '.join(numbers)}, etag IS NOT NULL OR last_modified IS NOT NULL, "
            "content IS NOT NULL FROM page ORDER BY key"
        )
        columns: list[tuple[str, Any]] = [(name, np.float64) for name in numbers]
        columns += [("validated", np.bool_), ("judged", np.bool_)]
        table = self._numbers(rows, columns, "pages")
        history = ChangeHistory(*(table[name].copy() for name in ChangeHistory._fields))
        return np.where(table["judged"], history.visit_values(now, cheap), 0.0)

    def positions(self, urls: Sequence[str]) -> Ints:
        """Return the position of each URL in the sorted URL keys, int64 (n,); -1 if not stored."""
        if not len(self._keys) or not len(urls):
            return np.full(len(urls), -1)
        keys = url_keys(urls)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, at, -1)

    def urls_at(self, positions: Ints) -> list[str]:
        """Return the stored URLs at the given positions in the sorted URL keys."""
        statement = "SELECT url FROM page WHERE key = ?"
        keys = self._keys[positions].tolist()
        return [self._file.execute(statement, (key,)).fetchone()[0] for key in keys]

    def queued_urls(self, most: int) -> list[tuple[str, float]]:
        """Return URLs that no earlier crawl fetched, with their last scores, the best first."""
        statement = "SELECT url, score FROM waiting ORDER BY score DESC, key LIMIT ?"
        return list(self._file.execute(statement, (most,)))

    @property
    def trained_apprentice(self) -> bytes | None:
        """The stored apprentice as bytes of `Apprentice.export`, or None if none is stored.

        Raises
        ------
        UserError
            The apprentice is damaged.
        """
        return _apprentice(self._file, self.path)

    def history(self) -> Iterator[tuple[object, ...]]:
        """Yield a row of data, such as the number of fetches, for each crawl in the file."""
        yield from self._file.execute(
            "SELECT number, name, learned_at, fetches, relevant, new, changed, unchanged, failed "
            "FROM crawl ORDER BY number"
        )


def read_page(file: sqlite3.Connection, key: int) -> PageRecord | None:
    """Return the stored data of the URL with the key `key`; None if the URL is not stored."""
    columns = ", ".join(PageRecord._fields)
    row = file.execute(f"SELECT {columns} FROM page WHERE key = ?", (key,)).fetchone()
    return None if row is None else PageRecord(*row)


def read_trained_apprentice(path: Path) -> bytes | None:
    """Return the apprentice in a knowledge file as bytes, without reading the rest of the file."""
    with closing(open_knowledge_file(path)) as file:
        return _apprentice(file, path)


def _apprentice(file: sqlite3.Connection, path: Path) -> bytes | None:
    row = file.execute("SELECT digest, data FROM model WHERE kind = ?", (_APPRENTICE,)).fetchone()
    if row is None:
        return None
    if hashlib.sha256(row[1]).hexdigest() != row[0]:
        raise UserError(
            f"knowledge file {path} is damaged: the digest of its apprentice differs; create the "
            "file again with `focuscrawl knowledge learn`"
        )
    return bytes(row[1])


def store_apprentice(file: sqlite3.Connection, trained_apprentice: bytes) -> None:
    """Store an apprentice in a knowledge file, in place of an earlier apprentice."""
    digest = hashlib.sha256(trained_apprentice).hexdigest()
    file.execute(
        "INSERT OR REPLACE INTO model (kind, digest, data) VALUES (?, ?, ?)",
        (_APPRENTICE, digest, trained_apprentice),
    )


def change_rate(accesses: Floats, changes: Floats, span: Floats) -> Floats:
    """Estimate how often pages change, as the rate of a Poisson process.

    The estimator was published by Cho and Garcia-Molina, Estimating frequency of change, ACM TOIT
    3 (2003), section 4.2. If X of n visits to a page found a change, and the visits were at
    intervals of length I, the rate is -log((n - X + 0.5) / (n + 0.5)) / I. The bias of the simple
    estimator X / (n I) is larger, because several changes between two visits count as one change.
    The function uses the mean interval between visits as I. For smoothing, `_PRIOR_VISITS`
    imaginary visits are added to n. The number of changes that such visits would find on an
    average page is added to X.

    Parameters
    ----------
    accesses : (n_pages,), number of visits after the first visit
    changes : (n_pages,), number of these visits that found a changed page
    span : (n_pages,), time from the first to the last visit

    Returns
    -------
    float64 (n_pages,), changes per time unit of `span`
    """
    often = (changes.sum() + 0.5) / (accesses.sum() + 1.0)
    n, found = accesses + _PRIOR_VISITS, changes + _PRIOR_VISITS * often
    usual = float(span.sum() / accesses.sum()) if accesses.any() else 1.0
    interval = np.where(accesses > 0, span / np.maximum(accesses, 1.0), usual)
    rate: Floats = -np.log((n - found + 0.5) / (n + 0.5))
    rate /= np.maximum(interval, _MIN_INTERVAL)
    return rate


class ChangeHistory(NamedTuple):
    """History of the visits (fetches) of pages; each attribute is an array of shape (n_pages,).

    Attributes
    ----------
    relevance : last judged relevance
    visited : time of the last visit
    accesses, changes, span : see `change_rate`
    failures : number of consecutive failed visits
    hub : hub score, divided by the largest hub score
    validated : whether the server sends ETag or Last-Modified, for cheap conditional requests
    """

    relevance: Floats
    visited: Floats
    accesses: Floats
    changes: Floats
    span: Floats
    failures: Floats
    hub: Floats
    validated: Bools

    def changed(self, now: float) -> Floats:
        """Return the probability that each page has changed since its last visit."""
        rate = change_rate(self.accesses, self.changes, self.span)
        return -np.expm1(-rate * np.maximum(now - self.visited, 0.0))

    def visit_values(self, now: float, cheap: float) -> Floats:
        """Return the value of fetching each page again, in relevant new pages per fetch.

        Let p be the probability that a page has changed. A changed page has the value r + h, where
        r is its relevance and h is its hub score, because a changed hub has new links. The cost of
        a conditional request for an unchanged page is the parameter `cheap`, a fraction of a
        fetch. The value of a visit (fetch) is p (r + h) / (p + (1 - p) cheap) with conditional
        requests, and p (r + h) otherwise. Each failed visit halves the value of the next visit.
        The value of a visit is 0 after `MAX_FAILURES` failed visits, and if p is below
        `MIN_CHANGE_PROBABILITY`.

        Parameters
        ----------
        now : present time, in crawls or days as in the knowledge file
        cheap : cost of a response "not modified", in fetches
        """
        p = self.changed(now)
        p = np.where(p < MIN_CHANGE_PROBABILITY, 0.0, p)
        cost = np.where(self.validated, p + (1.0 - p) * cheap, 1.0)
        value = np.where(p > 0.0, p * (self.relevance + self.hub) / np.maximum(cost, 1e-9), 0.0)
        value *= np.where(self.failures >= MAX_FAILURES, 0.0, 0.5**self.failures)
        return np.round(value, 9).astype(np.float64)


def describe_links(urls: Sequence[str], anchors: Sequence[str]) -> SparseRows:
    """Return the words of anchors and URLs, and the directories of URLs, as one row a link.

    Features may repeat.
    """
    words = word_features(list(anchors), _ANCHOR_SALT, HASH_BITS)
    return hstack(url_features(urls, url_key_table(urls)), words)[0]


class NeighbourPrediction:
    """Predicts the relevance of a page from the most similar pages of earlier crawls.

    The similarity s of two pages is the cosine of their TF-IDF vectors. Let r be the relevance of
    each of the `N_NEIGHBOURS` most similar pages, s their similarities, m the mean relevance of
    all pages, and w a constant weight. The prediction is (sum of s r + w m) / (sum of s + w), a
    weighted mean of r that is shrunk towards m.

    Parameters
    ----------
    described : features of earlier pages
    relevance : float64 (n_pages,), relevance of these pages
    """

    def __init__(self, described: SparseRows, relevance: Floats) -> None:
        n = len(described)
        self._relevance = relevance
        self._mean = float(relevance.mean()) if n else 0.0
        rows = _binary(described)
        df = np.bincount(rows.indices, minlength=HASH_SIZE)
        idf = np.log(max(n, 1) / np.maximum(df, 1))
        # ignore features of too many pages
        idf[df > max(_MAX_DOCUMENT_FREQUENCY, n // 20)] = 0.0
        self._idf = idf
        self._by_feature = _tfidf(rows, idf).T.tocsr()

    def predict(self, urls: Sequence[str], anchors: Sequence[str]) -> Floats:
        """Return the predicted relevance of the targets of links, float64 (n_links,)."""
        if not len(self._relevance):
            return np.full(len(urls), self._mean)
        near = _tfidf(_binary(describe_links(urls, anchors)), self._idf) @ self._by_feature
        link = np.repeat(np.arange(len(urls)), np.diff(near.indptr))
        # nearest pages first within each link; ties in the order stored
        order = np.lexsort((near.indices, -near.data, link))
        place = np.arange(len(order)) - near.indptr[link]
        chosen = order[place < N_NEIGHBOURS]
        similarity, page = near.data[chosen], near.indices[chosen]
        link = link[chosen]
        total = np.bincount(link, similarity * self._relevance[page], len(urls))
        weight = np.bincount(link, similarity, len(urls))
        predicted: Floats = (total + _PRIOR_WEIGHT * self._mean) / (weight + _PRIOR_WEIGHT)
        return np.round(predicted, 9)


def _binary(rows: SparseRows) -> csr_array:
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and not for every crawl

    matrix = csr_array(
        (np.ones(len(rows.indices)), rows.indices, rows.indptr), shape=(len(rows), HASH_SIZE)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _tfidf(matrix: csr_array, idf: Floats) -> csr_array:
    """Weight features by `idf` and scale rows to length 1; rows without weights are 0."""
    matrix.data *= idf[matrix.indices]
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    length = np.sqrt(np.bincount(owner, matrix.data**2, matrix.shape[0]))
    length[length == 0.0] = 1.0
    matrix.data /= length[owner]
    matrix.eliminate_zeros()
    return matrix
