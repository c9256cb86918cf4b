"""From settings and arguments to the plan of a crawl."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.crawl_plan import CrawlPlan
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.engine.settings_table import (
    META_REFRESH,
    OBEY_META_ROBOTS,
    PRIVATE_ADDRESSES,
    SETTINGS,
    STRATEGY,
    STRATEGY_OPTIONS,
)
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import is_reserved
from focuscrawl.foundation.user_input import number, whole_number
from focuscrawl.taxonomy import read_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

_FIELDS = {field.name for field in fields(CrawlPlan)}
_REPLAY = "focuscrawl.downloadhandlers.ReplayDownloadHandler"
#: settings of Scrapy's that a crawl goes by; without a request at a time it would never end
_OF_SCRAPY = {
    "CONCURRENT_REQUESTS": whole_number(1),
    "CONCURRENT_REQUESTS_PER_DOMAIN": whole_number(1),
    "DOWNLOAD_DELAY": number(),
}
_DEMO_CRITICS = (CrawlPlan.critic, "demo")
_NOT_FOLLOWED = ("data", "file", "ftp", "s3")


def plan_from(settings: BaseSettings, arguments: Mapping[str, Any]) -> CrawlPlan:
    """Return the plan of a crawl; `settings` are changed to what makes sense for a recording.

    Parameters
    ----------
    arguments : see `focuscrawl.engine.settings_table.read_arguments`

    Raises
    ------
    UserError
        A setting cannot be read, or two do not go together.
    """
    replay = arguments["web"] is not None
    if replay:
        _replay(settings)
    given = {each.key: each.of(settings) for each in SETTINGS.values()} | dict(arguments)
    if given[OBEY_META_ROBOTS.key] is None:
        given[OBEY_META_ROBOTS.key] = not replay
    if given[META_REFRESH.key] is None:
        enabled = settings.getbool("METAREFRESH_ENABLED") and not replay
        given[META_REFRESH.key] = settings.getfloat("METAREFRESH_MAXDELAY") if enabled else 0.0
    options = dict(STRATEGY_OPTIONS.of(settings))
    if given["apprentice"] is not None:
        if given["strategy"] != STRATEGY.default:
            raise UserError("argument apprentice goes with the strategy apprentice: leave one out")
        options["begin_with"] = given["apprentice"]
    scrapys: dict[str, Any] = {
        name: reader.read(f"setting {name}", settings.get(name))
        for name, reader in _OF_SCRAPY.items()
    }
    politeness = "CONCURRENT_REQUESTS" if replay else "CONCURRENT_REQUESTS_PER_DOMAIN"
    return CrawlPlan(
        **{name: value for name, value in given.items() if name in _FIELDS},
        options=options,
        own_names=PRIVATE_ADDRESSES.of(settings) != PRIVATE_ADDRESSES.default
        or (settings.getpriority("TWISTED_DNS_RESOLVER") or 0) > 0,
        per_host=scrapys[politeness],
        delay=scrapys["DOWNLOAD_DELAY"],
        concurrency=scrapys["CONCURRENT_REQUESTS"],
    )


def use_demo_web(arguments: dict[str, Any]) -> None:
    """Have the demo's critic crawl the demo web, the only one it knows, where no web is named.

    But not if there are seeds of the live Web, or a live crawl to go on with.
    """
    named = (arguments[name] for name in ("web", "knowledge"))
    if arguments["critic"] not in _DEMO_CRITICS or any(map(bool, named)):
        return
    folder = CrawlFolder(Path(arguments["crawl_dir"] or ""))
    if arguments["crawl_dir"] and folder.exists and folder.identity().get("web") == "live":
        return
    if arguments["seeds"]:
        try:
            seeds = read_seeds(arguments["seeds"], read_topics(arguments["topic"]))
        except UserError:  # it is said when the crawl is opened
            return
        if not all(map(is_reserved, seeds)):
            return
    arguments["web"] = "demo"


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
