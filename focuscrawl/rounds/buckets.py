"""The URLs, links, and discounts of a bucket (group of hosts), and its update after a round."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from focuscrawl.apprentice.options import MAX_LINKS
from focuscrawl.crawl.traps import Traps
from focuscrawl.crawl.url_table import UrlTable
from focuscrawl.foundation.urls import hashed_id, host
from focuscrawl.frontier import halve_scores
from focuscrawl.rounds.context import CpuTimer
from focuscrawl.rounds.tables import EVIDENCE, KNOWN, NAME, URL, last_rows
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED
from focuscrawl.strategies import StoredPage

if TYPE_CHECKING:
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
        id_ = hashed_id(url)
        at = int(np.searchsorted(self.ids, id_))
        return at < len(self.ids) and bool(self.ids[at] == id_)

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
    lists = rows["targets"].combine_chunks()
    ids, place = np.unique(lists.flatten().to_numpy(), return_inverse=True)
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
    ends = np.cumsum(lists.value_lengths().to_numpy())[:-1]
    columns = zip(
        map(number, rows["source"].to_pylist()),
        range(1, len(rows) + 1),
        rows["relevance"].to_pylist(),
        np.split(numbers[place], ends),
        np.split(rows["scores"].combine_chunks().flatten().to_numpy(), ends),
        rows["memo"].to_pylist(),
        strict=True,
    )
    found, scores = strategy.restore_pages([StoredPage(*column) for column in columns])
    relevance = urls.relevance[urls.positions(ids)]
    for known in np.flatnonzero(~np.isnan(relevance)).tolist():
        strategy.observe_earlier_fetch(int(numbers[known]), float(relevance[known]))
    load_outcomes()  # again, because the outcomes include the restored pages already
    lesson = context.load_model(strategy, until)
    if lesson is not None:
        found, scores = lesson.urls, lesson.scores
    order = np.argsort(numbers)
    at = order[np.searchsorted(numbers[order[:-1]], found)]
    kept = numbers[at] == found
    return ids[at[kept]], scores[kept]


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
            # with more threads, the last bits would depend on the number of processors
            with threadpool_limits(1, user_api="blas"):
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
