"""Converts Scrapy's responses and errors to visits (records of fetches); names error causes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredLock
from twisted.internet.error import ConnectionClosed
from twisted.web.client import ResponseFailed

from focuscrawl.crawl import Download
from focuscrawl.crawl.visit import NOT_MODIFIED
from focuscrawl.foundation.backoff import read_retry_after
from focuscrawl.foundation.urls import resolve_header
from focuscrawl.page import read_content_type
from focuscrawl.page.metadata import LINK_FIELDS, read_header_links

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Headers, Response
    from scrapy.statscollectors import StatsCollector

    from focuscrawl.crawl import Crawl, PageVisit


# Keys in ``request.meta``

#: id of the URL in the crawl, for requests from the frontier
URL_ID = "focuscrawl_url"
#: the `Visit`, after the answer was judged
VISIT = "focuscrawl_visit"
#: True if the page has ``noindex`` and the crawl obeys
NOINDEX = "focuscrawl_noindex"
#: True if the page was fetched before and is fetched for its new links
REFETCH = "focuscrawl_again"
#: bytes received so far, for requests of a robots.txt
ROBOTS = "focuscrawl_robots"
#: cookies of the chain of redirects that leads to the URL
COOKIES = "focuscrawl_cookies"
#: True if the request repeats a redirected request with cookies
COOKIES_SENT = "focuscrawl_cookies_sent"
#: True if the request failed before an answer came
UNANSWERED = "focuscrawl_unanswered"
#: for requests of a project's own spider: redirects that are passed to the spider
OWN_REQUEST = "focuscrawl_own"
NO_REDIRECT, ANSWERS, ALL_REDIRECTS = "none", "answers", "all"  #: answers: no meta refresh
#: True for a link that is followed although the callback did not request it
FOLLOWED = "focuscrawl_followed"

_MAX_VALIDATOR = 256  # characters of a validator; longer validators are ignored


class UnusableError(Exception):
    """The response of a server or an archive is invalid."""

    cause = "unusable"


class TooLargeError(UnusableError):
    """The response is larger than the crawl accepts."""

    cause = "too large"


class NotInArchiveError(UnusableError):
    """The archive does not contain a page that the archive's index lists."""

    cause = "not in the archive"


class UnpackingError(UnusableError):
    """The compression of the body is not the one that the header states."""

    cause = "cannot be unpacked"


class NoStatusError(UnusableError):
    """The response has no valid HTTP status."""

    cause = "no HTTP"


class PrivateAddressError(Exception):
    """The crawl may not connect to the IP address of a host; Scrapy does not retry the request."""


_CAUSES: tuple[tuple[type[Exception], str], ...] = (
    (DownloadTimeoutError, "timed out"),
    (DownloadConnectionRefusedError, "refused"),
    (CannotResolveHostError, "host not found"),
    (ResponseDataLossError, "cut short"),
)


def is_web_error(error: BaseException) -> bool:
    """Tell whether an error is caused by a server, a network or a refusal, not by a bug."""
    everyday = (DownloadFailedError, DownloadCancelledError, UnusableError, PrivateAddressError)
    return isinstance(error, (*everyday, *(kind for kind, _ in _CAUSES), IgnoreRequest))


def describe_error(error: Exception) -> str:
    """Describe an error as ``cause: details``; the cause of a bug is the exception's class."""
    if isinstance(error, DownloadCancelledError):  # by DOWNLOAD_MAXSIZE only
        return f"too large: {error}" if str(error) else "too large: more than DOWNLOAD_MAXSIZE"
    for kind, name in _CAUSES:
        if isinstance(error, kind):
            return _with_details(name, error)
    if isinstance(error, UnusableError):
        return _with_details(error.cause, error)
    if isinstance(error, DownloadFailedError):
        return _describe_failed_download(error)
    return _with_details(type(error).__name__, error)


def _describe_failed_download(error: DownloadFailedError) -> str:
    reasons = [*_reasons(error)]
    for reason in reasons:
        if isinstance(reason, UnusableError):
            return _with_details(reason.cause, reason)
    for reason in reasons:
        if type(reason).__module__.startswith("OpenSSL"):
            text = _openssl_message(reason)
            unsure = "certificate" in text or "hostname" in text
            return f"{'certificate' if unsure else 'no TLS'}: {text}"
        if "VerificationError" in type(reason).__name__:
            return f"certificate: {type(reason).__name__}"
    hung_up = [reason for reason in reasons if isinstance(reason, ConnectionClosed)]
    if reasons and len(hung_up) == len(reasons):
        return _with_details("hung up", hung_up[-1])
    return _with_details("no HTTP", reasons[0] if reasons else error)


