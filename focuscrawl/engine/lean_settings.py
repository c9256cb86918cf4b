"""Removes control characters and passwords from the log; disables unused Scrapy components."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter
from scrapy.utils.misc import load_object

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import without_credentials
from focuscrawl.report.plain_text import printable

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from scrapy.settings import BaseSettings


_TRACEBACKS = logging.Formatter()


class SanitizedRecord(logging.LogRecord):
    """Log record whose text and traceback have no control characters and no URL credentials.

    ``logging.setLogRecordFactory`` installs this class for all handlers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[0] is not None:
            error = self.exc_info[1]
            # formatters use this text instead of formatting the traceback again
            self.exc_text = sanitize(
                str(error)  # the one-line message of an error that the user can correct
                if isinstance(error, UserError)
                else _TRACEBACKS.formatException(self.exc_info)
            )

    def getMessage(self) -> str:  # noqa: N802 - the base class's name
        """Return the log message without control characters and URL credentials."""
        return sanitize(super().getMessage())


def sanitize(text: str) -> str:
    """Return a text without control characters and without credentials of URLs."""
    return without_credentials(printable(text))


_REFERRERS = "scrapy.spidermiddlewares.referer.RefererMiddleware"  # needed by RedirectMiddleware
# settings of extensions that are slow to import and that Scrapy imports even if disabled
_SWITCHES = {
    "scrapy.extensions.remote_control.RemoteControl": "REMOTE_CONTROL_ENABLED",
    "scrapy.extensions.telnet.TelnetConsole": "TELNETCONSOLE_ENABLED",
}
# not needed in a replay, which has no network and no redirects except those that it fetches
_LIVE_MIDDLEWARES = (
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
    "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware",
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware",
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware",
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware",
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware",
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware",
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",
)
_DEBUG_LEVELS = ("DEBUG", "NOTSET", logging.DEBUG, logging.NOTSET)


def use_lean_settings(settings: BaseSettings, *, replays: bool) -> None:
    """Disable Scrapy's own spider middlewares, unused extensions, and per-page log lines.

    Scrapy's spider middlewares would pass every fetched page through further generators, and
    Scrapy formats log lines even if the log level hides them. The function does not change
    settings that the user has set. If ``replays`` is true, the downloader middlewares for the
    network and for redirects are also disabled.
    """
    for path in settings.getdict("SPIDER_MIDDLEWARES_BASE"):
        if replays or path != _REFERRERS:
            component = load_object(path)
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", component, None)
    for path in _LIVE_MIDDLEWARES if replays else ():
        component = load_object(path)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", component, None)
    for path, switch in _SWITCHES.items():
        if not settings.getbool(switch):
            settings["EXTENSIONS_BASE"].pop(path, None)
    if settings.get("LOG_LEVEL") not in _DEBUG_LEVELS and not settings.getpriority(
        "LOG_FORMATTER"
    ):
        settings.set("LOG_FORMATTER", QuietFormatter, priority="spider")


class QuietFormatter(LogFormatter):
    """Log formatter that returns None for pages and items, so that Scrapy logs no line."""

    def crawled(  # type: ignore[override]  # None is documented, though not in the type
        self, request: Request, response: Response, spider: Spider
    ) -> None:
        """Suppress the log line for a page."""

    def scraped(  # type: ignore[override]
        self, item: object, response: object, spider: Spider
    ) -> None:
        """Suppress the log line for an item."""

    def dropped(
        self, item: object, exception: BaseException, response: object, spider: Spider
    ) -> LogFormatterResult:
        """Log an item that a user's pipeline drops, but no item that focuscrawl itself drops."""
        ours = ("excluded", "is_refetch", "noindex")
        if any(getattr(item, name, None) for name in ours):
            return None  # type: ignore[return-value]
        return super().dropped(item, exception, response, spider)  # type: ignore[arg-type]
