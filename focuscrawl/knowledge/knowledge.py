"""What is known of a topic: seeds, keywords, predictions, pages due for another visit."""

from __future__ import annotations

import hashlib
import weakref
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from focuscrawl.apprentice.hashing import SparseRows, WordHashes, hstack, row_pointers
from focuscrawl.apprentice.link_features import BITS, url_features, url_key_table
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.knowledge.keywords import Keywords, WordCount
from focuscrawl.knowledge.knowledge_file import key_of, keys_of, open_knowledge_file, read_meta

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from scipy.sparse import csr_array

    from focuscrawl.foundation.arrays import Bools, Floats, Ints


SEEDS = 20  # start URLs given to a crawl that is given none
NEAREST = 10  # earlier pages that predict a URL
MOST = 20_000  # earlier pages kept for predictions: bounds memory and time
MAX_FAILURES = 3  # failures in a row after which a page is given up
MIN_CHANGE_PROBABILITY = 0.1  # chance that a page has changed, below which it is not visited again
_SHORTEST = 1e-6  # of an interval: nothing changes between visits a moment apart
_TRUST = 2.0  # visits that what is known of all pages counts for, in judging one
_COMMON = 500  # pages: what is on more of them tells too little for its cost
_DOUBT = 0.5  # weight of the mean relevance of all pages, against similarities
_ANCHOR = 3  # salt; 1 and 2 are those of address_features
_APPRENTICE = "apprentice"
_KINDS = ("relevant", "other")


class PageRecord(NamedTuple):
    """What is kept of one URL; times are those of the knowledge, crawls or days.

    Attributes
    ----------
    url : normalised
    relevance : R, as last judged; 0 of what is no page
    content : digest of its text; None if it was no page
    etag, last_modified : validators of the last answer
    visited : when last
    changed : when a visit last found another content; None: never
    accesses, changes, span : see `focuscrawl.knowledge.knowledge.change_rate`
    failures : visits in a row that brought nothing
    hub, authority : scores over the greatest of the crawl
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
    """An open knowledge file.

    In memory are 12 bytes a URL and the bounded parts (keywords, exemplars); the rest is read
    when needed.

    Parameters
    ----------
    path : the file

    Attributes
    ----------
    about : its table ``meta``: ``topic``, ``critic``, ``critic_name``, ``state``, ...
    close : closes the file; so does the end of the object

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
        """Return how many URLs are known."""
        return len(self._keys)

    def check(self, topic: str, critic: str) -> Self:
        """Return this knowledge; UserError if it is of another topic, or another critic's.

        Parameters
        ----------
        topic : topic paths, comma-separated
        critic : its fingerprint
        """
        if self.meta.get("topic") != topic:
            raise UserError(
                f"knowledge {self.path} is of topic {self.meta.get('topic')}, not {topic}: "
                "name the file of this topic"
            )
        if self.meta.get("critic") != critic:
            raise UserError(
                f"knowledge {self.path} was judged by another critic "
                f"({self.meta.get('critic_name')}): crawl with that one, or learn anew"
            )
        return self

    def _damaged(self, what: str) -> UserError:
        return UserError(f"knowledge {self.path} is damaged: its {what} are not what was kept")

    def _numbers(
        self, rows: Iterable[tuple[object, ...]], columns: list[tuple[str, Any]], what: str
    ) -> np.ndarray:
        """Return rows as an array with named columns; SQLite takes texts for numbers, too."""
        try:
            return np.fromiter(rows, np.dtype(columns))
        except (ValueError, TypeError, OverflowError):
            raise self._damaged(what) from None

    def _check_relevances(self, found: np.ndarray, what: str) -> None:
        if not ((found >= 0.0) & (found <= 1.0)).all():
            raise self._damaged(what)

    @property
    def now(self) -> float:
        """The time of the next crawl where time is counted in crawls, as in replays."""
        return float(self.meta.get("crawls", 0)) + 1.0

    # -- the three knowledge bases of the paper ------------------------------------------

    def seeds(self, most: int = SEEDS) -> list[str]:
        """Return the best start URLs: hubs and authorities (methods 8, seed URLs)."""
        found = self._file.execute("SELECT url FROM seed ORDER BY rank LIMIT ?", (most,))
        return [url for url in (normalize(text) for (text,) in found) if url is not None]

    @cached_property
    def keywords(self) -> Keywords:
        """Topic keywords with their weights (methods 8)."""
        rows = self._file.execute("SELECT word, relevant, other FROM word")
        counts = {word: WordCount(relevant, other) for word, relevant, other in rows}
        relevant, other = (int(self.meta.get(f"{kind}_pages", 0)) for kind in _KINDS)
        return Keywords.from_counts(counts, relevant, other)

    def relevance(self, urls: Sequence[str]) -> Floats:
        """Return the recorded relevance of URLs, float64 (n,); NaN where nothing is known."""
        at = self.positions(urls)
        found = np.full(len(urls), np.nan)
        found[at >= 0] = self._relevance[at[at >= 0]]
        return found

    def predict(self, urls: Sequence[str], anchors: Sequence[str]) -> Floats:
        """Return the relevance expected of n links' targets, float64 (n,) (methods 8).

        The recorded one for a URL seen before, else that of the nearest earlier pages.
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
        if len(features) and not 0 <= features.min() <= features.max() < 1 << BITS:
            raise self._damaged("exemplars")
        return NeighbourPrediction(SparseRows(features, row_pointers(lengths)), kept)

    # -- page by page --------------------------------------------------------------------

    def page(self, url: str) -> PageRecord | None:
        """Return what is kept of a URL; None if nothing is."""
        return read_page(self._file, key_of(url))

    def visit_values(self, now: float, cheap: float) -> Floats:
        """Return the value of another visit to each URL, in the order of the keys.

        See `ChangeHistory.visit_values`. URLs that were no pages have the value 0.
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
        """Return the positions of URLs in the order of their keys, int64 (n,); -1 if unknown."""
        if not len(self._keys) or not len(urls):
            return np.full(len(urls), -1)
        keys = keys_of(urls)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, at, -1)

    def urls_at(self, places: Ints) -> list[str]:
        """Return the URLs at some places."""
        one = "SELECT url FROM page WHERE key = ?"
        keys = self._keys[places].tolist()
        return [self._file.execute(one, (key,)).fetchone()[0] for key in keys]

    def queued_urls(self, most: int) -> list[tuple[str, float]]:
        """Return URLs known and never fetched, the best first, and their last scores."""
        statement = "SELECT url, score FROM waiting ORDER BY score DESC, key LIMIT ?"
        return list(self._file.execute(statement, (most,)))

    @property
    def trained_apprentice(self) -> bytes | None:
        """What the last apprentice has learned, see `Apprentice.export`; None if there is none.

        Raises
        ------
        UserError
            It is not what was kept.
        """
        return _apprentice(self._file, self.path)

    def history(self) -> Iterator[tuple[object, ...]]:
        """Yield the crawls learned: number, name, time, fetches, relevant, new, changed, ..."""
        yield from self._file.execute(
            "SELECT number, name, learned_at, fetches, relevant, new, changed, unchanged, failed "
            "FROM crawl ORDER BY number"
        )