def _reasons(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that a failed download wraps."""
    inner = error.__cause__ if isinstance(error, DownloadFailedError) else error
    if isinstance(inner, ResponseFailed):
        for failure in inner.reasons:
            yield from _reasons(failure.value)
    elif inner is not None:
        yield inner


def _openssl_message(error: BaseException) -> str:
    # an OpenSSL error carries a list of (library, function, words)
    parts = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return ", ".join(str(part[-1]) for part in parts) or "the handshake failed"


def _with_details(name: str, error: BaseException) -> str:
    details = str(error)
    return f"{name}: {details}" if details else name


def visit_of_response(crawl: Crawl, response: Response) -> PageVisit:
    """Create the visit (record of a fetch) of a URL from its response."""
    assert response.request is not None
    return crawl.start_visit(response.request.meta[URL_ID], download_of(response))


def visit_of_error(
    crawl: Crawl, request: Request, error: Exception, *, answered: bool
) -> PageVisit:
    """Create the visit (record of a fetch) of a URL whose request failed or was refused.

    The argument ``answered`` is true if a response arrived, but could not be processed; such a
    response counts as a fetch.
    """
    ignored = isinstance(error, IgnoreRequest)
    visit = crawl.start_failed_visit(
        request.meta[URL_ID], str(error) if ignored else describe_error(error)
    )
    if ignored and not answered:
        visit.excluded = str(error)
    return visit


def download_of(response: Response) -> Download:
    """Convert a response to a `Download`."""
    media_type, encoding = content_type_of(response.headers)
    location = header_of(response.headers, "Location")
    return Download(
        status=response.status,
        body=response.body,
        content_type=media_type,
        encoding=encoding,
        location=resolve_header(response.url, location) if location else None,
        etag=_validator(response, "ETag"),
        last_modified=_validator(response, "Last-Modified"),
        robots=_fields(response, "X-Robots-Tag"),
        links=_fields(response, "Link"),
        header_links=read_header_links(
            response.url,
            [(name, value) for name in LINK_FIELDS for value in _fields(response, name)],
        ),
    )


def redirect_target(response: Response) -> str | None:
    """Return the target of a redirect, or None for another response or an invalid target."""
    return download_of(response).location if 300 <= response.status < 400 else None


def _fields(response: Response, name: str) -> tuple[str, ...]:
    return tuple(value.decode("latin-1") for value in response.headers.getlist(name))


def _validator(response: Response, name: str) -> str | None:
    value = header_of(response.headers, name)
    return value if value and len(value) <= _MAX_VALIDATOR else None


def header_of(headers: Headers, name: str) -> str:
    """Return the value of a header field, or an empty string."""
    return (headers.get(name) or b"").decode("latin-1").strip()


def content_type_of(headers: Headers) -> tuple[str | None, str | None]:
    """Return the media type and charset of a response (see `read_content_type`)."""
    return read_content_type(b",".join(headers.getlist("Content-Type")).decode("latin-1"))


def retry_after_of(response: Response) -> float | None:
    """Return the seconds in the header ``Retry-After``, or None."""
    return read_retry_after(header_of(response.headers, "Retry-After"), datetime.now(UTC))


class VisitLock:
    """Lock that one visit holds while its links are queued and the visit is recorded."""

    def __init__(self) -> None:
        self._lock = DeferredLock()
        self.holder: PageVisit | None = None

    @property
    def is_locked(self) -> bool:
        """True while a visit has the lock."""
        return self._lock.locked

    @asynccontextmanager
    async def hold(self, visit: PageVisit) -> AsyncIterator[None]:
        """Hold the lock for a visit within a ``with`` block."""
        await self.acquire(visit)
        try:
            yield
        finally:
            self.release(visit)

    async def acquire(self, visit: PageVisit) -> None:
        """Wait until no other visit holds the lock, then acquire the lock for a visit."""
        if self.holder is visit:
            return
        if self.is_locked:
            await maybe_deferred_to_future(self._lock.acquire())
        else:
            self._lock.acquire()
        self.holder = visit

    def release(self, visit: PageVisit) -> None:
        """Release the lock if the given visit holds it."""
        if self.holder is visit:
            self.holder = None
            self._lock.release()


class halt_on_error:  # noqa: N801  # used like a function; `contextmanager` is slower
    """Stop the crawl on an error that would also occur for the next page; see `Crawl.halt`."""

    __slots__ = ("_crawl", "_url_id")

    def __init__(self, crawl: Crawl, url_id: int) -> None:
        self._crawl, self._url_id = crawl, url_id

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            self._crawl.halt(self._url_id, time.monotonic())


def count_refetch(stats: StatsCollector, visit: PageVisit) -> None:
    """Count a page that was fetched again, in Scrapy's statistics."""
    stats.inc_value("focuscrawl/hubs_again")
    if visit.failure is not None:
        stats.inc_value("focuscrawl/failed_on")
    if visit.status == NOT_MODIFIED:
        stats.inc_value("focuscrawl/hubs_not_modified")
    stats.inc_value("focuscrawl/hubs_new_links", visit.links)
