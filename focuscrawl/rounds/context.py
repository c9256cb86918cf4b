"""What every task of a crawl in rounds needs, loaded once a process; pages known already."""

from __future__ import annotations

from functools import lru_cache
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from focuscrawl.completeness.stop_rules import TIME
from focuscrawl.crawl.assembly import check_config
from focuscrawl.crawl.duplicates import Duplicates
from focuscrawl.crawl.part import Part
from focuscrawl.crawl.traps import NearDuplicates, Quotas
from focuscrawl.crawl_config import CrawlConfig
from focuscrawl.foundation.urls import identity
from focuscrawl.foundation.user_input import number
from focuscrawl.rounds.tables import KNOWN, Tables
from focuscrawl.settings import DOWNLOAD_DELAY
from focuscrawl.store.history import DIGEST
from focuscrawl.strategies import StrategyContext, make_strategy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.crawl.state import CrawlState
    from focuscrawl.crawl.url_table import UrlTable
    from focuscrawl.foundation.arrays import Ints
    from focuscrawl.strategies import ModelUpdate, Strategy


_LEAST = 60.0  # seconds; in less, opening a bucket would take much of them
_ALL = 1 << 62  # fetches of a host that need not wait
_HELD = 64  # buckets whose contents a process holds
_REMEMBERED = 2_000  # pages of a bucket whose sketches are compared


class Laps:
    """Seconds of processor by what was done in them.

    Attributes
    ----------
    seconds : by what was done; what was done several times is added up
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = process_time()

    def end(self, what: str) -> None:
        """Record what was done since the last call, or since the start."""
        now = process_time()
        self.seconds[what] = self.seconds.get(what, 0.0) + now - self._since
        self._since = now


class RoundTime(NamedTuple):
    """The time that a bucket's share of a live round takes at most.

    Attributes
    ----------
    seconds : from its first fetch
    fetches : of one host that politeness allows in it: so many are chosen at most
    """

    seconds: float
    fetches: int

    @classmethod
    def of(cls, settings: Mapping[str, Any], share: float, seconds: float | None) -> Self:
        """Return the time of a round.

        Parameters
        ----------
        settings : of the crawl
        share : fetches of a bucket, on average
        seconds : of the plan; None: as long as it takes to fetch `share` pages of one host,
            or a minute
        """
        written = settings.get("DOWNLOAD_DELAY", DOWNLOAD_DELAY)
        delay = number().read("setting DOWNLOAD_DELAY", written)
        seconds = max(_LEAST, share * delay) if seconds is None else seconds
        return cls(seconds, max(1, int(seconds / delay)) if delay > 0.0 else _ALL)


class RoundEnd(Part):
    """Ends a bucket's fetches when the time of the round is over; the rest is for later rounds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began: float | None = None
        self._over = False

    def poll(self, now: float) -> bool:
        """Look at the clock, which runs from the first call."""
        self._began = now if self._began is None else self._began
        self._over = now - self._began >= self._seconds
        return self._over

    def stop_reason(self) -> str | None:
        """Return the reason if the time is over."""
        return TIME if self._over else None


class RoundsContext:
    """Tables, critic, web and configuration of a crawl in rounds.

    Attributes
    ----------
    tables : its files
    buckets : how many there are
    folder : of the crawl that it takes over
    settings : Scrapy's and ours, for a crawl of the live Web
    checked : see `focuscrawl.crawl.assembly.check_config`
    time : of a round; None for a replay, which takes none
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
        self.time: RoundTime | None = None
        if self.checked.web is None:
            share = self.fetches / self.buckets
            self.time = RoundTime.of(self.settings, share, kept.get("seconds"))

    def applied_to(self, config: CrawlConfig) -> CrawlConfig:
        """Return a configuration of how to fetch, for this crawl."""
        return config.with_values(**self._crawl)

    def strategy(self) -> Strategy:
        """Return a strategy that knows nothing."""
        config, checked = self.checked.config, self.checked
        context = StrategyContext(checked.critic, config.random_state, checked.web, config.topics)
        strategy = make_strategy(config.strategy, context, config.options)
        strategy.self_contained = True
        return strategy

    def take_model(self, strategy: Strategy, round_: int) -> ModelUpdate | None:
        """Let a strategy score by what was learned by a round; None: nothing yet."""
        committed = self.tables.read_json(f"models/{round_:05}.json", "version", "learned_in")
        if committed is None or not committed["version"]:
            return None
        name = f"models/{int(committed['learned_in']):05}.npz"
        state = self.tables.read_bytes(name)
        with self.tables.unpacking(name):
            lesson = strategy.load_trained(int(committed["version"]), state)
        strategy.adopt(lesson)
        return lesson

    def quotas(self, bucket: int, until: int) -> Quotas:
        """Return the limits on hosts and patterns of a bucket after a round."""
        names = self.tables.of_bucket("quotas", bucket, until)
        if not names:
            return Quotas()
        name = names[-1].replace("quotas/", "ended/", 1)
        ended = self.tables.read_json(f"{name}.json", "generosity")
        assert ended is not None
        return Quotas.from_rows(self.tables.read(names[-1]).to_pylist(), ended["generosity"])

    def outcomes(self, bucket: int, until: int) -> tuple[str, bytes] | None:
        """Return the strategy's rates of a bucket after a round, with the name of their file.

        None: nothing came of it yet.
        """
        names = self.tables.of_bucket("pages", bucket, until)
        if not names:
            return None
        name = names[-1].replace("pages/", "outcomes/", 1)
        content = self.tables.read_bytes(name)
        return (name, content) if content else None


@lru_cache(maxsize=1)
def context_of(root: str) -> RoundsContext:
    """Return the context of the crawl whose tables are at `root`."""
    return RoundsContext(root)


def content_id(digest: bytes) -> int:
    """Return a number of a page's content, 63 bits of its digest."""
    return int.from_bytes(digest[:8], "little") >> 1


