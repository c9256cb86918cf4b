"""Counts what the spider was given."""

from scrapy import signals
from scrapy.exceptions import DontCloseSpider


class Tally:
    """Puts the number of items into the statistics when the spider closes."""

    def __init__(self, stats):
        self.stats = stats
        self.items = 0

    @classmethod
    def from_crawler(cls, crawler):
        """Connect to the signals."""
        tally = cls(crawler.stats)
        crawler.signals.connect(tally.item_scraped, signal=signals.item_scraped)
        crawler.signals.connect(tally.spider_closed, signal=signals.spider_closed)
        if crawler.settings.getbool("CLUBS_WAITS"):
            crawler.signals.connect(tally.spider_idle, signal=signals.spider_idle)
        return tally

    def item_scraped(self):
        """Count one."""
        self.items += 1

    def spider_idle(self):
        """Wait for what may yet come."""
        raise DontCloseSpider

    def spider_closed(self):
        """Tell."""
        self.stats.set_value("clubs/items", self.items)
