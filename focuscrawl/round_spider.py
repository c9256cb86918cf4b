"""The spider ``round``, which `focuscrawl.rounds.live_rounds` runs for each bucket of a round."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.spiders.focused import FocusedSpider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl_config import CrawlConfig

_ROUND_ARGUMENTS = ("tables", "bucket", "number")


class RoundSpider(FocusedSpider):
    """Fetches the URLs that a round has chosen from one bucket, and writes their tables.

    The arguments are ``tables``, ``bucket`` and ``number`` of the round. The spider stops at the
    end of standard input, because the process that started it has then died.
    """

    name = "round"
    tables: str
    bucket: str
    number: str

    @classmethod
    def read_config(cls, settings: BaseSettings, given: Mapping[str, str]) -> CrawlConfig:
        """Return the configuration of the crawl."""
        missing = [name for name in _ROUND_ARGUMENTS if not given.get(name)]
        if missing:
            raise UserError(
                f"the spider round needs the arguments {', '.join(missing)}: run `focuscrawl "
                "rounds`, which starts it, or crawl with the spider focused"
            )
        left = {name: value for name, value in given.items() if name not in _ROUND_ARGUMENTS}
        return read_config(settings, {"topic": "of the tables", **left})

    def open_crawl(self, config: CrawlConfig) -> Crawl:
        """Open the crawl of the bucket in the round."""
        with needs("parquet", "a crawl in rounds"):
            from focuscrawl.foundation.processes import end_with_stdin  # noqa: PLC0415
            from focuscrawl.rounds.context import context_of  # noqa: PLC0415 - few need PyArrow
            from focuscrawl.rounds.fetching import open_round  # noqa: PLC0415
        end_with_stdin()
        context, bucket, number = context_of(self.tables), int(self.bucket), int(self.number)
        crawl = open_round(context, bucket, number, context.applied_to(config))
        # a killed process may have sent requests to these hosts that are not recorded
        time.sleep(config.delay)
        return crawl
