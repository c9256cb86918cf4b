"""What middlewares, pipelines and extensions share, and their keys in ``request.meta``."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import NotConfigured

from focuscrawl.signals import page_visited

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from focuscrawl.crawl import Crawl
    from focuscrawl.crawl_config import CrawlConfig


#: number of the URL in the crawl; only requests that come out of the frontier have it
URL_ID = "focuscrawl_url"
#: the `Visit`, once the answer has been judged
VISIT = "focuscrawl_visit"
#: on requests for a page that asks not to be indexed, if that is obeyed
NOINDEX = "focuscrawl_noindex"
#: on requests for a page that was fetched before, for the links that are new on it
AGAIN = "focuscrawl_again"
#: bytes received so far; only requests for a robots.txt have it
ROBOTS = "focuscrawl_robots"
#: on requests that failed before an answer came
UNANSWERED = "focuscrawl_unanswered"
#: on requests that a project's own spider yielded: which redirects it wants to see itself
OWN = "focuscrawl_own"
NO_REDIRECT, ANSWERS, ALL_REDIRECTS = "none", "answers", "all"  #: answers: not pages that refresh
#: on requests that stand for links of a page that its callback did not ask for
FOLLOWED = "focuscrawl_followed"


_crawls: WeakKeyDictionary[Crawler, Crawl] = WeakKeyDictionary()


def bind_crawl(crawler: Crawler, crawl: Crawl) -> None:
    """Let the components of `crawler` find `crawl`."""
    _crawls[crawler] = crawl


def has_crawl(crawler: Crawler) -> bool:
    """Tell whether `crawler` has a crawl."""
    return crawler in _crawls


def crawl_of(crawler: Crawler) -> Crawl:
    """Return the crawl of `crawler`.

    Raises
    ------
    NotConfigured
        It has none: ``scrapy shell`` and ``fetch`` crawl nothing, and need nothing of ours.
    """
    try:
        return _crawls[crawler]
    except KeyError:
        raise NotConfigured from None


_SIGNALS = {name: each for name, each in vars(signals).items() if type(each) is object}
_SIGNALS["page_visited"] = page_visited


def config_of(crawler: Crawler) -> CrawlConfig:
    """Return the configuration of the crawl of `crawler`, or what its settings say without one."""
    if has_crawl(crawler):
        return crawl_of(crawler).plan
    from focuscrawl.engine.config_from_settings import read_config  # noqa: PLC0415 - slow to import

    return read_config(crawler.settings)


class Component:
    """A component of a crawler whose crawl is open.

    Methods that have the name of a signal are called when it is sent. A component that is not
    wanted raises `scrapy.exceptions.NotConfigured` when it is made.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl: Crawl = crawl_of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the component, and connect it to the signals it has methods for."""
        component = cls(crawler)
        for name, signal in _SIGNALS.items():
            receiver = getattr(component, name, None)
            if receiver is not None:
                crawler.signals.connect(receiver, signal=signal)
        return component
