"""Data that every task of a crawl in rounds (batches of fetches) needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from focuscrawl.completeness.stop_rules import TIME_OVER
from focuscrawl.crawl.assembly import check_config
from focuscrawl.crawl.duplicates import MAX_NAMING, Duplicates, shorten
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.traps import Discounts, NearDuplicates
from focuscrawl.crawl_config import CrawlConfig
from focuscrawl.foundation.urls import hashed_id
from focuscrawl.foundation.user_input import number
from focuscrawl.rounds.tables import KNOWN, Tables
from focuscrawl.settings import DOWNLOAD_DELAY
from focuscrawl.store.history import DIGEST
from focuscrawl.strategies import StrategyContext, make_strategy

if TYPE_CHECKING:
    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.strategies import ModelUpdate, Strategy


_MIN_SECONDS = 60.0  # of a live round; opening a bucket takes some seconds
_UNLIMITED = 1 << 62  # fetches of a host without delay
_CACHED_BUCKETS = 64  # buckets whose content ids a process caches
_CACHED_NAMES = 1000  # URLs of a bucket whose pages are cached
_MAX_SKETCHES = 2_000  # last pages of a bucket that are compared by MinHash


class CpuTimer:
    """Processor seconds by activity.

    Attributes
    ----------
    seconds : dict of str to float
        Sum of the seconds of each activity.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = process_time()

    def lap(self, what: str) -> None:
        """Add the processor time since the last call to the total time of the activity `what`."""
        now = process_time()
        self.seconds[what] = self.seconds.get(what, 0.0) + now - self._since
        self._since = now


class RoundTime(NamedTuple):
    """Time limit and fetch limit per host for a bucket of hosts in a round of fetches.

    Attributes
    ----------
    seconds : float
        Time limit, counted from the first fetch.
    fetches : int
        Most fetches of one host that the download delay allows in this time.
    """

    seconds: float
    fetches: int

    @classmethod
    def of(cls, settings: Mapping[str, Any], share: float, seconds: float | None) -> Self:
        """Return the limits of a round of fetches, computed from the download delay.

        Parameters
        ----------
        settings : mapping of str to Any
            Settings of the crawl.
        share : float
            Mean number of fetches of a bucket.
        seconds : float or None
            Time limit of the plan; None: the time to fetch `share` pages of one host, or a minute
            if
            that is longer.
        """
        written = settings.get("DOWNLOAD_DELAY", DOWNLOAD_DELAY)
        delay = number().parse("setting DOWNLOAD_DELAY", written)
        seconds = max(_MIN_SECONDS, share * delay) if seconds is None else seconds
        return cls(seconds, max(1, int(seconds / delay)) if delay > 0.0 else _UNLIMITED)


