"""An alarm when the harvest rate or the speed of a crawl falls: in the log, store and bar."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.diagnosis import ALARM, SpeedMonitor
from focuscrawl.engine.component import Component
from focuscrawl.foundation.urls import host, normalize
from focuscrawl.report.outlook import doubts_of, start_pages
from focuscrawl.report.summary import is_page, watch_again

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from focuscrawl.crawl import PageVisit
    from focuscrawl.critic.protocol import Critic

logger = logging.getLogger(__name__)

_FIRST = 10  # fetches of a crawl, one of which at least should be on the topic


class Alarm(Component):
    """Watches the harvest rate, and of a live crawl that in time, too [F99 section 2].

    See `focuscrawl.diagnosis`. In a replay time is counted in fetches.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._critic: Critic | None = None
        self._best = ""  # of the first fetches
        self._best_relevance = -1.0
        self._speed = None if self._crawl.config.web else SpeedMonitor()

    def spider_opened(self) -> None:
        """Restore the watch from the fetches of a resumed crawl."""
        self._critic = self._crawl.critic
        self._watch, _ = watch_again(self._crawl.store)

    def page_visited(self, visit: PageVisit) -> None:
        """Watch a fetch; after a new definition of the topic, all before it again."""
        if self._critic is not self._crawl.critic:
            self._crawl.flush()
            self.spider_opened()
            return
        self._check_first_fetches(visit)
        self._check_speed(visit)
        urls = self._crawl.urls
        number = urls.get(visit.url)
        assert number is not None
        change = self._watch.add_fetch(
            number,
            None if visit.referrer is None else urls.get(visit.referrer),
            relevance=visit.relevance,
            topic=visit.topic if isinstance(visit.topic, str) else None,  # pipelines may set it
            judged=is_page(visit.status, visit.error, visit.duplicate_of),
            busy_host=visit.better_host,
        )
        if change is None:
            return
        alarm = self._watch.alarm
        if change == ALARM and alarm is not None:
            self._crawl.record_event(ALARM, alarm.describe())
            logger.warning("%s", alarm.describe())
            self._crawler.stats.set_value("focuscrawl/alarm", alarm.short())
        else:
            self._crawl.record_event(change, f"harvest {self._crawl.harvest_rate:.2f} overall")
            self._crawler.stats.set_value("focuscrawl/alarm", "")

    def _check_speed(self, visit: PageVisit) -> None:
        """Report when relevant pages arrive more slowly than before, and when no longer."""
        if self._speed is None:
            return
        change = self._speed.add_fetch(time.monotonic(), visit.relevance, host(visit.url))
        if change is None:
            return
        slowdown = self._speed.slowdown
        detail = "" if slowdown is None else slowdown.describe()
        self._crawl.record_event(change, detail)
        if slowdown is not None:
            logger.warning("%s", detail)
        shown = "" if slowdown is None else slowdown.short()
        self._crawler.stats.set_value("focuscrawl/slow", shown)

    def _check_first_fetches(self, visit: PageVisit) -> None:
        """Warn if some page was reached, and none of the first is on the topic."""
        if visit.seq > _FIRST:
            return
        if visit.relevance > self._best_relevance:
            self._best, self._best_relevance = visit.url, visit.relevance
        if visit.seq == _FIRST and self._crawl.succeeded and self._best_relevance <= RELEVANT:
            logger.warning(
                "none of the first %d fetches is on the topic, the best has R %.2f (%s): "
                "`focuscrawl plan` with the same arguments says more",
                _FIRST,
                self._best_relevance,
                self._best,
            )
            self._crawl.flush()
            examples = [url for url in map(normalize, self._crawl.critic.examples) if url]
            for doubt in doubts_of(start_pages(self._crawl.store), examples):
                logger.warning("%s", doubt)
