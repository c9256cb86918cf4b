"""``scrapy crawl focused``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy

from focuscrawl.crawl import CrawlPlan, open_crawl
from focuscrawl.crawl.parts.distilling import SITES
from focuscrawl.downloadermiddlewares.backoff import patience_of
from focuscrawl.downloadermiddlewares.warc import recording_name
from focuscrawl.engine.arguments import from_settings
from focuscrawl.engine.binding import bind_crawl, crawl_of
from focuscrawl.engine.instance_feed import feed_of
from focuscrawl.engine.lean_settings import use_lean_settings
from focuscrawl.engine.link_requests import LinkRequests
from focuscrawl.engine.process_memory import freeze, return_large_arrays
from focuscrawl.engine.visits import visit_of_response
from focuscrawl.errors import UserError
from focuscrawl.extensions.metrics import check_port
from focuscrawl.foundation.networks import Networks
from focuscrawl.workers.joining import SharingOptions, open_shared_crawl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from focuscrawl.crawl import Crawl, PageVisit

#: the arguments a user may give with -a
ARGUMENTS = (
    "topic",
    "seeds",
    "critic",
    "strategy",
    "budget",
    "web",
    "crawl_dir",
    "store",
    "random_state",
    "apprentice",
    "within",
    "knowledge",
)
_REPLAY = "focuscrawl.downloadhandlers.ReplayDownloadHandler"
_NOT_FOLLOWED = ("data", "file", "ftp", "s3")


class FocusedSpider(scrapy.Spider):
    """Crawls the pages of a topic; arguments as in the README.

    The loop itself is `focuscrawl.crawl.Crawl`; this spider opens it from its arguments and
    yields one item a fetch.
    """

    name = "focused"
    yields_visits = True  # every fetch is an item, whatever came of it

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments and open the crawl, before Scrapy builds anything.

        Raises
        ------
        UserError
            Anything the user has to put right.
        """
        arguments = {name: value for name, value in kwargs.items() if not name.startswith("_")}
        unknown = sorted(set(arguments) - set(ARGUMENTS))
        if unknown:
            raise UserError(f"unknown argument {unknown[0]}: there are {', '.join(ARGUMENTS)}")
        empty = sorted(name for name, value in arguments.items() if not value.strip())
        if empty:
            raise UserError(f"argument {empty[0]} is empty: give it a value or leave it out")
        spider = super().from_crawler(crawler, *args, **kwargs)
        if cls is FocusedSpider:
            use_lean_settings(crawler.settings)
        open_for(spider, from_settings(crawler.settings) | arguments, crawler.settings)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Yield nothing: the seeds are in the frontier."""
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def parse(self, response: Response) -> Iterator[PageVisit]:
        """Yield the fetch: the item pipelines judge it, score its links and record it."""
        yield visit_of_response(crawl_of(self.crawler), response)


def open_for(spider: scrapy.Spider, arguments: dict[str, str], settings: BaseSettings) -> None:
    """Open the crawl of a spider: check everything first, and bind it to the spider's crawler.

    Raises
    ------
    UserError
        Anything the user has to put right; nothing has been written then.
    """
    return_large_arrays()
    recording = recording_name(settings)
    if recording is not None and not recording.endswith(".warc.gz"):
        raise UserError(f"FOCUSCRAWL_WARC={recording}: name a file that ends in .warc.gz")
    Networks.of(settings.getlist("FOCUSCRAWL_PRIVATE_ADDRESSES"))  # a slip ends here
    patience_of(settings)
    LinkRequests.of(spider, settings)
    check_port(settings)
    feed_of(settings)
    if "web" in arguments:
        _replay(settings)
    bind_crawl(spider.crawler, _open(spider, arguments, settings))
    freeze()


def _open(spider: scrapy.Spider, arguments: dict[str, str], settings: BaseSettings) -> Crawl:
    store = arguments.pop("store", None)
    plan = _plan(arguments, settings)
    if store is None:
        return open_crawl(plan)
    crawl = open_shared_crawl(plan, store, _sharing(settings))
    if hasattr(spider, "store"):
        spider.store = crawl.plan.store  # Scrapy has put it there, with the password
    return crawl


def _plan(arguments: dict[str, str], settings: BaseSettings) -> CrawlPlan:
    replay = "web" in arguments
    given: dict[str, Any] = {"topic": "", **arguments}
    options = _options(settings)
    if "apprentice" in given:
        if given.get("strategy", "apprentice") != "apprentice":
            raise UserError("argument apprentice goes with the strategy apprentice: leave one out")
        options["begin_with"] = given.pop("apprentice")
    for name in {"budget", "random_state"} & given.keys():
        given[name] = CrawlPlan.whole_number(name, given[name])
    return CrawlPlan(
        **given,
        options=options,
        closed=_flag(settings, "FOCUSCRAWL_CLOSED", default=True),
        calibrated=(
            None
            if settings.get("FOCUSCRAWL_CALIBRATED") is None
            else _flag(settings, "FOCUSCRAWL_CALIBRATED", default=False)
        ),
        stagnation=CrawlPlan.whole_number(
            "FOCUSCRAWL_STAGNATION", str(settings.get("FOCUSCRAWL_STAGNATION", 0))
        ),
        any_media=_flag(settings, "FOCUSCRAWL_ANY_MEDIA", default=False),
        obey_meta_robots=_flag(settings, "FOCUSCRAWL_OBEY_META_ROBOTS", default=not replay),
        meta_refresh=_meta_refresh(settings, replay),
        limits=_flag(settings, "FOCUSCRAWL_LIMITS", default=True),
        near_duplicates=_flag(settings, "FOCUSCRAWL_NEAR_DUPLICATES", default=True),
        distill=CrawlPlan.whole_number(
            "FOCUSCRAWL_DISTILL", str(settings.get("FOCUSCRAWL_DISTILL", 0))
        ),
        distill_sites=_sites(settings),
        revisit_hubs=CrawlPlan.whole_number(
            "FOCUSCRAWL_REVISIT_HUBS", str(settings.get("FOCUSCRAWL_REVISIT_HUBS", 0))
        ),
        revisit=_flag(settings, "FOCUSCRAWL_REVISIT", default=False),
        not_modified_cost=_share(settings, "FOCUSCRAWL_NOT_MODIFIED_COST", 0.1),
        per_host=settings.getint(
            "CONCURRENT_REQUESTS" if replay else "CONCURRENT_REQUESTS_PER_DOMAIN"
        ),
        delay=settings.getfloat("DOWNLOAD_DELAY"),
        concurrency=settings.getint("CONCURRENT_REQUESTS"),
    )


def _sharing(settings: BaseSettings) -> SharingOptions:
    lease = CrawlPlan.whole_number("FOCUSCRAWL_LEASE", str(settings.get("FOCUSCRAWL_LEASE", 60)))
    shards = CrawlPlan.whole_number(
        "FOCUSCRAWL_SHARDS", str(settings.get("FOCUSCRAWL_SHARDS", 64))
    )
    if lease < 2:
        raise UserError(f"FOCUSCRAWL_LEASE must be 2 seconds or more, not {lease}")
    if not 1 <= shards <= 10_000:
        raise UserError(f"FOCUSCRAWL_SHARDS must be 1 to 10000, not {shards}")
    return SharingOptions(lease=lease, shards=shards)


def _meta_refresh(settings: BaseSettings, replay: bool) -> float:
    """Return for how many seconds a page stays that is no redirect any more; 0: none is."""
    name = "FOCUSCRAWL_META_REFRESH"
    enabled = settings.getbool("METAREFRESH_ENABLED") and not replay
    try:
        default = settings.getfloat("METAREFRESH_MAXDELAY") if enabled else 0.0
        seconds = settings.getfloat(name, default)
    except (TypeError, ValueError):
        seconds = -1.0
    if seconds < 0.0:
        raise UserError(f"{name} must be a number, 0 or more, not {settings.get(name)!r}")
    return seconds


def _sites(settings: BaseSettings) -> str:
    sites: str = settings.get("FOCUSCRAWL_DISTILL_SITES", "auto")
    if sites not in SITES:
        raise UserError(
            f"FOCUSCRAWL_DISTILL_SITES must be one of {', '.join(SITES)}, not {sites!r}"
        )
    return sites


def _flag(settings: BaseSettings, name: str, *, default: bool) -> bool:
    try:
        return settings.getbool(name, default)
    except ValueError:
        raise UserError(f"{name} must be 0 or 1, not {settings.get(name)!r}") from None


def _share(settings: BaseSettings, name: str, default: float) -> float:
    try:
        share = settings.getfloat(name, default)
    except (TypeError, ValueError):
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise UserError(f"{name} must be a number from 0 to 1, not {settings.get(name)!r}")
    return share


def _options(settings: BaseSettings) -> dict[str, Any]:
    try:
        return settings.getdict("FOCUSCRAWL_STRATEGY_OPTIONS")
    except ValueError:
        raise UserError(
            "FOCUSCRAWL_STRATEGY_OPTIONS must be a JSON object, as in '{\"option\": 1}'"
        ) from None


def _replay(settings: BaseSettings) -> None:
    """Set what makes sense for a recording: no network, no waiting, one request at a time.

    A recording answers at once: more requests at a time would only make the crawl choose links
    before it has seen the pages that speak for or against them.
    """
    for name, value in {
        "DOWNLOAD_HANDLERS": dict.fromkeys(_NOT_FOLLOWED) | {"http": _REPLAY, "https": _REPLAY},
        "AUTOTHROTTLE_ENABLED": False,
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS": 1,
        "RETRY_ENABLED": False,
    }.items():
        settings.set(name, value, priority="spider")
