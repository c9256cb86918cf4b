"""Adds the new links of a round to each bucket (group of hosts), and trains the model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.foundation.urls import host
from focuscrawl.frontier import halve_scores
from focuscrawl.rounds.buckets import BucketUrls, Inlinks, load_evidence
from focuscrawl.rounds.context import CpuTimer
from focuscrawl.rounds.tables import EVIDENCE, KNOWN, NAME
from focuscrawl.store.schema import QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from focuscrawl.crawl.traps import Discounts
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.rounds.context import RoundsContext


_MIN_RESCORED = 500  # best links of a bucket that are always re-scored after a round
_MAX_SHARE = 8  # largest share of a bucket in a round, as a multiple of the mean share
_EVIDENCE_GROUP = 4_000  # pages whose evidence is read at once, about 6 MB
_KNOWN_GROUP = 10_000  # pages whose URLs are read at once to find a duplicate
_MIN_EXAMPLES = 10  # judged URLs for a training


def update_bucket(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Add the new links of a round to a bucket (group of hosts), and re-score its URLs.

    If the task has already finished, the function only reads the result. The result contains the
    processor time for ``read`` (known URLs), ``join`` (new links), ``score``, ``rank`` (queued
    URLs) and ``write``.
    """
    tables, name, timer = context.tables, f"{bucket:03}/{round_:05}", CpuTimer()
    if not tables.has(f"candidates/{name}"):
        _add_links(context, bucket, round_, timer)
    counts = tables.read_json(f"counts/{name}.json", "known")
    assert counts is not None
    return {"bucket": bucket, "laps": timer.seconds, **counts}


