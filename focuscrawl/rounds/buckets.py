"""The URLs and links of a bucket (group of hosts), and discounts of hosts and URL patterns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.apprentice.options import MAX_LINKS
from focuscrawl.crawl.traps import Traps
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.foundation.urls import hashed_id, host
from focuscrawl.rounds.tables import EVIDENCE, URL, last_rows
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import StoredPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.traps import Discounts
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.rounds.tables import Tables
    from focuscrawl.strategies import Strategy


#: columns of a URL that do not change
_FIXED = ["id", "url", "depth", "referrer", "found"]
_REFERRER = _FIXED.index("referrer")
#: schema in memory: many URLs share a referrer, so referrers are dictionary-encoded
_URL_IN_MEMORY = URL.set(_REFERRER, pa.field("referrer", pa.dictionary(pa.int32(), pa.string())))


def bucket_of(url: str, buckets: int) -> int:
    """Return the number of the bucket (group of hosts) that contains a URL's host."""
    return hashed_id(host(url)) % buckets


class BucketUrls:
    """The URLs of one bucket (group of hosts) after a round (batch of fetches).

    Attributes
    ----------
    ids : int64 (n,), ascending
    score, state, found, relevance : float64, int8, int64, float64 (n,), see `URL`
    """

    def __init__(self, tables: Tables, bucket: int, until: int) -> None:
        names = tables.bucket_tables("urls", bucket, until)
        parts = [tables.read(name, dictionaries=["referrer"]) for name in names]
        # outdated rows of a URL stay in the table, because copying texts is slow
        rows = pa.concat_tables([_URL_IN_MEMORY.empty_table(), *parts])
        self.ids, self._row = last_rows(rows["id"].to_numpy())
        self.score: Floats = rows["score"].to_numpy()[self._row]
        self.state: Ints = rows["state"].to_numpy()[self._row]
        self.found: Ints = rows["found"].to_numpy()[self._row]
        self.relevance: Floats = rows["relevance"].to_numpy()[self._row]
        self._rows = rows.select(_FIXED)
        self._changed: Bools = np.zeros(len(self.ids), bool)

    def __len__(self) -> int:
        return len(self.ids)

    def positions(self, ids: Ints) -> Ints:
        """Return the positions of stored URLs, given their ids, int64 (n,)."""
        return np.searchsorted(self.ids, ids)

    def known(self, ids: Ints) -> Bools:
        """Return for each URL id whether the bucket of hosts contains the URL, bool (n,)."""
        at = np.minimum(self.positions(ids), max(len(self.ids) - 1, 0))
        return self.ids[at] == ids if len(self.ids) else np.zeros(len(ids), bool)

    def is_known(self, url: str) -> bool:
        """Return whether the bucket of hosts contains a URL."""
        return bool(self.known(np.array([hashed_id(url)], np.int64))[0])

    def rows(self, places: Ints) -> pa.Table:
        """Return the current table rows of the URLs at given positions (columns as in `URL`)."""
        rows = self._rows.take(pa.array(self._row[places]))
        for name, values in (
            ("score", pa.array(self.score[places])),
            ("state", pa.array(self.state[places])),
            ("relevance", pa.array(self.relevance[places], from_pandas=True)),
        ):
            rows = rows.append_column(name, values)
        return rows.cast(URL)

    def urls(self, places: Ints) -> list[str]:
        """Return the text of the URLs at given positions."""
        urls: list[str] = self._rows["url"].take(pa.array(self._row[places])).to_pylist()
        return urls

    # -- changes by a round -----------------------------------------------------------------

    def add_urls(self, names: pa.Table) -> None:
        """Add the URLs of new links; queue those that are start pages or redirect targets."""
        names = names.sort_by("found")
        ids, first_row = np.unique(names["id"].to_numpy(), return_index=True)
        rows = names.take(pa.array(first_row[~self.known(ids)])).select(_FIXED)
        n = len(rows)
        grown = {
            "ids": rows["id"].to_numpy(),
            "_row": len(self._rows) + np.arange(n),
            "score": np.full(n, np.nan),
            "state": np.full(n, UNFOLLOWED, np.int8),
            "found": rows["found"].to_numpy(),
            "relevance": np.full(n, np.nan),
            "_changed": np.ones(n, bool),
        }
        order = np.argsort(np.concatenate([self.ids, grown["ids"]]), kind="stable")
        for name, values in grown.items():
            setattr(self, name, np.concatenate([getattr(self, name), values])[order])
        referrers = rows["referrer"].dictionary_encode()
        rows = rows.set_column(_REFERRER, "referrer", referrers)
        self._rows = pa.concat_tables([self._rows, rows])
        first = np.unique(names["id"].to_numpy()[names["first"].to_numpy(zero_copy_only=False)])
        at = self.positions(first)
        at = at[np.isin(self.state[at], (UNFOLLOWED, QUEUED))]
        self.score[at], self.state[at], self._changed[at] = np.inf, QUEUED, True

    def mark_fetched(self, pages: pa.Table, excluded: Iterable[int]) -> None:
        """Set the state of fetched URLs to fetched, and that of forbidden URLs to excluded."""
        at = self.positions(pages["id"].to_numpy())
        self.state[at], self.relevance[at] = FETCHED, pages["relevance"].to_numpy()
        self._changed[at] = True
        excluded_ids = np.array([*excluded], np.int64)
        excluded_at = self.positions(excluded_ids[self.known(excluded_ids)])
        excluded_at = excluded_at[self.state[excluded_at] != FETCHED]
        self.state[excluded_at], self._changed[excluded_at] = EXCLUDED, True

    def update_scores(self, ids: Ints, scores: Floats) -> None:
        """Set new scores of URLs that are not fetched, and queue the URLs with a finite score."""
        at = self.positions(ids)
        keep = np.isin(self.state[at], (UNFOLLOWED, QUEUED)) & ~np.isposinf(self.score[at])
        at, scores = at[keep], scores[keep]
        self._changed[at] |= self.score[at] != scores
        self.score[at] = scores
        self.state[at] = np.where(np.isfinite(scores), QUEUED, UNFOLLOWED)

    def best_queued(self, most: int) -> Ints:
        """Return the positions of the queued URLs with the best scores, the best first."""
        at = np.flatnonzero(self.state == QUEUED)
        if most < len(at):  # sorting all queued URLs would be slow
            at = at[self.score[at] >= -np.partition(-self.score[at], most - 1)[most - 1]]
        return at[np.lexsort([self.found[at], -self.score[at]])][:most]

    def changed_rows(self) -> pa.Table:
        """Return the table rows of URLs that the current round of fetches has added or changed."""
        return self.rows(np.flatnonzero(self._changed))


