"""A strategy as it would be by now, for some URLs of a bucket: made anew from the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

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


def links_into(tables: Tables, bucket: int, until: int, urls: Ints) -> Ints:
    """Return how many links are known into each of a bucket's URLs, int64 (n,).

    Parameters
    ----------
    urls : int64 (n,), ids, ascending
    """
    counts = np.zeros(len(urls), np.int64)
    for name in tables.of_bucket("evidence", bucket, until):
        counts += count_of(tables.read(name, ["targets"])["targets"], urls)
    return counts


def count_of(targets: pa.ChunkedArray, urls: Ints) -> Ints:
    """Return how often each of some ids, ascending, is in lists, int64 (n,)."""
    found = targets.combine_chunks().flatten().to_numpy()
    places = np.searchsorted(urls, found[np.isin(found, urls)])
    counts: Ints = np.bincount(places, minlength=len(urls))
    return counts


def evidence_for(tables: Tables, bucket: int, until: int, wanted: Ints) -> pa.Table:
    """Return the rows of all pages that link to some of a bucket's URLs, in the order found."""

    def leading_there(targets: pa.ChunkedArray) -> Ints:
        lists = targets.combine_chunks()
        page = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
        return np.unique(page[np.isin(lists.flatten().to_numpy(), wanted)])

    parts = [
        rows
        for name in tables.of_bucket("evidence", bucket, until)
        for rows in tables.read_where(name, "targets", leading_there)
    ]
    return pa.concat_tables(parts) if parts else EVIDENCE.empty_table()


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
        strategy.hear(int(numbers[known]), float(relevance[known]))
    if outcomes is not None:
        strategy.take_outcomes(outcomes)  # these have been heard, and are in it
    if model is not None:
        lesson = strategy.take_up(model.version, model.state, 0)
        strategy.adopt(lesson)
        found, scores = lesson.urls, lesson.scores
    id_of = dict(zip(numbers.tolist(), ids.tolist(), strict=True))
    kept = [at for at, each in enumerate(found.tolist()) if each in id_of]
    return np.array([id_of[int(found[at])] for at in kept], np.int64), scores[kept]