def read_page(file: sqlite3.Connection, key: int) -> PageRecord | None:
    """Return what a knowledge file keeps of the URL with a key; None if nothing is."""
    columns = ", ".join(PageRecord._fields)
    row = file.execute(f"SELECT {columns} FROM page WHERE key = ?", (key,)).fetchone()
    return None if row is None else PageRecord(*row)


def read_trained_apprentice(path: Path) -> bytes | None:
    """Read only `Knowledge.trained_apprentice` of a file; raises the same errors."""
    with closing(open_knowledge_file(path)) as file:
        return _apprentice(file, path)


def _apprentice(file: sqlite3.Connection, path: Path) -> bytes | None:
    row = file.execute("SELECT digest, data FROM model WHERE kind = ?", (_APPRENTICE,)).fetchone()
    if row is None:
        return None
    if hashlib.sha256(row[1]).hexdigest() != row[0]:
        raise UserError(f"knowledge {path} is damaged: its apprentice is not what was kept")
    return bytes(row[1])


def store_apprentice(file: sqlite3.Connection, trained_apprentice: bytes) -> None:
    """Keep an apprentice in a knowledge file, in place of the one before."""
    digest = hashlib.sha256(trained_apprentice).hexdigest()
    file.execute(
        "INSERT OR REPLACE INTO model (kind, digest, data) VALUES (?, ?, ?)",
        (_APPRENTICE, digest, trained_apprentice),
    )


def change_rate(accesses: Floats, changes: Floats, span: Floats) -> Floats:
    """Estimate how often pages change, as a Poisson process.

    Cho and Garcia-Molina, Estimating frequency of change, ACM TOIT 3 (2003), section 4.2: of n
    visits at intervals I, X found a change; the rate is -log((n - X + 0.5) / (n + 0.5)) / I, whose
    bias is much below that of X / (n I), since several changes between two visits look like
    one. I is the mean interval here. To n and X are added `_TRUST` visits that found changes as
    often as those of all pages (of none, every other one), as few visits tell little.

    Parameters
    ----------
    accesses : (n,), visits after the first
    changes : (n,), how many of them found another content
    span : (n,), time from the first of all visits to the last

    Returns
    -------
    float64 (n,), changes in a unit of the time of `span`
    """
    often = (changes.sum() + 0.5) / (accesses.sum() + 1.0)
    n, found = accesses + _TRUST, changes + _TRUST * often
    usual = float(span.sum() / accesses.sum()) if accesses.any() else 1.0
    interval = np.where(accesses > 0, span / np.maximum(accesses, 1.0), usual)
    rate: Floats = -np.log((n - found + 0.5) / (n + 0.5))
    rate /= np.maximum(interval, _SHORTEST)
    return rate


