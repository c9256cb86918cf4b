"""After a round's fetches: a bucket takes in the links into it; learning from all buckets."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.foundation.urls import host
from focuscrawl.rounds.buckets import BucketUrls, LinksInto, recall
from focuscrawl.rounds.context import Laps
from focuscrawl.rounds.tables import EVIDENCE, KNOWN, NAME
from focuscrawl.store.schema import QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from focuscrawl.crawl.traps import Quotas
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.rounds.context import RoundsContext


_LEAST = 500  # of the best links of a bucket at least so many are scored anew after a round
_SHARE = 8  # times an even share of a round: so much a bucket may have, others wait for it
_PAGES = 4_000  # whose evidence is read at once, some 6 MB
_COPIED = 10_000  # pages whose URLs are read at once when one of them has a copy
_ENOUGH = 10  # judged URLs that can be learned from


def take_in(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Take in links, score what they change and what is best; return how many URLs are known.

    Done already, it does nothing. Its laps are: to ``read`` what is known, ``join`` what is new
    to it, ``score``, ``rank`` what waits, ``write``.
    """
    tables, name, laps = context.tables, f"{bucket:03}/{round_:05}", Laps()
    if not tables.has(f"candidates/{name}"):
        _take_in(context, bucket, round_, laps)
    counts = tables.read_json(f"counts/{name}.json", "known")
    assert counts is not None
    return {"bucket": bucket, "laps": laps.seconds, **counts}


