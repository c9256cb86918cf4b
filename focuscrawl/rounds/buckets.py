"""The URLs of a bucket, what a round may fetch of them, and the strategy's evidence for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.apprentice.options import MAX_LINKS
from focuscrawl.crawl.traps import Traps
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.foundation.urls import host, identity
from focuscrawl.rounds.tables import EVIDENCE, URL, last_rows
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import StoredPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.traps import Quotas
    from focuscrawl.foundation.arrays import Bools, Floats, Ints
    from focuscrawl.rounds.context import RoundsContext
    from focuscrawl.rounds.tables import Tables
    from focuscrawl.strategies import Strategy


#: columns of a URL that never change
_FIXED = ["id", "url", "depth", "referrer", "found"]
_REFERRER = _FIXED.index("referrer")
#: rows as they are held: many have one referrer, whose text is read once
_HELD = URL.set(_REFERRER, pa.field("referrer", pa.dictionary(pa.int32(), pa.string())))


def bucket_of(url: str, buckets: int) -> int:
    """Return the bucket that a URL's host belongs to."""
    return identity(host(url)) % buckets


class BucketUrls:
    """The URLs of a bucket in columns, as they are after some round.

    Attributes
    ----------
    ids : int64 (n,), ascending
    score, state, found, relevance : float64, int8, int64, float64 (n,), see `URL`
    """

    def __init__(self, tables: Tables, bucket: int, until: int) -> None:
        names = tables.of_bucket("urls", bucket, until)
        parts = [tables.read(name, dictionaries=["referrer"]) for name in names]
        # rows stay as they were read, old ones of a URL, too: to move texts takes long
        rows = pa.concat_tables([_HELD.empty_table(), *parts])
        self.ids, self._row = last_rows(rows["id"].to_numpy())
        self.score: Floats = rows["score"].to_numpy()[self._row]
        self.state: Ints = rows["state"].to_numpy()[self._row]
        self.found: Ints = rows["found"].to_numpy()[self._row]
        self.relevance: Floats = rows["relevance"].to_numpy()[self._row]
        self._rows = rows.select(_FIXED)
        self._changed: Bools = np.zeros(len(self.ids), bool)

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, ids: Ints) -> Ints:
        """Return the places of known URLs, int64 (n,)."""
        return np.searchsorted(self.ids, ids)

    def known(self, ids: Ints) -> Bools:
        """Tell which URLs are known, bool (n,)."""
        at = np.minimum(self.places(ids), max(len(self.ids) - 1, 0))
        return self.ids[at] == ids if len(self.ids) else np.zeros(len(ids), bool)

    def knows(self, url: str) -> bool:
        """Tell whether a URL is known."""
        return bool(self.known(np.array([identity(url)], np.int64))[0])

    def rows(self, places: Ints) -> pa.Table:
        """Return rows as they are now, see `URL`."""
        rows = self._rows.take(pa.array(self._row[places]))
        for name, values in (
            ("score", pa.array(self.score[places])),
            ("state", pa.array(self.state[places])),
            ("relevance", pa.array(self.relevance[places], from_pandas=True)),
        ):
            rows = rows.append_column(name, values)
        return rows.cast(URL)

    def urls(self, places: Ints) -> list[str]:
        """Return the URLs themselves."""
        urls: list[str] = self._rows["url"].take(pa.array(self._row[places])).to_pylist()
        return urls

    # -- what a round changes --------------------------------------------------------------

    def take_names(self, names: pa.Table) -> None:
        """Take in URLs that pages link to; those that come first wait from now on."""
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
        at = self.places(first)
        at = at[np.isin(self.state[at], (UNFOLLOWED, QUEUED))]
        self.score[at], self.state[at], self._changed[at] = np.inf, QUEUED, True

    def take_fetched(self, pages: pa.Table, excluded: Iterable[int]) -> None:
        """Take in what was fetched, what may not be, and other names of what was fetched."""
        at = self.places(pages["id"].to_numpy())
        self.state[at], self.relevance[at] = FETCHED, pages["relevance"].to_numpy()
        self._changed[at] = True
        names = pages["names"].combine_chunks().flatten().to_numpy()
        gone = np.concatenate([np.array([*excluded], np.int64), names])
        gone = self.places(gone[self.known(gone)])
        gone = gone[self.state[gone] != FETCHED]
        self.state[gone], self._changed[gone] = EXCLUDED, True

    def take_scores(self, ids: Ints, scores: Floats) -> None:
        """Take in new scores; what was not followed and now is waits."""
        at = self.places(ids)
        keep = np.isin(self.state[at], (UNFOLLOWED, QUEUED)) & ~np.isposinf(self.score[at])
        at, scores = at[keep], scores[keep]
        self._changed[at] |= self.score[at] != scores
        self.score[at] = scores
        self.state[at] = np.where(np.isfinite(scores), QUEUED, UNFOLLOWED)

    def waiting(self, most: int) -> Ints:
        """Return the places of the best that waits, best first; of two as good the first found."""
        at = np.flatnonzero(self.state == QUEUED)
        if most < len(at):  # to sort all would take longer than what is done with them
            at = at[self.score[at] >= -np.partition(-self.score[at], most - 1)[most - 1]]
        return at[np.lexsort([self.found[at], -self.score[at]])][:most]

    def changed(self) -> pa.Table:
        """Return the rows that the round has changed."""
        return self.rows(np.flatnonzero(self._changed))


