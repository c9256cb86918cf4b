"""The spider ``round``, which fetches URLs of one group of hosts for `focuscrawl rounds`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.spiders.focused import FocusedSpider

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl_config import CrawlConfig

_ROUND_ARGUMENTS = ("tables", "bucket", "number")


class RoundSpider(FocusedSpider):
    """Fetch the URLs of one batch (round) and one group of hosts (bucket), and write tables.

    The spider arguments are ``tables``, ``bucket`` and ``number`` (the number of the round). The
    tables contain all other settings. The spider stops when its standard input is closed, which
    happens when the parent process ends.
    """

    name = "round"
    tables: str
    bucket: str
    number: str

    @classmethod
    def read_config(cls, settings: BaseSettings, given: Mapping[str, str]) -> CrawlConfig:
        """Return the configuration of the crawl from Scrapy settings and spider arguments."""
        missing = [name for name in _ROUND_ARGUMENTS if not given.get(name)]
        if missing:
            raise UserError(
                f"the spider round needs {', '.join(missing)}: `focuscrawl rounds` starts this "
                "spider; crawl with the spider focused instead"
            )
        others = {name: value for name, value in given.items() if name not in _ROUND_ARGUMENTS}
        return read_config(settings, {"topic": "of the tables", **others})

    def open_crawl(self, config: CrawlConfig) -> Crawl:
        """Open the crawl that fetches the URLs of one round in one bucket."""
        with require_extra("parquet", "a crawl in rounds"):
            from focuscrawl.foundation.processes import exit_with_stdin  # noqa: PLC0415
            from focuscrawl.rounds.context import load_context  # noqa: PLC0415 - few need PyArrow
            from focuscrawl.rounds.fetching import open_round  # noqa: PLC0415
        exit_with_stdin()
        context, bucket, number = load_context(self.tables), int(self.bucket), int(self.number)
        crawl = open_round(context, bucket, number, context.applied_to(config))
        # a killed earlier process may have sent requests to the hosts without recording them
        time.sleep(config.delay)
        return crawl