def _take_in(context: RoundsContext, bucket: int, round_: int, laps: Laps) -> None:
    tables, name = context.tables, f"{bucket:03}/{round_:05}"
    urls = BucketUrls(tables, bucket, round_ - 1)
    laps.end("read")
    names = [tables.read(each) for each in tables.incoming("names", bucket, round_)]
    urls.take_names(pa.concat_tables([NAME.empty_table(), *names]))
    links = [tables.read(each) for each in tables.incoming("links", bucket, round_)]
    found = pa.concat_tables([EVIDENCE.empty_table(), *links])
    laps.end("join")
    if links:
        tables.add("evidence", bucket, round_, found, group=_PAGES)
    laps.end("write")
    _take_pages(context, bucket, round_, urls)
    laps.end("join")
    strategy = context.strategy()
    into = LinksInto(tables, bucket, round_)
    laps.end("read")
    touched = touched_by(found, into, urls)
    laps.end("join")
    hot = np.zeros(0, np.int64)
    if strategy.learns:
        most = max(_LEAST, context.fetches // context.buckets)
        hot = urls.ids[urls.waiting(most)]
    laps.end("rank")
    wanted = np.union1d(touched, hot)
    numbers: dict[str, int] = {}
    ids, scores = recall(
        context,
        bucket,
        round_,
        strategy,
        rows=into.evidence(wanted),
        urls=urls,
        number=lambda url: numbers.setdefault(url, len(numbers)),
    )
    of_wanted = np.isin(ids, wanted)
    urls.take_scores(ids[of_wanted], scores[of_wanted])
    laps.end("score")
    tables.add("urls", bucket, round_, urls.changed(), by_id=True)
    tables.write_json(f"counts/{name}.json", {"known": len(urls)})
    laps.end("write")
    quotas, barred = context.quotas(bucket, round_), False
    share = context.fetches // context.buckets + 1
    most = min(context.fetches, _SHARE * share)
    of_host = most if context.time is None else context.time.fetches
    best = [*islice(_candidates(urls, quotas, most, of_host), most)]
    while not best and len(urls.waiting(1)):
        quotas.raise_limits()
        best, barred = [*islice(_candidates(urls, quotas, most, of_host), most)], True
    rows = urls.rows(np.array(best, np.int64)).drop_columns(["relevance"])
    for column, value in (("bucket", np.int32(bucket)), ("barred", np.bool_(barred))):
        rows = rows.append_column(column, pa.array(np.full(len(rows), value)))
    tables.write_table(f"candidates/{name}", rows)
    laps.end("rank")


def _take_pages(context: RoundsContext, bucket: int, round_: int, urls: BucketUrls) -> None:
    """Take in what the bucket fetched, and digests of what all buckets did."""
    tables, name = context.tables, f"{bucket:03}/{round_:05}"
    if tables.has(f"pages/{name}"):
        ended = tables.read_json(f"ended/{name}.json", "excluded")
        assert ended is not None
        pages = tables.read(f"pages/{name}")
        urls.take_fetched(pages, ended["excluded"])
        pages = pages.filter(pc.is_valid(pages["content"])).select(KNOWN.names)
        tables.add("known", bucket, round_, pages, group=_COPIED)
    contents = [tables.read(each) for each in tables.incoming("digests", bucket, round_)]
    if contents:
        tables.add("contents", bucket, round_, pa.concat_tables(contents), group=_COPIED)


def touched_by(found: pa.Table, into: LinksInto, urls: BucketUrls) -> Ints:
    """Return the ids of URLs that links found in a round change the scores of.

    Parameters
    ----------
    found : the rows of these links, see `EVIDENCE`
    into : all links into the bucket, these among them

    Notes
    -----
    These are URLs whose links have doubled, and those with a new link that scores above all known
    ones: so what is read of a URL in all rounds is twice its links, not their square.
    """
    targets, scores = (
        found[name].combine_chunks().flatten().to_numpy() for name in ("targets", "scores")
    )
    ids = np.unique(targets)
    ids = ids[np.isin(urls.state[urls.places(ids)], (UNFOLLOWED, QUEUED))]
    waiting = np.isin(targets, ids)
    place = np.searchsorted(ids, targets[waiting])
    best = np.full(len(ids), -np.inf)
    np.maximum.at(best, place, scores[waiting])
    new, known = np.bincount(place, minlength=len(ids)), into.count(ids)
    before = np.nan_to_num(urls.score[urls.places(ids)], nan=-np.inf)
    doubled = np.frexp(known)[1] > np.frexp(known - new)[1]
    touched: Ints = ids[doubled | (best > before)]
    return touched


def _candidates(urls: BucketUrls, quotas: Quotas, most: int, of_host: int) -> Iterator[int]:
    """Yield the places of what waits, best first, whose host and pattern have not had their share.

    Parameters
    ----------
    most : so many will be asked for
    of_host : so many of a host at most
    """
    looked_at, some = 0, most
    yielded: Counter[str] = Counter()
    while len(waiting := urls.waiting(some)[looked_at:]):
        for at, url in zip(waiting.tolist(), urls.urls(waiting), strict=True):
            if yielded[host(url)] < of_host and quotas.closed_quota(url) is None:
                yielded[host(url)] += 1
                yield at
        looked_at, some = some, 2 * some


def learn(context: RoundsContext, round_: int) -> dict[str, Any]:
    """Learn from what the latest rounds have judged.

    Done already, it does nothing.

    Returns
    -------
    Of the model its ``version`` and the round it was ``learned_in``; ``oldest``, the first round
    that was learned from, now or in any round to come
    """
    tables = context.tables
    done = tables.read_json(f"models/{round_:05}.json")
    if done is not None:
        return done
    before = tables.read_json(f"models/{round_ - 1:05}.json", "version", "learned_in")
    model = (before or {"version": 0, "learned_in": 0}) | {"oldest": round_}
    strategy = context.strategy()
    if strategy.learns:
        context.take_model(strategy, round_ - 1)
        pool = strategy.new_pool()
        names = _latest(context, round_, pool.options.memory)
        model["oldest"] = int(names[0].rpartition("/")[2]) if names else round_
        for name in names:
            judged = tables.read_bytes(name)
            if judged:
                with tables.unpacking(name):
                    pool.add(judged)
        if len(pool) >= _ENOUGH:
            state, instances, metrics = strategy.train_on_pool(pool)
            tables.write_bytes(f"models/{round_:05}.npz", state)
            model |= {"version": model["version"] + 1, "learned_in": round_}
            model |= {"instances": instances, "metrics": metrics}
    tables.write_json(f"models/{round_:05}.json", model)
    return model


def _latest(context: RoundsContext, round_: int, memory: int) -> list[str]:
    """Return the latest files of judged URLs, oldest first, of at least `memory` fetches."""
    names: list[str] = []
    fetched = 0
    for each in range(round_, 0, -1):
        committed = context.tables.read_json(f"fetched/{each:05}.json", "buckets")
        for bucket, n in sorted((committed or {"buckets": {}})["buckets"].items(), reverse=True):
            names.insert(0, f"judged/{int(bucket):03}/{each:05}")
            fetched += n
        if fetched >= memory:
            break
    return names
