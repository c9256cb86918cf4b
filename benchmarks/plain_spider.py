"""A plain breadth-first Scrapy spider with `LinkExtractor`, for comparison.

``python -m scrapy runspider benchmarks/plain_spider.py -a web=... -a seeds=URL,... -a budget=N``
reads the same recording through the same download handler as a focused replay, follows only links
to recorded pages, and prints its counts as JSON.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

import scrapy
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from focuscrawl.engine.component import bind_crawl
from focuscrawl.foundation.urls import normalize
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.crawl import Crawl

_REPLAY = "focuscrawl.downloadhandlers.replay.ReplayDownloadHandler"


class PlainSpider(scrapy.Spider):
    name = "plain"
    custom_settings = {  # noqa: RUF012
        # Scrapy's documented way to crawl breadth-first
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
        "DOWNLOAD_HANDLERS": {"http": _REPLAY, "https": _REPLAY},
        "DOWNLOADER_MIDDLEWARES": {},
        "EXTENSIONS": {},
        "ITEM_PIPELINES": {},
        "ROBOTSTXT_OBEY": False,
        "AUTOTHROTTLE_ENABLED": False,
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "HTTPERROR_ALLOW_ALL": True,
        "REDIRECT_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "WARNING",
    }

    def __init__(self, web: str, seeds: str, budget: str) -> None:
        super().__init__()
        self.web = open_web(web)
        self.seeds = seeds.split(",")
        self.left = int(budget)
        self.times: list[float] = []
        self.bytes = 0
        self.extractor = LinkExtractor()

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        # the download handler asks its crawl for no more
        config = SimpleNamespace(browser=False)
        bind_crawl(crawler, cast("Crawl", SimpleNamespace(web=spider.web, config=config)))
        return spider

    async def start(self) -> AsyncIterator[Any]:
        for url in self.known(self.seeds):
            yield scrapy.Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        if not self.left:
            return  # was under way when the budget was spent
        self.left -= 1
        self.times.append(perf_counter())
        self.bytes += len(response.body)
        yield {"url": response.url, "status": response.status}
        if not self.left:
            raise CloseSpider("budget")
        if isinstance(response, HtmlResponse):
            links = self.extractor.extract_links(response)
            for url in self.known([link.url for link in links]):
                yield scrapy.Request(url)

    def known(self, urls: list[str]) -> list[str]:
        """What the recording has, as it spells it: the replay is closed."""
        normal = [normalize(url) for url in urls]
        found = self.web.resolve([url for url in normal if url is not None])
        return [url for url in found if url is not None]

    def closed(self, reason: str) -> None:
        seconds = self.times[-1] - self.times[0]
        print(json.dumps({"pages": len(self.times), "seconds": seconds, "bytes": self.bytes}))
