"""What every task of a crawl needs, loaded once a process."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.assembly import check
from focuscrawl.crawl.plan import CrawlPlan
from focuscrawl.crawl.quotas import Quotas
from focuscrawl.rounds.evidence import Model
from focuscrawl.rounds.round_time import RoundTime
from focuscrawl.rounds.tables import Tables
from focuscrawl.strategies import StrategyContext, make_strategy

if TYPE_CHECKING:
    from focuscrawl.strategies import Strategy


class RoundsContext:
    """Tables, critic, web and plan of a crawl in rounds.

    Attributes
    ----------
    tables : its files
    buckets : how many there are
    folder : of the crawl that it goes on from
    settings : Scrapy's and ours, for a crawl of the live Web
    checked : see `focuscrawl.crawl.assembly.check`
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
        self.checked = check(CrawlPlan(**self._crawl), None, exists=False)
        self.time: RoundTime | None = None
        if self.checked.web is None:
            share = self.fetches / self.buckets
            self.time = RoundTime.of(self.settings, share, kept.get("seconds"))

    def applied_to(self, plan: CrawlPlan) -> CrawlPlan:
        """Return a plan that says how to fetch as one of this crawl."""
        return replace(plan, **self._crawl)

    def strategy(self) -> Strategy:
        """Return a strategy that knows nothing."""
        plan, checked = self.checked.plan, self.checked
        context = StrategyContext(checked.critic, plan.random_state, checked.web, plan.topics)
        strategy = make_strategy(plan.strategy, context, plan.options)
        strategy.self_contained = True
        return strategy

    def model(self, round_: int) -> Model | None:
        """Return what was learned after a round; None: nothing yet."""
        committed = self.tables.read_json(f"models/{round_:05}.json")
        if committed is None or not committed["version"]:
            return None
        at = int(committed["learned_in"])
        return Model(int(committed["version"]), self.tables.read_bytes(f"models/{at:05}.npz"))

    def quotas(self, bucket: int, until: int) -> Quotas:
        """Return the limits on hosts and patterns of a bucket after a round."""
        names = self.tables.of_bucket("quotas", bucket, until)
        if not names:
            return Quotas()
        ended = self.tables.read_json(f"{names[-1].replace('quotas/', 'ended/', 1)}.json")
        assert ended is not None
        return Quotas.of(self.tables.read(names[-1]).to_pylist(), ended["generosity"])

    def outcomes(self, bucket: int, until: int) -> bytes | None:
        """Return the strategy's rates of a bucket after a round; None: nothing came of it yet."""
        names = [*self.tables.of_bucket("pages", bucket, until)]
        if not names:
            return None
        last = names[-1].replace("pages/", "outcomes/", 1)
        content = self.tables.read_bytes(last)
        return content or None


@lru_cache(maxsize=1)
def context_of(root: str) -> RoundsContext:
    """Return the context of the crawl whose tables are at `root`."""
    return RoundsContext(root)
