"""From arguments and Scrapy's settings to the configuration of a crawl."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.crawl_config import (
    ARGUMENTS,
    DEFAULT_CRITIC,
    PREFIX,
    SETTINGS,
    CrawlConfig,
    setting_name,
)
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import is_reserved
from focuscrawl.foundation.user_input import number, validated, whole_number
from focuscrawl.settings import DOWNLOAD_MAXSIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

_REPLAY = "focuscrawl.downloadhandlers.ReplayDownloadHandler"
_DEMO_CRITICS = (DEFAULT_CRITIC, "demo")
_NOT_FOLLOWED = ("data", "file", "ftp", "s3")
#: settings of Scrapy's that a crawl goes by; a crawl without a request at a time would never end
_AT_LEAST_ONE, _SECONDS = whole_number(1), number()


def read_config(
    settings: BaseSettings,
    arguments: Mapping[str, str] | None = None,
    *,
    may_be_demo: bool = False,
) -> CrawlConfig:
    """Return the configuration of a crawl: what arguments say, else settings, else the defaults.

    With a recorded web, `settings` are changed to what makes sense for one.

    Parameters
    ----------
    arguments : by name, as given with ``-a``
    may_be_demo : where no web is named, the demo's critic crawls the demo web

    Raises
    ------
    UserError
        An argument or a setting does not exist, or cannot have its value.
    """
    given = config_as_written(settings, arguments)
    config = _with_demo_web(given) if may_be_demo else given
    written, replay = given.model_fields_set, config.web is not None
    if replay:
        _use_recording(settings)
    values: dict[str, Any] = {}
    if not settings.getpriority("DOWNLOAD_MAXSIZE"):  # Scrapy's own: a gigabyte
        values["meta"] = {"download_maxsize": DOWNLOAD_MAXSIZE, **config.meta}
    if "obey_meta_robots" not in written:
        values["obey_meta_robots"] = not replay
    if "meta_refresh" not in written and not replay and settings.getbool("METAREFRESH_ENABLED"):
        values["meta_refresh"] = settings.getfloat("METAREFRESH_MAXDELAY")
    concurrency, per_host = (
        _AT_LEAST_ONE.read(f"setting {name}", settings.get(name))
        for name in ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")
    )
    return config.with_values(
        **values,
        concurrency=concurrency,
        per_host=concurrency if replay else per_host,
        delay=_SECONDS.read("setting DOWNLOAD_DELAY", settings.get("DOWNLOAD_DELAY")),
        own_names=config.private_addresses != CrawlConfig().private_addresses
        or (settings.getpriority("TWISTED_DNS_RESOLVER") or 0) > 0,
    )


def config_as_written(
    settings: BaseSettings, arguments: Mapping[str, str] | None = None
) -> CrawlConfig:
    """Return what arguments and settings say, without what follows from it for a crawl."""
    written, named = _written(settings, arguments or {})
    return validated(CrawlConfig, written, named=named)


def _written(
    settings: BaseSettings, arguments: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what was written for fields, and the name of the setting or argument of each."""
    for name in sorted(each for each in settings if each.upper().startswith(PREFIX)):
        if name not in SETTINGS:
            (near,) = difflib.get_close_matches(name.upper(), SETTINGS, n=1, cutoff=0.0)
            raise UserError(f"there is no setting {name}: do you mean {near}?")
    written: dict[str, Any] = {}
    for setting, field in SETTINGS.items():
        value = settings.get(setting)
        blank = field in ARGUMENTS and not str(value).strip()
        if value is not None and not blank:
            written[field] = value
    named = {field: setting_name(field) for field in written}
    for name, text in arguments.items():
        if name not in ARGUMENTS:
            raise UserError(f"unknown argument {name}: there are {', '.join(ARGUMENTS)}")
        if not text.strip():
            raise UserError(f"argument {name} is empty: give it a value or leave it out")
        written[name], named[name] = text, name
    return written, named


def _with_demo_web(config: CrawlConfig) -> CrawlConfig:
    """Let the demo's critic crawl the demo web, the only one it knows, where no web is named.

    But not with seeds of the live Web, and not if a live crawl is to be resumed.
    """
    if config.critic not in _DEMO_CRITICS or config.web or config.knowledge:
        return config
    folder = CrawlFolder(Path(config.crawl_dir or ""))
    if config.crawl_dir and folder.exists and folder.identity().get("web") == "live":
        return config
    if config.seeds:
        try:
            seeds = read_seeds(config.seeds, config.topics)
        except UserError:  # reported when the crawl is opened
            return config
        if not all(map(is_reserved, seeds)):
            return config
    return config.with_values(web="demo")


def _use_recording(settings: BaseSettings) -> None:
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
