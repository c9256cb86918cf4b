"""Reports in log, store and progress bar when a crawl's harvest rate or speed has fallen."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from twisted.internet.threads import deferToThread

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.diagnosis import ALARM, SpeedMonitor
from focuscrawl.engine.component import Component
from focuscrawl.engine.private import close_spider
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.report.crawl_plan import start_page_warnings, start_pages
from focuscrawl.report.outcomes import HARVEST_FELL
from focuscrawl.report.summary import is_page, replay_harvest_monitor
from focuscrawl.search.queries import propose_queries, read_titles

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import PageVisit
    from focuscrawl.critic.protocol import Critic
    from focuscrawl.search.queries import JudgedTitle

logger = logging.getLogger(__name__)

_FIRST_FETCHES = 10  # at least one of these fetches should be relevant


class Alarm(Component):
    """Monitors the harvest rate and, in live crawls, relevant pages per minute [F99 section 2].

    See `focuscrawl.diagnosis`.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._critic: Critic | None = None
        self._best = ""  # most relevant page of the first fetches
        self._best_relevance = -1.0
        self._speed_monitor = None if self._crawl.config.web else SpeedMonitor()

    def spider_opened(self) -> None:
        """Restore the monitors from the fetches of a resumed crawl."""
        self._critic = self._crawl.critic
        self._monitor, _ = replay_harvest_monitor(self._crawl.store)

    def page_visited(self, visit: PageVisit) -> None:
        """Monitor a fetch; after a change of the topic, process all earlier fetches again."""
        if self._critic is not self._crawl.critic:
            self._crawl.flush()
            self.spider_opened()
            return
        self._check_first_fetches(visit)
        self._check_speed(visit)
        urls = self._crawl.urls
        url_id = urls.get(visit.url)
        assert url_id is not None
        change = self._monitor.add_fetch(
            url_id,
            None if visit.referrer is None else urls.get(visit.referrer),
            relevance=visit.relevance,
            topic=visit.topic if isinstance(visit.topic, str) else None,  # pipelines may set it
            judged=is_page(visit.status, visit.error, visit.duplicate_of),
            busy_host=visit.better_host,
        )
        if change is None:
            return
        alarm = self._monitor.alarm
        if change == ALARM and alarm is not None:
            self._crawl.record_event(ALARM, alarm.describe())
            logger.warning("%s", alarm.describe())
            self._crawler.stats.set_value("focuscrawl/alarm", alarm.short())
            if self._crawl.config.stop_at_alarm:
                close_spider(self._crawler, HARVEST_FELL)
            else:
                self._crawl.flush()
                deferToThread(_log_queries, read_titles(self._crawl.store))
        else:
            self._crawl.record_event(change, f"harvest {self._crawl.harvest_rate:.2f} overall")
            self._crawler.stats.set_value("focuscrawl/alarm", "")

    def _check_speed(self, visit: PageVisit) -> None:
        """Report when relevant pages arrive more slowly than before, and when that ends."""
        if self._speed_monitor is None:
            return
        change = self._speed_monitor.add_fetch(time.monotonic(), visit.relevance, host(visit.url))
        if change is None:
            return
        slowdown = self._speed_monitor.slowdown
        detail = "" if slowdown is None else slowdown.describe()
        self._crawl.record_event(change, detail)
        if slowdown is not None:
            logger.warning("%s", detail)
        shown = "" if slowdown is None else slowdown.short()
        self._crawler.stats.set_value("focuscrawl/slow", shown)

    def _check_first_fetches(self, visit: PageVisit) -> None:
        """Warn if pages were fetched and none of the first is relevant."""
        if visit.seq > _FIRST_FETCHES:
            return
        if visit.relevance > self._best_relevance:
            self._best, self._best_relevance = visit.url, visit.relevance
        if (
            visit.seq == _FIRST_FETCHES
            and self._crawl.succeeded
            and self._best_relevance <= RELEVANT
        ):
            logger.warning(
                "None of the first %d fetches is relevant; the highest relevance is %.2f (%s). "
                "Check the start pages: run `focuscrawl plan` with the same arguments",
                _FIRST_FETCHES,
                self._best_relevance,
                self._best,
            )
            self._crawl.flush()
            examples = [url for url in map(normalize, self._crawl.critic.examples) if url]
            for warning in start_page_warnings(start_pages(self._crawl.store), examples):
                logger.warning("%s", warning)


def _log_queries(pages: list[JudgedTitle]) -> None:
    """Log queries for a search engine that find start pages; slow, so a thread runs it."""
    queries = propose_queries(pages)
    if queries:
        logger.warning("To find more start pages, search for: %s", "; ".join(queries))
