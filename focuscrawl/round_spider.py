"""The spider ``round``: a bucket's share of a round, for `focuscrawl.rounds.live`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from focuscrawl.engine.settings_table import read_arguments
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.spiders.focused import FocusedSpider
from focuscrawl.store import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl, CrawlPlan

_OWN = ("tables", "bucket", "number")


class RoundSpider(FocusedSpider):
    """Fetches what a round has chosen of one bucket; its end writes the tables of that.

    Arguments are ``tables``, ``bucket`` and ``number`` of the round; all else is in the tables.
    """

    name = "round"
    tables: str
    bucket: str
    number: str

    @classmethod
    def read_arguments(cls, settings: BaseSettings, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of a crawl; see `_OWN` for those of this spider."""
        missing = [name for name in _OWN if not given.get(name)]
        if missing:
            raise UserError(
                f"the spider round needs {', '.join(missing)}: it is for focuscrawl rounds, which "
                "starts it; take the spider focused"
            )
        left = {name: value for name, value in given.items() if name not in _OWN}
        return read_arguments(settings, {"topic": "of the tables", **left})

    def open_crawl(self, plan: CrawlPlan) -> Crawl:
        """Open the crawl of the bucket in the round."""
        with needs("parquet", "a crawl in rounds"):
            from focuscrawl.rounds.context import context_of  # noqa: PLC0415 - few need PyArrow
            from focuscrawl.rounds.fetching import open_round  # noqa: PLC0415
        context, bucket, number = context_of(self.tables), int(self.bucket), int(self.number)
        crawl = open_round(context, bucket, number, context.applied_to(plan))
        last = max(context.last_fetch(bucket, number - 1), _last_fetch(crawl))
        if last:  # its hosts may have been asked just now
            ago = datetime.now(UTC) - datetime.fromisoformat(last)
            time.sleep(max(0.0, plan.delay - ago.total_seconds()))
        return crawl


def _last_fetch(crawl: Crawl) -> str:
    """Return when the crawl last fetched something, of a run that was cut short; else empty."""
    (row,) = crawl.store.rows(sa.select(sa.func.max(schema.page.c.fetched_at).label("at")))
    return row.at or ""