class RoundTimeout(Part):
    """Stops the fetches of a bucket (group of hosts) after the time limit of the round."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started_at: float | None = None
        self._is_over = False

    def poll(self, now: float) -> bool:
        """Return whether the time limit is over; time is measured from the first call."""
        self._started_at = now if self._started_at is None else self._started_at
        self._is_over = now - self._started_at >= self._seconds
        return self._is_over

    def stop_reason(self) -> str | None:
        """Return a stop reason if the time limit is over, else None."""
        return TIME_OVER if self._is_over else None


class RoundsContext:
    """Tables, critic, web and configuration of a crawl in rounds.

    Attributes
    ----------
    buckets : int
        Number of buckets.
    fetches : int
        Number of fetches of a round.
    folder : str or None
        Folder of the earlier crawl that this crawl continues.
    settings : dict of str to Any
        Settings of Scrapy and focuscrawl for a live crawl.
    time : RoundTime or None
        Limits of a round (batch of fetches) on the live Web; None in a replay.
    """

    def __init__(self, root: str) -> None:
        self.tables = Tables(root)
        kept = self.tables.read_json("plan.json")
        assert kept is not None
        self.buckets = int(kept["buckets"])
        self.fetches = int(kept["fetches"])
        self.folder: str | None = kept.get("folder")
        self.settings: dict[str, Any] = kept["settings"]
        self._crawl: dict[str, Any] = kept["crawl"]
        self.checked = check_config(CrawlConfig(**self._crawl), None, exists=False)
        config, checked = self.checked.config, self.checked
        self._strategy_context = StrategyContext(
            checked.critic, config.random_state, checked.web, config.topics
        )
        self.time: RoundTime | None = None
        if self.checked.web is None:
            share = self.fetches / self.buckets
            self.time = RoundTime.of(self.settings, share, kept.get("seconds"))

    def applied_to(self, config: CrawlConfig) -> CrawlConfig:
        """Return a copy of `config` with the stored arguments of the crawl."""
        return config.with_values(**self._crawl)

    def strategy(self) -> Strategy:
        """Return a new instance of the crawl's strategy, without any observed fetches."""
        config = self.checked.config
        strategy = make_strategy(config.strategy, self._strategy_context, config.options)
        strategy.self_contained = True
        return strategy

    def load_model(self, strategy: Strategy, round_: int) -> ModelUpdate | None:
        """Load the latest model trained up to a given round of fetches into a strategy."""
        committed = self.tables.read_json(f"models/{round_:05}.json", "version", "learned_in")
        if committed is None or not committed["version"]:
            return None
        name = f"models/{int(committed['learned_in']):05}.npz"
        state = self.tables.read_bytes(name)
        with self.tables.reporting_damage(name):
            lesson = strategy.load_trained(int(committed["version"]), state)
        strategy.adopt(lesson)
        return lesson

    def discounts(self, bucket: int, until: int) -> Discounts:
        """Return the discounts of hosts and URL patterns of a bucket after a round."""
        names = self.tables.bucket_tables("discounts", bucket, until)
        return Discounts.from_rows(self.tables.read(names[-1]).to_pylist() if names else ())

    def outcomes(self, bucket: int, until: int) -> tuple[str, bytes] | None:
        """Return the file with the rates of relevant fetches per directory and URL pattern.

        The result is the file name and the content of the file, or None if no rates are stored.
        """
        names = self.tables.bucket_tables("pages", bucket, until)
        if not names:
            return None
        name = names[-1].replace("pages/", "outcomes/", 1)
        content = self.tables.read_bytes(name)
        return (name, content) if content else None


@lru_cache(maxsize=1)
def load_context(root: str) -> RoundsContext:
    """Return the context of the crawl with the tables at `root`."""
    return RoundsContext(root)


def content_id(digest: bytes) -> int:
    """Return a 63-bit id of a page's content, computed from the content digest."""
    return int.from_bytes(digest[:8], "little") >> 1


def content_bucket(content: int, buckets: int) -> int:
    """Return the number of the bucket (group of hosts) that stores a content id."""
    return content % buckets


class BucketDuplicates(Duplicates):
    """Detects duplicates of pages that any earlier round (batch of fetches) has fetched.

    The URL and the canonical URL of a page are on one host, so they are stored in the bucket
    (group of hosts) of this host. The function `content_bucket` divides content ids among the
    buckets. Content ids are read only when they are needed. Equal pages that are fetched for
    different buckets in the same round (batch of fetches) are not detected.
    """

    def __init__(self, context: RoundsContext, bucket: int, until: int, urls: UrlTable) -> None:
        super().__init__()
        self._context = context
        self._until = until
        self._urls = urls
        names = _names(context.tables, bucket, until)
        # templates name one URL on many pages
        self._pages_before = lru_cache(_CACHED_NAMES)(lambda id_: names.pages(id_, MAX_NAMING))

    def find_same_bytes(self, digest: bytes) -> int | None:
        """Return the URL id of an earlier page whose content has a given digest, or None."""
        found = super().find_same_bytes(digest)
        if found is not None:
            return found
        content = content_id(digest)
        bucket = content_bucket(content, self._context.buckets)
        contents = _contents(self._context.tables.root, bucket, self._until)
        same = contents.pages(content, 1)
        return self._urls.add(same[0]["url"], 0, None) if same else None

    def _pages_of(self, url: str) -> Iterator[tuple[int, bytes]]:
        yield from super()._pages_of(url)
        for page in self._pages_before(hashed_id(url)):
            yield self._urls.add(page["url"], 0, None), shorten(page["digest"][DIGEST:])


