"""Small crawls in rounds, and processes that are killed, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from focuscrawl.crawl import CrawlConfig
from focuscrawl.report.measures import load_pages
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.context import load_context
from focuscrawl.rounds.folders import write_crawl_folder
from focuscrawl.rounds.tables import Tables
from focuscrawl.rounds.tasks import LocalMaster

SEEDS = "models/demo/seeds.csv"


def plan(strategy: str, budget: int, size: float, buckets: int, **more: Any) -> RoundsPlan:
    return RoundsPlan(
        crawl=CrawlConfig(
            topic="/Sports/Cycling",
            seeds=SEEDS,
            web="demo",
            strategy=strategy,
            budget=budget,
            **more,
        ),
        round=size,
        buckets=buckets,
    )


def crawl(
    given: RoundsPlan, root: Path, workers: int = 1, folder: Path | None = None
) -> dict[str, Any]:
    load_context.cache_clear()  # as in a process of its own
    master = LocalMaster(workers)
    try:
        return crawl_in_rounds(given, str(root), master, lambda _: None, folder=folder)
    finally:
        master.close()


def fetches(root: Path, folder: Path) -> list[tuple[str, float]]:
    """Return URL and relevance of all fetches, in their order."""
    write_crawl_folder(str(root), folder)
    pages = load_pages(str(folder))
    return list(zip(pages["url"], pages["relevance"].round(6), strict=True))


class KilledError(Exception):
    """Stands for the end of a process, in the middle of whatever it does."""


class Mortal(Tables):
    """Tables of a process that is killed when it writes for the n-th time."""

    left = 0

    def write_bytes(self, name: str, content: Any) -> None:
        type(self).left -= 1
        if type(self).left < 0:
            raise KilledError
        super().write_bytes(name, content)