def _add_links(context: RoundsContext, bucket: int, round_: int, timer: CpuTimer) -> None:
    tables, name = context.tables, f"{bucket:03}/{round_:05}"
    urls = BucketUrls(tables, bucket, round_ - 1)
    timer.lap("read")
    names = [tables.read(each) for each in tables.incoming("names", bucket, round_)]
    urls.add_urls(pa.concat_tables([NAME.empty_table(), *names]))
    links = [tables.read(each) for each in tables.incoming("links", bucket, round_)]
    found = pa.concat_tables([EVIDENCE.empty_table(), *links])
    timer.lap("join")
    if links:
        tables.add("evidence", bucket, round_, found, group=_EVIDENCE_GROUP)
    timer.lap("write")
    _add_pages(context, bucket, round_, urls)
    timer.lap("join")
    strategy = context.strategy()
    inlinks = Inlinks(tables, bucket, round_)
    timer.lap("read")
    touched = find_urls_to_rescore(found, inlinks, urls)
    timer.lap("join")
    best_ids = np.zeros(0, np.int64)
    if strategy.learns:
        most = max(_MIN_RESCORED, context.fetches // context.buckets)
        best_ids = urls.ids[urls.best_queued(most)]
    timer.lap("rank")
    wanted = np.union1d(touched, best_ids)
    numbers: dict[str, int] = {}
    ids, scores = load_evidence(
        context,
        bucket,
        round_,
        strategy,
        rows=inlinks.evidence(wanted),
        urls=urls,
        number=lambda url: numbers.setdefault(url, len(numbers)),
    )
    of_wanted = np.isin(ids, wanted)
    urls.update_scores(ids[of_wanted], scores[of_wanted])
    timer.lap("score")
    tables.add("urls", bucket, round_, urls.changed_rows(), by_id=True)
    tables.write_json(f"counts/{name}.json", {"known": len(urls)})
    timer.lap("write")
    share = context.fetches // context.buckets + 1
    most = min(context.fetches, _MAX_SHARE * share)
    of_host = most if context.time is None else context.time.fetches
    best, halvings = _candidates(urls, context.discounts(bucket, round_), most, of_host)
    rows = urls.rows(np.array(best, np.int64)).drop_columns(["relevance"])
    for column, values in (
        ("bucket", np.full(len(rows), bucket, np.int32)),
        ("halvings", halvings),
    ):
        rows = rows.append_column(column, pa.array(values))
    tables.write_table(f"candidates/{name}", rows)
    timer.lap("rank")


def _add_pages(context: RoundsContext, bucket: int, round_: int, urls: BucketUrls) -> None:
    """Add the fetches of the bucket, and the content digests of all buckets."""
    tables, name = context.tables, f"{bucket:03}/{round_:05}"
    if tables.has(f"pages/{name}"):
        ended = tables.read_json(f"ended/{name}.json", "excluded")
        assert ended is not None
        pages = tables.read(f"pages/{name}")
        urls.mark_fetched(pages, ended["excluded"])
        pages = pages.filter(pc.is_valid(pages["content"])).select(KNOWN.names)
        tables.add("known", bucket, round_, pages, group=_KNOWN_GROUP)
    contents = [tables.read(each) for each in tables.incoming("digests", bucket, round_)]
    if contents:
        tables.add("contents", bucket, round_, pa.concat_tables(contents), group=_KNOWN_GROUP)


def find_urls_to_rescore(found: pa.Table, inlinks: Inlinks, urls: BucketUrls) -> Ints:
    """Return the ids of URLs that need new scores after new links were found, int64 (n,).

    A URL gets a new score when the number of links to the URL has doubled, or when a new link has
    a higher score than the URL. Because of this rule, a URL with n links causes at most 2n reads
    of links in all rounds together.

    Parameters
    ----------
    found : pyarrow.Table
        Rows of the new links, see `EVIDENCE`.
    inlinks : Inlinks
        All links into the bucket, including the new links.
    """
    targets, scores = (
        found[name].combine_chunks().flatten().to_numpy() for name in ("targets", "scores")
    )
    ids = np.unique(targets)
    ids = ids[np.isin(urls.state[urls.positions(ids)], (UNFOLLOWED, QUEUED))]
    queued = np.isin(targets, ids)
    place = np.searchsorted(ids, targets[queued])
    best = np.full(len(ids), -np.inf)
    np.maximum.at(best, place, scores[queued])
    new, known = np.bincount(place, minlength=len(ids)), inlinks.count(ids)
    before = np.nan_to_num(urls.score[urls.positions(ids)], nan=-np.inf)
    doubled = np.frexp(known)[1] > np.frexp(known - new)[1]
    touched: Ints = ids[doubled | (best > before)]
    return touched


def _candidates(
    urls: BucketUrls, discounts: Discounts, most: int, of_host: int
) -> tuple[list[int], Ints]:
    """Return positions of the queued URLs with the best discounted scores, and their halvings.

    Parameters
    ----------
    most : int
        Number of URLs that the caller needs.
    of_host : int
        Largest number of URLs of one host.
    """
    some = most
    while True:
        queued = urls.best_queued(some)
        names = urls.urls(queued)
        halvings = np.array([discounts.halvings(name) for name in names], np.int64)
        halvings[urls.score[queued] == np.inf] = 0
        scores = halve_scores(urls.score[queued], halvings)
        order = np.lexsort([urls.found[queued], -scores])
        yielded: Counter[str] = Counter()
        best: list[int] = []
        for at in order.tolist():
            name = host(names[at])
            yielded[name] += 1
            if yielded[name] <= of_host:
                best.append(at)
        # other URLs have scores of at most the last one
        is_sure = len(best) >= most and scores[best[most - 1]] >= urls.score[queued[-1]]
        if is_sure or len(queued) < some:
            return queued[best[:most]].tolist(), halvings[best[:most]]
        some *= 2


def learn(context: RoundsContext, round_: int) -> dict[str, Any]:
    """Train the strategy's model on the judged URLs of the latest rounds (batches of fetches).

    Returns
    -------
    dict
        The ``version`` of the model, the round of its training (``learned_in``), and ``oldest``,
        the
        first round whose judged URLs this or a later training needs.
    """
    tables = context.tables
    done = tables.read_json(f"models/{round_:05}.json")
    if done is not None:
        return done
    before = tables.read_json(f"models/{round_ - 1:05}.json", "version", "learned_in")
    model = (before or {"version": 0, "learned_in": 0}) | {"oldest": round_}
    strategy = context.strategy()
    if strategy.learns:
        context.load_model(strategy, round_ - 1)
        pool = strategy.new_pool()
        names = _latest(context, round_, pool.options.memory)
        model["oldest"] = int(names[0].rpartition("/")[2]) if names else round_
        for name in names:
            judged = tables.read_bytes(name)
            if judged:
                with tables.reporting_damage(name):
                    pool.add(judged)
        if len(pool) >= _MIN_EXAMPLES:
            state, instances, metrics = strategy.train_on_pool(pool)
            tables.write_bytes(f"models/{round_:05}.npz", state)
            model |= {"version": model["version"] + 1, "learned_in": round_}
            model |= {"instances": instances, "metrics": metrics}
    tables.write_json(f"models/{round_:05}.json", model)
    return model


def _latest(context: RoundsContext, round_: int, memory: int) -> list[str]:
    """Return the latest files of judged URLs of at least `memory` fetches, oldest first."""
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