class ChangeHistory(NamedTuple):
    """The visits to n pages, all columns (n,).

    Attributes
    ----------
    relevance : R, as last judged
    visited : when last, in the time of the knowledge
    accesses, changes, span : see `change_rate`
    failures : visits in a row that brought nothing
    hub : hub score over the greatest of all pages
    validated : the server gave an ETag or Last-Modified: a visit in vain is cheap
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
        """Return the chance that each page has changed by now: 1 - exp(-rate * time)."""
        rate = change_rate(self.accesses, self.changes, self.span)
        return -np.expm1(-rate * np.maximum(now - self.visited, 0.0))

    def visit_values(self, now: float, cheap: float) -> Floats:
        """Return the worth of a visit to each page, in relevant new pages a fetch.

        With chance p it has changed and is worth its relevance and its hub score, as a changed hub
        has new links. An unchanged one is worth nothing, but costs only `cheap` in a conditional
        request: p (R + h) / (p + (1 - p) cheap). Each failure halves it; after `MAX_FAILURES`, and
        while p is below `MIN_CHANGE_PROBABILITY`, it is 0.

        Parameters
        ----------
        now : in the time of the knowledge
        cheap : what "not modified" costs, in fetches
        """
        p = self.changed(now)
        p = np.where(p < MIN_CHANGE_PROBABILITY, 0.0, p)
        cost = np.where(self.validated, p + (1.0 - p) * cheap, 1.0)
        worth = np.where(p > 0.0, p * (self.relevance + self.hub) / np.maximum(cost, 1e-9), 0.0)
        worth *= np.where(self.failures >= MAX_FAILURES, 0.0, 0.5**self.failures)
        return np.round(worth, 9).astype(np.float64)


class LinkDescriber:
    """Describes the target of a link by the words of anchor and URL, and by its directories."""

    def __init__(self) -> None:
        self._hashes = WordHashes()

    def __call__(self, urls: Sequence[str], anchors: Sequence[str]) -> SparseRows:
        """Return one row of features a link, with repetitions."""
        words = self._hashes.rows(list(anchors), _ANCHOR, BITS)
        addresses = url_features(urls, url_key_table(urls), self._hashes)
        return hstack(addresses, words)[0]


class NeighbourPrediction:
    """Predicts the relevance of a page by its nearest neighbours among earlier ones.

    Neighbours are near by the cosine of their descriptions, features weighed by log(n/df). The
    prediction is the mean of the relevances of the `NEAREST` ones, weighed by similarity and
    shrunk to the mean of all pages: (sum s R + a m) / (sum s + a).

    Parameters
    ----------
    described : `SparseRows` of n, descriptions of earlier pages
    relevance : float64 (n,), what was judged of them
    """

    def __init__(self, described: SparseRows, relevance: Floats) -> None:
        n = len(described)
        self._relevance = relevance
        self._mean = float(relevance.mean()) if n else 0.0
        rows = _binary(described)
        df = np.bincount(rows.indices, minlength=1 << BITS)
        idf = np.log(max(n, 1) / np.maximum(df, 1))
        # a feature that is on every page is on few if there are few pages
        idf[df > max(_COMMON, n // 20)] = 0.0
        self._idf = idf
        self._by_feature = _tfidf(rows, idf).T.tocsr()
        self._describe = LinkDescriber()

    def predict(self, urls: Sequence[str], anchors: Sequence[str]) -> Floats:
        """Return the relevance expected of n links' targets, float64 (n,)."""
        if not len(self._relevance):
            return np.full(len(urls), self._mean)
        asked = _tfidf(_binary(self._describe(urls, anchors)), self._idf)
        near = asked @ self._by_feature
        link = np.repeat(np.arange(len(urls)), np.diff(near.indptr))
        # the nearest first within each link; of equals the one kept first
        order = np.lexsort((near.indices, -near.data, link))
        place = np.arange(len(order)) - near.indptr[link]
        chosen = order[place < NEAREST]
        similarity, page = near.data[chosen], near.indices[chosen]
        link = link[chosen]
        total = np.bincount(link, similarity * self._relevance[page], len(urls))
        weight = np.bincount(link, similarity, len(urls))
        predicted: Floats = (total + _DOUBT * self._mean) / (weight + _DOUBT)
        return np.round(predicted, 9)


def _binary(rows: SparseRows) -> csr_array:
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and not for every crawl

    matrix = csr_array(
        (np.ones(len(rows.indices)), rows.indices, rows.indptr), shape=(len(rows), 1 << BITS)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _tfidf(matrix: csr_array, idf: Floats) -> csr_array:
    """Weigh features by `idf` and make rows of length 1; 0 where nothing weighs."""
    matrix.data *= idf[matrix.indices]
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    length = np.sqrt(np.bincount(owner, matrix.data**2, matrix.shape[0]))
    length[length == 0.0] = 1.0
    matrix.data /= length[owner]
    matrix.eliminate_zeros()
    return matrix
