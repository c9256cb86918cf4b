"""After a round's fetches: a bucket takes in what links to it, and says what is best there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from focuscrawl.crawl.quotas import Quotas
from focuscrawl.crawl.visit import RELEVANT
from focuscrawl.rounds.bucket_urls import BucketUrls
from focuscrawl.rounds.evidence import evidence_for, recall
from focuscrawl.rounds.tables import CHOSEN, EVIDENCE, NAME, URL
from focuscrawl.store.schema import FETCHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.rounds.context import RoundsContext

_HOT = 4  # times the fetches of a round: so many of the best links are scored anew after it
_LEAST = 10_000  # at least so many


def take_in(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Take in links, score what they change and what is best; done already, it does nothing."""
    tables = context.tables
    name = f"{bucket:03}/{round_:05}"
    if not tables.has(f"candidates/{name}"):
        _take_in(context, bucket, round_)
    return {"bucket": bucket}


def _take_in(context: RoundsContext, bucket: int, round_: int) -> None:
    tables, before = context.tables, round_ - 1
    name = f"{bucket:03}/{round_:05}"
    urls = BucketUrls(tables, bucket, before)
    names = [tables.read(each) for each in tables.incoming("names", bucket, round_)]
    urls.take_names(pa.concat_tables(names) if names else NAME.empty_table())
    links = [tables.read(each) for each in tables.incoming("links", bucket, round_)]
    found = pa.concat_tables(links) if links else EVIDENCE.empty_table()
    if links:
        tables.add("evidence", bucket, round_, found)
    if tables.has(f"pages/{name}"):
        excluded = tables.read_json(f"excluded/{name}")
        assert excluded is not None
        urls.take_fetched(tables.read(f"pages/{name}"), excluded["ids"])
    quotas = _quotas(context, bucket, round_)
    strategy = context.strategy()
    touched = np.unique(found["targets"].combine_chunks().flatten().to_numpy())
    touched = touched[urls.state[urls.places(touched)] != FETCHED]
    hot = np.zeros(0, np.int64)
    if strategy.learns:
        hot = urls.ids[urls.waiting()[: max(_LEAST, _HOT * context.fetches)]]
    wanted = np.union1d(touched, hot)
    ids, scores = recall(
        strategy,
        evidence_for(tables, bucket, round_, wanted),
        urls,
        _Numbers(),
        outcomes=context.outcomes(bucket, round_),
        model=context.model(round_),
    )
    of_wanted = np.isin(ids, wanted)
    urls.take_scores(ids[of_wanted], scores[of_wanted])
    tables.add("urls", bucket, round_, pa.Table.from_pylist(urls.changed(), URL))
    best = [*_candidates(urls, quotas, context.fetches)]
    rows = urls.rows(np.array(best, np.int64))
    tables.write(f"candidates/{name}", CHOSEN, [row | {"bucket": bucket} for row in rows])


class _Numbers(dict[str, int]):
    """Numbers names from 0 in the order asked for."""

    def __call__(self, name: str) -> int:
        return self.setdefault(name, len(self))


def _quotas(context: RoundsContext, bucket: int, round_: int) -> Quotas:
    """Return the limits on hosts and patterns after all that was fetched of a bucket."""
    quotas, columns = Quotas(), ["url", "referrer", "relevance", "duplicate_of"]
    for name in context.tables.of_bucket("pages", bucket, round_):
        for row in context.tables.read(name, columns).to_pylist():
            repeats = row["duplicate_of"] is not None
            earns = row["relevance"] > RELEVANT and not repeats
            for _ in quotas.count(row["url"], row["referrer"], earns=earns, repeats=repeats):
                pass
    return quotas


def _candidates(urls: BucketUrls, quotas: Quotas, most: int) -> Iterator[int]:
    """Yield the places of the best that waits and has not had its share; else of what has.

    As in a crawl of one process, limits are doubled when nothing else is left.
    """
    waiting = urls.waiting()
    names = urls.urls(waiting)
    admitted = 0
    while len(waiting) and not admitted:
        for at, url in zip(waiting.tolist(), names, strict=True):
            if quotas.barred(url) is None:
                admitted += 1
                yield at
                if admitted == most:
                    return
        quotas.raise_all()
