"""A strategy as it would be by now, for some URLs of a bucket: made anew from the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.apprentice.options import MAX_LINKS
from focuscrawl.rounds.tables import EVIDENCE
from focuscrawl.strategies import RecalledPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.foundation.arrays import Floats, Ints
    from focuscrawl.rounds.bucket_urls import BucketUrls
    from focuscrawl.rounds.tables import Tables
    from focuscrawl.strategies import Strategy


class Model(NamedTuple):
    """What was learned, as `Strategy.train` returned it, and its version."""

    version: int
    state: bytes


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
    strategy: Strategy,
    rows: pa.Table,
    urls: BucketUrls,
    number: Callable[[str], int],
    *,
    outcomes: bytes | None,
    model: Model | None,
) -> tuple[Ints, Floats]:
    """Let a strategy made anew know links, what came of their targets, and what was learned.

    Parameters
    ----------
    rows : see `EVIDENCE`
    urls : of the bucket that the links lead into
    number : of a URL, for the strategy

    Returns
    -------
    The URLs (ids) that the links lead to, int64 (m,), and their scores; of some that were
    fetched, too
    """
    if not len(rows):
        if outcomes is not None:
            strategy.take_outcomes(outcomes)
        return np.zeros(0, np.int64), np.zeros(0)
    lists = rows["targets"].to_pylist()
    ids = np.unique(np.concatenate(lists).astype(np.int64))
    names = urls.urls(urls.places(ids))
    numbers = np.array([number(name) for name in names], np.int64)
    if outcomes is not None:
        strategy.take_outcomes(outcomes)
    pages = [
        RecalledPage(
            url=number(row["source"]),
            seq=at,
            relevance=row["relevance"],
            targets=numbers[np.searchsorted(ids, row["targets"])],
            link_scores=np.array(row["scores"]),
            memo=row["memo"],
        )
        for at, row in enumerate(rows.to_pylist(), 1)
    ]
    found, scores = strategy.recall_all(pages)
    relevance = urls.relevance[urls.places(ids)]
    for known in np.flatnonzero(~np.isnan(relevance)).tolist():
        strategy.fetched_before(int(numbers[known]), float(relevance[known]))
    if outcomes is not None:
        strategy.take_outcomes(outcomes)  # these are in it
    if model is not None:
        lesson = strategy.take_up(model.version, model.state)
        strategy.adopt(lesson)
        found, scores = lesson.urls, lesson.scores
    id_of = dict(zip(numbers.tolist(), ids.tolist(), strict=True))
    kept = [at for at, each in enumerate(found.tolist()) if each in id_of]
    return np.array([id_of[int(found[at])] for at in kept], np.int64), scores[kept]
