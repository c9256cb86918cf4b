"""The numbers of a crawl for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from focuscrawl import __version__
from focuscrawl.crawl.stopping import Completeness
from focuscrawl.engine.component import context_of
from focuscrawl.engine.private import is_paused
from focuscrawl.foundation.urls import without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl

_STATUS = "downloader/response_status_count/"


class CrawlCollector:
    """Reads a crawl for each request; docs/how-to/deploy.md explains the numbers."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = context_of(crawler).crawl

    def collect(self) -> Iterator[Metric]:
        """Yield the numbers as they are now."""
        crawl, config = self._crawl, self._crawl.config
        about = {
            "topic": config.topic,
            "strategy": config.strategy,
            "web": without_credentials(config.web or "live"),
            "crawl_dir": str(config.crawl_dir),
            "version": __version__,
        }
        yield InfoMetricFamily("focuscrawl_crawl", "What is crawled", about)
        yield from estimates_of(crawl)
        # of the crawl, not of this run: a restart is no reset
        yield CounterMetricFamily("focuscrawl_fetches", "Fetches recorded", crawl.fetched)
        yield CounterMetricFamily(
            "focuscrawl_relevance", "Sum of the relevance of all fetches", crawl.relevance_sum
        )
        yield CounterMetricFamily(
            "focuscrawl_overtaken",
            "Fetches during which a much better link waited for its host",
            crawl.overtaken,
        )
        for name, text, value in (
            ("budget", "Fetches the crawl may make; 0: no limit", config.budget),
            ("frontier_urls", "URLs that wait", len(crawl.frontier)),
            ("in_flight", "Requests under way", len(crawl.in_flight)),
            ("known_urls", "URLs the crawl has seen", len(crawl.urls)),
            ("model_version", "Lessons learned", crawl.model_version),
            ("waiting", "1 while something else holds it back", int(crawl.is_waiting)),
            ("paused", "1 while a person has paused the crawl", int(is_paused(self._crawler))),
        ):
            yield GaugeMetricFamily(f"focuscrawl_{name}", text, value)
        yield from self._downloads()

    def _downloads(self) -> Iterator[Metric]:
        stats = dict(self._crawler.stats.get_stats())  # a copy: the crawl goes on meanwhile
        answers = CounterMetricFamily(
            "focuscrawl_responses",
            "Answers of this run, of pages and robots.txt",
            labels=["status"],
        )
        for name, count in stats.items():
            if name.startswith(_STATUS):
                answers.add_metric([name.removeprefix(_STATUS)], count)
        yield answers
        for name, text, key in (
            ("retries", "Requests made again, in this run", "retry/count"),
            ("excluded_urls", "Not fetched for robots.txt, in this run", "focuscrawl/excluded"),
            ("downloaded_bytes", "As sent, in this run", "downloader/response_bytes"),
            ("errors_logged", "Lines of level ERROR, in this run", "log_count/ERROR"),
        ):
            yield CounterMetricFamily(f"focuscrawl_{name}", text, stats.get(key, 0))


def estimates_of(crawl: Crawl) -> Iterator[Metric]:
    """Yield the numbers of the last estimate of recall, if there is one yet."""
    completeness = crawl.part(Completeness)
    latest = None if completeness is None else completeness.latest
    if latest is None:
        return
    low, high = latest.interval
    found, beyond = latest.discovered, latest.undiscovered
    for name, text, value in (
        ("recall", "Relevant pages here, of those in reach, by estimate", latest.recall),
        ("recall_low", "Lower end of its 90 % interval", low),
        ("recall_high", "Upper end of its 90 % interval", high),
        ("relevant_discovered", "Relevant pages expected of URLs that wait", found),
        ("relevant_undiscovered", "Relevant pages expected beyond them", beyond),
        ("next_harvest", "Harvest expected of the next fetches", latest.next_harvest),
    ):
        yield GaugeMetricFamily(f"focuscrawl_{name}", text, value)
