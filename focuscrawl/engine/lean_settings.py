"""Leaves out what of Scrapy costs time and does nothing for a spider that yields no requests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.logformatter import LogFormatter
from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from scrapy.settings import BaseSettings

_REFERRERS = "scrapy.spidermiddlewares.referer.RefererMiddleware"  # Scrapy's redirects ask it
#: what switches extensions off that Scrapy imports, with a web server or a shell, to find that out
_SWITCHES = {
    "scrapy.extensions.remote_control.RemoteControl": "REMOTE_CONTROL_ENABLED",
    "scrapy.extensions.telnet.TelnetConsole": "TELNETCONSOLE_ENABLED",
}
#: what a recording, which answers at once, takes no notice of
_FOR_NETWORKS = (
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
    "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware",
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware",
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware",
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware",
)
_DETAILED = ("DEBUG", "NOTSET", logging.DEBUG, logging.NOTSET)


def use_lean_settings(settings: BaseSettings, *, replays: bool) -> None:
    """Leave out Scrapy's own spider middlewares, extensions that are off, and lines nobody reads.

    Each of the middlewares would pass every visit on through generators of its own; a line of
    the log is made whether it is shown or not. What users have set stays.

    Parameters
    ----------
    replays : pages come from a recording: nor is anything added to requests for a network
    """
    for path in settings.getdict("SPIDER_MIDDLEWARES_BASE"):
        if path != _REFERRERS:
            component = load_object(path)
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", component, None)
    for path in _FOR_NETWORKS if replays else ():
        component = load_object(path)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", component, None)
    for path, switch in _SWITCHES.items():
        if not settings.getbool(switch):
            settings["EXTENSIONS_BASE"].pop(path, None)
    if settings.get("LOG_LEVEL") not in _DETAILED and not settings.getpriority("LOG_FORMATTER"):
        settings.set("LOG_FORMATTER", QuietFormatter, priority="spider")


class QuietFormatter(LogFormatter):
    """Makes no line for a page or an item: where there is None, Scrapy logs nothing."""

    def crawled(  # type: ignore[override]  # None is documented, though not in the type
        self, request: Request, response: Response, spider: Spider
    ) -> None:
        """Say nothing of a page."""

    def scraped(  # type: ignore[override]
        self, item: object, response: object, spider: Spider
    ) -> None:
        """Say nothing of an item."""

    def dropped(
        self, item: object, exception: BaseException, response: object, spider: Spider
    ) -> LogFormatterResult:
        """Say nothing of what is no item; of what a user's pipeline drops, what Scrapy says."""
        ours = ("excluded", "again", "noindex")
        if any(getattr(item, name, None) for name in ours):
            return None  # type: ignore[return-value]
        return super().dropped(item, exception, response, spider)  # type: ignore[arg-type]