class RoundUrls(UrlTable):
    """The URLs that a round (batch of fetches) may fetch in a bucket (group of hosts).

    Parameters
    ----------
    known : BucketUrls
        URLs of the bucket before the round.

    Attributes
    ----------
    chosen : set of int
        Ids of the URLs selected for the round.
    first : set of int
        Ids of redirect targets that are known or in other buckets; the next round fetches them
        first.
    """

    def __init__(self, known: BucketUrls, bucket: int, buckets: int) -> None:
        super().__init__()
        self._known = known
        self._bucket = bucket, buckets
        self._new: dict[int, bool] = {}  # cache of `is_own`
        self.chosen: set[int] = set()
        self.first: set[int] = set()

    def is_own(self, number: int) -> bool:
        """Return whether the current round of fetches may fetch the URL with a given id."""
        if number in self.chosen:
            return True
        new = self._new.get(number)
        if new is None:
            url, (bucket, buckets) = self[number], self._bucket
            new = bucket_of(url, buckets) == bucket and not self._known.is_known(url)
            self._new[number] = new
        return new

    def decided(self) -> Iterator[int]:
        """Yield the ids of URLs that were fetched, queued or excluded in the current round."""
        for number in range(len(self)):
            if self.state(number) != UNFOLLOWED and self.is_own(number):
                yield number

    def set_foreign_score(self, number: int, score: float) -> None:
        """Leave a URL to later rounds of fetches, because the current round may not fetch it."""
        if score == math.inf:
            self.first.add(number)


class RoundTraps(Traps):
    """Discounts of hosts and URL patterns over all rounds.

    Parameters
    ----------
    before : callable
        Returns the discounts as they were before the round.
    """

    def __init__(self, crawl: CrawlState, before: Callable[[], Discounts]) -> None:
        super().__init__(crawl)
        self._before = before

    def reset(self) -> None:
        """Restore the discounts as they were before the round."""
        super().reset()
        self.discounts = self._before()


