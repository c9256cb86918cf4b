"""What Prometheus is told of one of several workers, beside what it is told of the crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from focuscrawl.workers import SharedCrawl


def worker_metrics(crawl: SharedCrawl) -> Iterator[Metric]:
    """Yield the numbers of a worker, from its memory; see docs/deploy.md for what they mean."""
    state, taken_in = crawl.courier.state, crawl.taken_in
    about = {"store": str(crawl.plan.store), "worker": str(crawl.me)}
    yield InfoMetricFamily("focuscrawl_worker", "Which of several workers", about)
    yield CounterMetricFamily(
        "focuscrawl_worker_fetches", "Fetches of this worker", crawl.own_fetches
    )
    yield CounterMetricFamily(
        "focuscrawl_worker_relevance",
        "Sum of the relevance of its fetches",
        crawl.own_relevance,
    )
    for name, text, value in (
        ("shards", "Parts of the hosts that are crawled here", len(crawl.held)),
        ("lease_seconds", "Until the lease runs out, unless renewed", crawl.courier.lease_left),
        ("unread", "Rows of evidence since what was taken in", state.posted - (taken_in or 0)),
        ("trains", "1 if it is the one that trains", int(state.trains)),
    ):
        yield GaugeMetricFamily(f"focuscrawl_worker_{name}", text, value)