def keeper_of(content: int, buckets: int) -> int:
    """Return the bucket that keeps what is known of a content, whatever host it is from."""
    return content % buckets


class KnownPages(Duplicates):
    """`Duplicates` that knows the pages of all earlier rounds by their content and their names.

    A page is known by URLs on its own host alone, so those of its bucket are enough. A content may
    be of any bucket: it is kept by `keeper_of` it, and read when it is asked for. Two pages of one
    round in different buckets do not know of each other: both count.
    """

    def __init__(self, context: RoundsContext, bucket: int, until: int, urls: UrlTable) -> None:
        super().__init__()
        self._context = context
        self._until = until
        self._names = _names(context.tables, bucket, until)
        self._urls = urls

    def find(self, digest: bytes, names: list[str]) -> int | None:
        """Return the number of the earlier page; see `Duplicates.find`."""
        found = super().find(digest, names)
        if found is not None:
            return found
        known = [self.find_by_url(name) for name in names]
        content = content_id(digest)
        keeper = keeper_of(content, self._context.buckets)
        contents = _contents(self._context.tables.root, keeper, self._until)
        same = self._number(contents.get(content))
        return next((each for each in [*known, same] if each is not None), None)

    def find_by_url(self, name: str) -> int | None:
        """Return the number of the fetched page that stands for the URL `name`."""
        found = super().find_by_url(name)
        return self._number(self._names.get(identity(name))) if found is None else found

    def _number(self, url: str | None) -> int | None:
        return None if url is None else self._urls.add(url, 0, None)


class _Index:
    """URLs of pages in tables, by ids; held are the ids.

    Parameters
    ----------
    names : of the tables
    lengths : rows of each
    ids : int64 (n,)
    rows : int64 (n,), ascending, of all tables together; of an id the first one counts
    """

    def __init__(
        self, tables: Tables, names: Sequence[str], lengths: Sequence[int], ids: Ints, rows: Ints
    ) -> None:
        self._tables = tables
        self._names = names
        self._begin = np.cumsum([0, *lengths])
        self._ids, first = np.unique(ids, return_index=True)
        self._rows = rows[first]

    def get(self, id_: int) -> str | None:
        """Return the URL of a page; None if there is none."""
        at = int(np.searchsorted(self._ids, id_))
        if at == len(self._ids) or self._ids[at] != id_:
            return None
        row = self._rows[at]
        part = int(np.searchsorted(self._begin, row, side="right")) - 1
        here = np.array([row - self._begin[part]], np.int64)
        (found,) = self._tables.read_rows(self._names[part], here)
        url: str = found["url"][0].as_py()
        return url


def _names(tables: Tables, bucket: int, until: int) -> _Index:
    """Return the pages of a bucket by the URLs that they are known by."""
    names = tables.of_bucket("known", bucket, until)
    parts = [tables.read(name, ["names"]) for name in names]
    lists = pa.concat_tables([KNOWN.empty_table().select(["names"]), *parts])["names"]
    row = np.repeat(np.arange(len(lists)), lists.combine_chunks().value_lengths().to_numpy())
    ids = lists.combine_chunks().flatten().to_numpy()
    return _Index(tables, names, [*map(len, parts)], ids, row)


@lru_cache(maxsize=_HELD)
def _contents(root: str, bucket: int, until: int) -> _Index:
    """Return the pages whose contents a bucket keeps; tasks of a process share them."""
    tables = Tables(root)
    names = tables.of_bucket("contents", bucket, until)
    parts = [tables.read(name, ["content"])["content"].to_numpy() for name in names]
    ids = np.concatenate([np.zeros(0, np.int64), *parts])
    return _Index(tables, names, [*map(len, parts)], ids, np.arange(len(ids)))


class NearPages(NearDuplicates):
    """`NearDuplicates` that starts with the last pages of a bucket."""

    def __init__(self, crawl: CrawlState, tables: Tables, bucket: int, until: int) -> None:
        super().__init__(crawl)
        found: list[tuple[str, bytes]] = []  # in the order fetched
        for name in reversed(tables.of_bucket("pages", bucket, until)):
            rows = tables.read(name, ["url", "digest", "duplicate_of"]).to_pylist()
            sketches = [
                (row["url"], row["digest"][DIGEST:])
                for row in rows
                if row["digest"] is not None and row["duplicate_of"] is None
            ]
            found = [each for each in sketches if each[1]] + found
            if len(found) >= _REMEMBERED:
                break
        self._last = found[-_REMEMBERED:]

    def reset(self) -> None:
        """Forget the pages of this round."""
        super().reset()
        for url, minhash in self._last:
            self.remember(self._crawl.urls.add(url, 0, None), minhash)
