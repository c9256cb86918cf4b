"""A round's fetches in one bucket: a crawl of what was chosen, and of what that leads to.

As many are fetched as were chosen of the bucket. A URL that no round knew before, of a host of the
bucket, may take the place of one that was chosen: it comes when its score is the best. So a round
of many fetches goes on from what it finds, with the model of the round before.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focuscrawl.crawl import Crawl, CrawlFolder
from focuscrawl.crawl.parts.stopping import StopRules
from focuscrawl.crawl.replay import replay
from focuscrawl.crawl.restore import restore
from focuscrawl.frontier import Frontier
from focuscrawl.rounds.bucket_urls import BucketUrls
from focuscrawl.rounds.evidence import LinksInto, recall
from focuscrawl.rounds.known_pages import EarlierPages, KnownPages
from focuscrawl.rounds.laps import Laps
from focuscrawl.rounds.live import fetch_live
from focuscrawl.rounds.near_pages import NearPages
from focuscrawl.rounds.output import Output
from focuscrawl.rounds.round_time import RoundEnd
from focuscrawl.rounds.round_urls import RoundLimits, RoundUrls

if TYPE_CHECKING:
    from focuscrawl.crawl import CrawlPlan
    from focuscrawl.crawl.quotas import Quotas
    from focuscrawl.rounds.context import RoundsContext


def fetch(context: RoundsContext, bucket: int, round_: int) -> dict[str, Any]:
    """Fetch what was chosen of a bucket; return what came of it, in numbers.

    Done already, it does nothing. Of a replay its time goes to: ``open``, to read what is known
    and score what was chosen, and ``crawl``.
    """
    tables, name, laps = context.tables, f"pages/{bucket:03}/{round_:05}", Laps()
    if not tables.has(name):
        if context.checked.web is None:
            fetch_live(context, bucket, round_)
        else:
            with tempfile.TemporaryDirectory() as scratch:
                plan = replace(context.checked.plan, crawl_dir=scratch)
                crawl = open_round(context, bucket, round_, plan)
                laps.end("open")
                replay(crawl)
            laps.end("crawl")
    pages = tables.read(name, ["relevance"])["relevance"].to_numpy()
    ended = tables.read_json(f"ended/{bucket:03}/{round_:05}.json")
    assert ended is not None
    done = {"bucket": bucket, "fetched": len(pages), "relevance": float(pages.sum())}
    return done | {"excluded": len(ended["excluded"]), "laps": laps.seconds}


def open_round(context: RoundsContext, bucket: int, round_: int, plan: CrawlPlan) -> Crawl:
    """Open the crawl of a bucket in a round; its end writes the tables, see `Output`.

    Parameters
    ----------
    plan : how to fetch; what and how much is the round's business. In its `crawl_dir` what was
        fetched is kept meanwhile; a crawl that is there is gone on with
    """
    tables, checked, before = context.tables, context.checked, round_ - 1
    all_chosen = tables.read(f"chosen/{round_:05}").to_pylist()
    chosen = [row for row in all_chosen if row["bucket"] == bucket]
    known = BucketUrls(tables, bucket, before)
    urls = RoundUrls(known, bucket, context.buckets)
    assert plan.crawl_dir is not None
    folder = CrawlFolder(Path(plan.crawl_dir))
    crawl = Crawl(
        critic=checked.critic,
        strategy=context.strategy(),
        frontier=Frontier(plan.per_host, plan.delay),
        store=folder.open_store(checked.identity, checked.about),
        folder=folder,
        web=checked.web,
        plan=replace(plan, budget=len(chosen)),
        within=checked.within,
        urls=urls,
        duplicates=KnownPages(EarlierPages(context, bucket, before), urls),
    )

    def limits_before() -> Quotas:
        quotas = context.quotas(bucket, before)
        while any(quotas.barred(row["url"]) for row in chosen if row["score"] != np.inf):
            quotas.raise_all()  # as when they were named
        return quotas

    limits = RoundLimits(crawl, limits_before)
    output = Output(crawl, context, (bucket, round_), urls, limits)
    near = [NearPages(crawl, tables, bucket, before)] if plan.near_duplicates else []
    ends = [] if context.time is None else [RoundEnd(context.time.seconds)]
    crawl.parts = [*ends, StopRules(crawl), *near, limits, output]
    restore(crawl)
    for row in chosen:
        referrer = None if row["referrer"] is None else urls.add(row["referrer"], 0, None)
        urls.chosen.add(urls.add(row["url"], row["depth"], referrer))
    ids = np.array([row["id"] for row in chosen], np.int64)
    recall(
        crawl.strategy,
        LinksInto(tables, bucket, before).evidence(ids),
        known,
        lambda url: urls.add(url, 0, None),
        outcomes=context.outcomes(bucket, before),
        model=context.model(before),
    )
    for row in chosen:
        number = urls.get(row["url"])
        assert number is not None
        crawl.queue(number, row["score"])
    return crawl
