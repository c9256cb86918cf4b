"""The metrics of a crawl in the format of Prometheus; docs/how-to/deploy.md explains them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from focuscrawl import __version__
from focuscrawl.crawl.stopping import Completeness
from focuscrawl.engine.component import context_of
from focuscrawl.engine.private import is_paused
from focuscrawl.foundation.urls import without_credentials

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl

_STATUS = "downloader/response_status_count/"


class CrawlCollector:
    """Reads the current state of a crawl whenever Prometheus requests the metrics."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = context_of(crawler).crawl

    def collect(self) -> Iterator[Metric]:
        """Yield the current values of all metrics."""
        crawl, config = self._crawl, self._crawl.config
        about = {
            "topic": config.topic,
            "strategy": config.strategy,
            "web": without_credentials(config.web or "live"),
            "crawl_dir": str(config.crawl_dir),
            "version": __version__,
        }
        yield InfoMetricFamily("focuscrawl_crawl", "Topic, strategy and web of the crawl", about)
        yield from recall_metrics(crawl)
        # counted over all runs of the crawl, so that a restart is no reset of the counter
        yield CounterMetricFamily("focuscrawl_fetches", "Fetches recorded", crawl.fetched)
        yield CounterMetricFamily(
            "focuscrawl_relevance", "Sum of the relevance of all fetches", crawl.relevance_sum
        )
        yield CounterMetricFamily(
            "focuscrawl_overtaken",
            "Fetches while a much better link waited for its busy host",
            crawl.overtaken,
        )
        for name, text, value in (
            ("budget", "Budget of the crawl in fetches; 0: no limit", config.budget),
            ("frontier_urls", "Queued URLs", len(crawl.frontier)),
            ("in_flight", "Requests in flight", len(crawl.in_flight)),
            ("known_urls", "URLs seen by the crawl", len(crawl.urls)),
            ("model_version", "Number of trained models", crawl.model_version),
            ("waiting", "1 while the crawl waits for other work", int(crawl.is_waiting)),
            ("paused", "1 while the crawl is paused by a user", int(is_paused(self._crawler))),
        ):
            yield GaugeMetricFamily(f"focuscrawl_{name}", text, value)
        yield from self._downloads()

    def _downloads(self) -> Iterator[Metric]:
        stats = dict(self._crawler.stats.get_stats())  # a copy, because another thread reads it
        answers = CounterMetricFamily(
            "focuscrawl_responses",
            "Responses of this run, of pages and robots.txt",
            labels=["status"],
        )
        for name, count in stats.items():
            if name.startswith(_STATUS):
                answers.add_metric([name.removeprefix(_STATUS)], count)
        yield answers
        for name, text, key in (
            ("retries", "Retried requests of this run", "retry/count"),
            ("excluded_urls", "URLs of this run that robots.txt forbids", "focuscrawl/excluded"),
            ("downloaded_bytes", "Bytes received in this run", "downloader/response_bytes"),
            ("errors_logged", "Log lines of level ERROR in this run", "log_count/ERROR"),
        ):
            yield CounterMetricFamily(f"focuscrawl_{name}", text, stats.get(key, 0))


def recall_metrics(crawl: Crawl) -> Iterator[Metric]:
    """Yield the metrics of the target pages and of the latest recall estimate, if they exist."""
    completeness = crawl.part(Completeness)
    counts = None if completeness is None else completeness.found
    if counts is not None:
        for name, text, value in (
            ("targets", "Target pages", counts.targets),
            ("targets_found", "Target pages that the crawl has fetched", counts.fetched),
            ("targets_met", "Target pages fetched or known by links", counts.met),
            ("recall_certified", "Recall certified by target pages, 95 %", counts.recall),
        ):
            yield GaugeMetricFamily(f"focuscrawl_{name}", text, value)
    latest = None if completeness is None else completeness.latest
    if latest is None:
        return
    low, high = latest.interval
    found, beyond = latest.discovered, latest.undiscovered
    for name, text, value in (
        ("recall", "Estimated recall of the relevant pages within reach", latest.recall),
        ("recall_low", "Lower end of the 90 % interval of the recall", low),
        ("recall_high", "Upper end of the 90 % interval of the recall", high),
        ("relevant_discovered", "Relevant pages expected among the queued URLs", found),
        ("relevant_undiscovered", "Relevant pages expected among URLs not found yet", beyond),
        ("next_harvest", "Expected harvest rate of the next fetches", latest.next_harvest),
    ):
        yield GaugeMetricFamily(f"focuscrawl_{name}", text, value)