class _PageIndex:
    """Finds the pages of an id in tables; only the ids are in memory.

    Parameters
    ----------
    names : sequence of str
        Names of the tables.
    lengths : sequence of int
        Number of rows of each table.
    ids : int64 (n,)
    rows : int64 (n,)
        Row of each id in the concatenated tables.
    """

    def __init__(
        self, tables: Tables, names: Sequence[str], lengths: Sequence[int], ids: Ints, rows: Ints
    ) -> None:
        self._tables = tables
        self._names = names
        self._starts = np.cumsum([0, *lengths])
        order = np.argsort(ids, kind="stable")
        self._ids, self._rows = ids[order], rows[order]

    def pages(self, id_: int, most: int) -> list[dict[str, Any]]:
        """Return the table rows of the first pages that were fetched with a given content id."""
        start, end = np.searchsorted(self._ids, id_), np.searchsorted(self._ids, id_, "right")
        rows = np.sort(self._rows[start : min(end, start + most)])
        tables = np.searchsorted(self._starts, rows, side="right") - 1
        return [
            page
            for table in np.unique(tables).tolist()
            for part in self._tables.read_rows(
                self._names[table], rows[tables == table] - self._starts[table]
            )
            for page in part.to_pylist()
        ]


def _names(tables: Tables, bucket: int, until: int) -> _PageIndex:
    """Return an index of the pages of a bucket by the ids of their URLs."""
    names = tables.bucket_tables("known", bucket, until)
    parts = [tables.read(name, ["names"]) for name in names]
    rows = pa.concat_tables([KNOWN.empty_table().select(["names"]), *parts])
    lists = rows["names"].combine_chunks()
    lengths = lists.value_lengths().to_numpy()
    row, ids = np.repeat(np.arange(len(lists)), lengths), lists.flatten().to_numpy()
    # a page is first among the pages with its URL
    is_own = np.isin(np.arange(len(ids)), np.cumsum(lengths) - lengths)
    order = np.argsort(~is_own, kind="stable")
    return _PageIndex(tables, names, [*map(len, parts)], ids[order], row[order])


@lru_cache(maxsize=_CACHED_BUCKETS)
def _contents(root: str, bucket: int, until: int) -> _PageIndex:
    """Return an index of the pages by the content ids of a bucket, cached for the process."""
    tables = Tables(root)
    names = tables.bucket_tables("contents", bucket, until)
    parts = [tables.read(name, ["content"])["content"].to_numpy() for name in names]
    ids = np.concatenate([np.zeros(0, np.int64), *parts])
    return _PageIndex(tables, names, [*map(len, parts)], ids, np.arange(len(ids)))


class BucketNearDuplicates(NearDuplicates):
    """Detects near-duplicates of pages that this round or an earlier round (batch) has fetched."""

    def __init__(self, crawl: CrawlState, tables: Tables, bucket: int, until: int) -> None:
        super().__init__(crawl)
        found: list[tuple[str, bytes]] = []  # oldest first
        for name in reversed(tables.bucket_tables("pages", bucket, until)):
            rows = tables.read(name, ["url", "digest", "duplicate_of"]).to_pylist()
            signatures = [
                (row["url"], row["digest"][DIGEST:])
                for row in rows
                if row["digest"] is not None and row["duplicate_of"] is None
            ]
            found = [each for each in signatures if each[1]] + found
            if len(found) >= _MAX_SKETCHES:
                break
        self._last = found[-_MAX_SKETCHES:]

    def reset(self) -> None:
        """Forget the pages of the current round of fetches; keep the pages of earlier rounds."""
        super().reset()
        for url, signature in self._last:
            self.find_or_add(self._crawl.urls.add(url, 0, None), signature)
