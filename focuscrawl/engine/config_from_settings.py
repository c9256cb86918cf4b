"""Reads the configuration of a crawl from its arguments and Scrapy's settings."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.crawl.crawl_folder import CrawlFolder
from focuscrawl.crawl.scope import read_seeds
from focuscrawl.crawl_config import (
    ARGUMENTS,
    DEFAULT_CRITIC,
    DEMO_BUDGET,
    PREFIX,
    SETTINGS,
    CrawlConfig,
    setting_name,
)
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import is_reserved
from focuscrawl.foundation.user_input import number, validate, whole_number
from focuscrawl.page.robots_rules import product_token
from focuscrawl.settings import DOWNLOAD_MAXSIZE

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_REPLAY = "focuscrawl.downloadhandlers.replay.ReplayDownloadHandler"
_DEMO_CRITICS = (DEFAULT_CRITIC, "demo")
_NOT_FOLLOWED = ("data", "file", "ftp", "s3")
# parsers of Scrapy's settings; without a single concurrent request a crawl would never stop
_AT_LEAST_ONE, _SECONDS = whole_number(1), number()


def read_config(
    settings: BaseSettings,
    arguments: Mapping[str, str] | None = None,
    *,
    may_be_demo: bool = False,
) -> CrawlConfig:
    """Return the configuration of a crawl; arguments take precedence over settings.

    For a crawl of a recording, the function changes the argument ``settings`` to the settings of a
    replay.

    Parameters
    ----------
    arguments : mapping of str to str
        Values of ``-a`` by name.
    may_be_demo : bool
        Crawl the demo web if the critic is that of the demo and no web is named. Without a
        budget, the budget is then `DEMO_BUDGET`.

    Raises
    ------
    UserError
        An argument or a setting is unknown, or has an invalid value.
    """
    given = config_as_written(settings, arguments)
    config = _with_demo_web(given) if may_be_demo else given
    written, replay = given.model_fields_set, config.web is not None
    if replay:
        _use_recording(settings)
    values: dict[str, Any] = {}
    if not settings.getpriority("DOWNLOAD_MAXSIZE"):  # Scrapy's default is a gigabyte
        values["meta"] = {"download_maxsize": DOWNLOAD_MAXSIZE, **config.meta}
    if "obey_meta_robots" not in written:
        values["obey_meta_robots"] = not replay
    if "meta_refresh" not in written and not replay and settings.getbool("METAREFRESH_ENABLED"):
        values["meta_refresh"] = settings.getfloat("METAREFRESH_MAXDELAY")
    concurrency, per_host = (
        _AT_LEAST_ONE.parse(f"setting {name}", settings.get(name))
        for name in ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")
    )
    return config.with_values(
        **values,
        concurrency=concurrency,
        per_host=concurrency if replay else per_host,
        delay=_SECONDS.parse("setting DOWNLOAD_DELAY", settings.get("DOWNLOAD_DELAY")),
        own_names=config.private_addresses != CrawlConfig().private_addresses
        or (settings.getpriority("TWISTED_DNS_RESOLVER") or 0) > 0,
        agent=product_token(settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"] or ""),
    )


def config_as_written(
    settings: BaseSettings, arguments: Mapping[str, str] | None = None
) -> CrawlConfig:
    """Return the configuration without values derived from Scrapy's own settings."""
    written, named = _written(settings, arguments or {})
    return validate(CrawlConfig, written, named=named)


def _written(
    settings: BaseSettings, arguments: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the given value of each field, and the name of its setting or argument."""
    for name in sorted(each for each in settings if each.upper().startswith(PREFIX)):
        if name not in SETTINGS:
            (near,) = difflib.get_close_matches(name.upper(), SETTINGS, n=1, cutoff=0.0)
            raise UserError(f"unknown setting {name}: did you mean {near}?")
    written: dict[str, Any] = {}
    for setting, field in SETTINGS.items():
        value = settings.get(setting)
        blank = field in ARGUMENTS and not str(value).strip()
        if value is not None and not blank:
            written[field] = value
    named = {field: setting_name(field) for field in written}
    for name, text in arguments.items():
        if name not in ARGUMENTS:
            raise UserError(f"unknown argument {name}: valid arguments are {', '.join(ARGUMENTS)}")
        if not text.strip():
            raise UserError(f"argument {name} is empty: add a value, or remove the argument")
        written[name], named[name] = text, name
    return written, named


def _with_demo_web(config: CrawlConfig) -> CrawlConfig:
    """Set the demo web for a crawl with the critic of the demo, if no web is named.

    Not for start pages on the live Web, and not for a resumed crawl of the live Web.
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
    budget = config.budget if "budget" in config.model_fields_set else DEMO_BUDGET
    return config.with_values(web="demo", budget=budget)


def _use_recording(settings: BaseSettings) -> None:
    """Change the settings to those of a replay: no network, no delays, one request at a time.

    Concurrent requests would save no time, and the crawl would choose links before it has judged
    the latest pages.
    """
    for name, value in {
        "DOWNLOAD_HANDLERS": dict.fromkeys(_NOT_FOLLOWED) | {"http": _REPLAY, "https": _REPLAY},
        "AUTOTHROTTLE_ENABLED": False,
        "DOWNLOAD_DELAY": 0,
        "DOWNLOAD_SLOTS": {},
        "CONCURRENT_REQUESTS": 1,
        "RETRY_ENABLED": False,
    }.items():
        settings.set(name, value, priority="spider")
