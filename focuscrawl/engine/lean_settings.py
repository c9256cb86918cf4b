"""Log records fit for a terminal, and Scrapy without the components that a crawl does not use."""

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
    """A record without control characters and credentials of URLs, in text and traceback.

    For ``logging.setLogRecordFactory``: then no handler needs to know.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[0] is not None:
            error = self.exc_info[1]
            # formatters take the text that is there instead of making their own
            self.exc_text = sanitize(
                str(error)  # for what the user has to put right a traceback is no help
                if isinstance(error, UserError)
                else _TRACEBACKS.formatException(self.exc_info)
            )

    def getMessage(self) -> str:  # noqa: N802 - the base class's name
        """Return the message without control characters and credentials."""
        return sanitize(super().getMessage())


def sanitize(text: str) -> str:
    """Return `text` without control characters and without credentials of URLs."""
    return without_credentials(printable(text))


_REFERRERS = "scrapy.spidermiddlewares.referer.RefererMiddleware"  # Scrapy's redirects ask it
#: switches of extensions that Scrapy imports, with a web server or a shell, to see they are off
_SWITCHES = {
    "scrapy.extensions.remote_control.RemoteControl": "REMOTE_CONTROL_ENABLED",
    "scrapy.extensions.telnet.TelnetConsole": "TELNETCONSOLE_ENABLED",
}
#: what a recording, which answers at once, does not need
_FOR_NETWORKS = (
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
    "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware",
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware",
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware",
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware",
)
_DETAILED = ("DEBUG", "NOTSET", logging.DEBUG, logging.NOTSET)


def use_lean_settings(settings: BaseSettings, *, replays: bool) -> None:
    """Switch off Scrapy's own spider middlewares, unused extensions, and log lines for each page.

    Each of the middlewares would pass every visit through generators of its own; a line of the
    log is made whether it is shown or not. What users have set stays.

    Parameters
    ----------
    replays : pages come from a recording: nothing is added to requests for a network either
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
    """Returns None for a page or an item: then Scrapy logs nothing."""

    def crawled(  # type: ignore[override]  # None is documented, though not in the type
        self, request: Request, response: Response, spider: Spider
    ) -> None:
        """Log nothing for a page."""

    def scraped(  # type: ignore[override]
        self, item: object, response: object, spider: Spider
    ) -> None:
        """Log nothing for an item."""

    def dropped(
        self, item: object, exception: BaseException, response: object, spider: Spider
    ) -> LogFormatterResult:
        """Log nothing for what is no item; what a user's pipeline drops is logged as by Scrapy."""
        ours = ("excluded", "is_refetch", "noindex")
        if any(getattr(item, name, None) for name in ours):
            return None  # type: ignore[return-value]
        return super().dropped(item, exception, response, spider)  # type: ignore[arg-type]