class Inlinks:
    """The links to the URLs of a bucket (group of hosts), grouped by linking page.

    Parameters
    ----------
    until : int
        Last round whose links count.
    """

    def __init__(self, tables: Tables, bucket: int, until: int) -> None:
        self._tables = tables
        self._names = tables.bucket_tables("evidence", bucket, until)
        parts = [tables.read(name, ["targets", "scores"]) for name in self._names]
        self._lengths = [len(part) for part in parts]
        found = pa.concat_tables(parts) if parts else EVIDENCE.empty_table()
        lists = found["targets"].combine_chunks()
        self._end = np.cumsum(lists.value_lengths().to_numpy())  # of each page's links
        self._target = lists.flatten()
        self._score = found["scores"].combine_chunks().flatten().to_numpy()

    def count(self, urls: Ints) -> Ints:
        """Return the number of known links to each URL, int64 (n,); URL ids must be ascending."""
        places = np.searchsorted(urls, self._target.take(self._links_to(urls)))
        return np.bincount(places, minlength=len(urls))

    def evidence(self, urls: Ints) -> pa.Table:
        """Return the table rows (see `EVIDENCE`) of the pages that link to given URLs.

        Only the `MAX_LINKS` links with the highest scores are used for each URL, so the cost of
        scoring a URL does not grow with the crawl.
        """
        found = self._links_to(urls)
        links, target = found.to_numpy(), self._target.take(found).to_numpy()
        order = np.lexsort([-self._score[links], target])  # stable: the first found wins ties
        links, target = links[order], target[order]
        rank = np.arange(len(links)) - np.searchsorted(target, target)
        pages = np.unique(np.searchsorted(self._end, links[rank < MAX_LINKS], side="right"))
        parts, first = [EVIDENCE.empty_table()], 0
        for name, length in zip(self._names, self._lengths, strict=True):
            here = pages[(pages >= first) & (pages < first + length)] - first
            parts += self._tables.read_rows(name, here)
            first += length
        return pa.concat_tables(parts)

    def _links_to(self, urls: Ints) -> pa.Array:
        """Return the positions of the links to some URLs, ascending."""
        # PyArrow uses a hash table; NumPy would sort all links
        return pc.indices_nonzero(pc.is_in(self._target, value_set=pa.array(urls, pa.int64())))


def load_evidence(
    context: RoundsContext,
    bucket: int,
    until: int,
    strategy: Strategy,
    *,
    rows: pa.Table,
    urls: BucketUrls,
    number: Callable[[str], int],
) -> tuple[Ints, Floats]:
    """Load known links, the relevance of fetched URLs and the trained model into a new strategy.

    Parameters
    ----------
    until : int
        Last round whose outcomes and model count.
    rows : pyarrow.Table
        Evidence of the links, see `EVIDENCE`.
    urls : BucketUrls
        URLs of the bucket that the links lead to.
    number : callable
        Returns the id of a URL for the strategy.

    Returns
    -------
    tuple of Ints and Floats
        Ids of the link targets, int64 (m,), and their scores; fetched targets may be included.
    """
    ids = np.unique(rows["targets"].combine_chunks().flatten().to_numpy())
    names = urls.urls(urls.positions(ids))
    numbers = np.array([number(name) for name in names], np.int64)
    outcomes = context.outcomes(bucket, until)

    def load_outcomes() -> None:
        if outcomes is not None:
            with context.tables.reporting_damage(outcomes[0]):
                strategy.load_outcomes(outcomes[1])

    load_outcomes()
    if not len(rows):
        return ids, np.zeros(0)
    pages = [
        StoredPage(
            url=number(row["source"]),
            seq=at,
            relevance=row["relevance"],
            targets=numbers[np.searchsorted(ids, row["targets"])],
            link_scores=np.array(row["scores"]),
            memo=row["memo"],
        )
        for at, row in enumerate(rows.to_pylist(), 1)
    ]
    found, scores = strategy.restore_pages(pages)
    relevance = urls.relevance[urls.positions(ids)]
    for known in np.flatnonzero(~np.isnan(relevance)).tolist():
        strategy.observe_earlier_fetch(int(numbers[known]), float(relevance[known]))
    load_outcomes()  # again, because the outcomes include the restored pages already
    lesson = context.load_model(strategy, until)
    if lesson is not None:
        found, scores = lesson.urls, lesson.scores
    id_of = dict(zip(numbers.tolist(), ids.tolist(), strict=True))
    kept = [at for at, each in enumerate(found.tolist()) if each in id_of]
    return np.array([id_of[int(found[at])] for at in kept], np.int64), scores[kept]