class RoundUrls(UrlTable):
    """A `UrlTable` that holds what was chosen of a bucket, and what is new there.

    Parameters
    ----------
    known : the URLs of the bucket

    Attributes
    ----------
    chosen : numbers of what was chosen
    first : URLs of other buckets, or known ones, that redirects lead to: they come next
    """

    def __init__(self, known: BucketUrls, bucket: int, buckets: int) -> None:
        super().__init__()
        self._known = known
        self._bucket = bucket, buckets
        self._new: dict[int, bool] = {}  # as far as it was asked
        self.chosen: set[int] = set()
        self.first: set[int] = set()

    def is_own(self, number: int) -> bool:
        """Tell whether a URL may be fetched in this round."""
        if number in self.chosen:
            return True
        new = self._new.get(number)
        if new is None:
            url, (bucket, buckets) = self[number], self._bucket
            new = bucket_of(url, buckets) == bucket and not self._known.knows(url)
            self._new[number] = new
        return new

    def decided(self) -> Iterator[int]:
        """Yield the URLs that the round has fetched, queued or struck out."""
        for number in range(len(self)):
            if self.state(number) != UNFOLLOWED and self.is_own(number):
                yield number

    def set_foreign_score(self, number: int, score: float) -> None:
        """Leave a URL to the rounds that follow."""
        if score == math.inf:
            self.first.add(number)


class RoundLimits(Traps):
    """Limits on hosts and patterns, of all rounds; what they bar is left to the next rounds.

    Parameters
    ----------
    before : makes the limits as they were before the round
    """

    def __init__(self, crawl: CrawlState, before: Callable[[], Quotas]) -> None:
        super().__init__(crawl)
        self._before = before

    def reset(self) -> None:
        """Forget the fetches of this round."""
        super().reset()
        self.quotas = self._before()

    def readmit(self) -> bool:
        """Let go of all that waits, if it is all barred."""
        frontier = self._crawl.frontier
        if not frontier.all_deferred:
            return False
        for number in frontier.deferred().tolist():
            frontier.remove(number)
        return True


class LinksInto:
    """The links into the URLs of a bucket, by the pages that have them.

    Parameters
    ----------
    until : the last round whose links count
    """

    def __init__(self, tables: Tables, bucket: int, until: int) -> None:
        self._tables = tables
        self._names = tables.of_bucket("evidence", bucket, until)
        parts = [tables.read(name, ["targets", "scores"]) for name in self._names]
        self._lengths = [len(part) for part in parts]
        found = pa.concat_tables(parts) if parts else EVIDENCE.empty_table()
        lists = found["targets"].combine_chunks()
        self._end = np.cumsum(lists.value_lengths().to_numpy())  # of each page's links
        self._target = lists.flatten()
        self._score = found["scores"].combine_chunks().flatten().to_numpy()

    def count(self, urls: Ints) -> Ints:
        """Return how many links lead to each of some URLs (ids, ascending), int64 (n,)."""
        places = np.searchsorted(urls, self._target.take(self._to(urls)))
        counts: Ints = np.bincount(places, minlength=len(urls))
        return counts

    def evidence(self, urls: Ints) -> pa.Table:
        """Return the rows (see `EVIDENCE`) of pages that link to some URLs, in the order found.

        Of a URL with many links those count that speak best for it, `MAX_LINKS` of them: so what
        a URL costs does not grow with the crawl.
        """
        found = self._to(urls)
        links, target = found.to_numpy(), self._target.take(found).to_numpy()
        order = np.lexsort([-self._score[links], target])  # stable: of equals the first found
        links, target = links[order], target[order]
        rank = np.arange(len(links)) - np.searchsorted(target, target)
        pages = np.unique(np.searchsorted(self._end, links[rank < MAX_LINKS], side="right"))
        parts, first = [EVIDENCE.empty_table()], 0
        for name, length in zip(self._names, self._lengths, strict=True):
            here = pages[(pages >= first) & (pages < first + length)] - first
            parts += self._tables.read_rows(name, here)
            first += length
        return pa.concat_tables(parts)

    def _to(self, urls: Ints) -> pa.Array:
        """Return which links lead to some URLs, ascending."""
        # by hashes: NumPy would sort all links
        return pc.indices_nonzero(pc.is_in(self._target, value_set=pa.array(urls, pa.int64())))


def recall(
    context: RoundsContext,
    bucket: int,
    until: int,
    strategy: Strategy,
    *,
    rows: pa.Table,
    urls: BucketUrls,
    number: Callable[[str], int],
) -> tuple[Ints, Floats]:
    """Let a new strategy know links, what came of their targets, and what was learned.

    Parameters
    ----------
    until : the last round whose outcomes and model count
    rows : see `EVIDENCE`
    urls : of the bucket that the links lead into
    number : of a URL, for the strategy

    Returns
    -------
    The URLs (ids) that the links lead to, int64 (m,), and their scores; of some that were
    fetched, too
    """
    ids = np.unique(rows["targets"].combine_chunks().flatten().to_numpy())
    names = urls.urls(urls.places(ids))
    numbers = np.array([number(name) for name in names], np.int64)
    outcomes = context.outcomes(bucket, until)

    def load_outcomes() -> None:
        if outcomes is not None:
            with context.tables.unpacking(outcomes[0]):
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
    relevance = urls.relevance[urls.places(ids)]
    for known in np.flatnonzero(~np.isnan(relevance)).tolist():
        strategy.observe_earlier_fetch(int(numbers[known]), float(relevance[known]))
    load_outcomes()  # these are in it
    lesson = context.take_model(strategy, until)
    if lesson is not None:
        found, scores = lesson.urls, lesson.scores
    id_of = dict(zip(numbers.tolist(), ids.tolist(), strict=True))
    kept = [at for at, each in enumerate(found.tolist()) if each in id_of]
    return np.array([id_of[int(found[at])] for at in kept], np.int64), scores[kept]
