"""From Scrapy's responses and failures to visits of the crawl; names of causes of failures."""

from __future__ import annotations

import time
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
from focuscrawl.foundation.urls import resolve
from focuscrawl.frontier.hosts import read_retry_after
from focuscrawl.page import read_content_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy import Request
    from scrapy.http import Headers, Response
    from scrapy.statscollectors import StatsCollector

    from focuscrawl.crawl import Crawl, PageVisit


# Keys in ``request.meta``

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

_LONGEST_FIELD = 256  # characters of a validator; longer ones are of no use


class UnusableError(Exception):
    """An answer that nobody can use, for a reason of the web's, not of a program's."""

    cause = "unusable"


class TooLargeError(UnusableError):
    """The answer holds more than the crawl takes in."""

    cause = "too large"


class NotInArchiveError(UnusableError):
    """An archive lacks what its index names."""

    cause = "not in the archive"


class UnpackingError(UnusableError):
    """The body is not packed as the answer says."""

    cause = "cannot be unpacked"


class NoStatusError(UnusableError):
    """The number in place of a status is none: the answer is no HTTP."""

    cause = "no HTTP"


class PrivateAddressError(Exception):
    """The host of a URL is at an address that the crawl may not connect to.

    It is none of the exceptions that Scrapy retries.
    """


_CAUSES: tuple[tuple[type[Exception], str], ...] = (
    (DownloadTimeoutError, "timed out"),
    (DownloadConnectionRefusedError, "refused"),
    (CannotResolveHostError, "host not found"),
    (ResponseDataLossError, "cut short"),
)


def is_web_error(error: BaseException) -> bool:
    """Tell whether an error is one of a bad web's, or a refusal; not one of a program's."""
    everyday = (DownloadFailedError, DownloadCancelledError, UnusableError, PrivateAddressError)
    return isinstance(error, (*everyday, *(kind for kind, _ in _CAUSES), IgnoreRequest))


def describe_error(error: Exception) -> str:
    """Return ``cause: details``; an error that is none of a bad web keeps its own name."""
    if isinstance(error, DownloadCancelledError):  # nothing else cancels a download
        return f"too large: {error}" if str(error) else "too large: more than DOWNLOAD_MAXSIZE"
    for kind, name in _CAUSES:
        if isinstance(error, kind):
            return _with_details(name, error)
    if isinstance(error, UnusableError):
        return _with_details(error.cause, error)
    if isinstance(error, DownloadFailedError):
        return _failed(error)
    return _with_details(type(error).__name__, error)


def _failed(error: DownloadFailedError) -> str:
    """Return the cause of an error for which Scrapy has one name only."""
    reasons = [*_reasons(error)]
    for reason in reasons:
        if isinstance(reason, UnusableError):
            return _with_details(reason.cause, reason)
    for reason in reasons:
        if type(reason).__module__.startswith("OpenSSL"):
            text = _openssl(reason)
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


def _openssl(error: BaseException) -> str:
    # an OpenSSL error carries a list of (library, function, words)
    parts = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return ", ".join(str(part[-1]) for part in parts) or "the handshake failed"


def _with_details(name: str, error: BaseException) -> str:
    details = str(error)
    return f"{name}: {details}" if details else name


def visit_of_response(crawl: Crawl, response: Response) -> PageVisit:
    """Start the visit of a URL from the frontier, with its answer."""
    assert response.request is not None
    return crawl.start_visit(response.request.meta[URL_ID], download_of(response))


def visit_of_error(
    crawl: Crawl, request: Request, error: Exception, *, answered: bool
) -> PageVisit:
    """Start the visit of a URL that brought no answer, or may not be asked for one.

    Parameters
    ----------
    answered : an answer came, and processing it failed: it counts as a fetch
    """
    ignored = isinstance(error, IgnoreRequest)
    visit = crawl.start_failed_visit(
        request.meta[URL_ID], str(error) if ignored else describe_error(error)
    )
    if ignored and not answered:
        visit.excluded = str(error)
    return visit


def download_of(response: Response) -> Download:
    """Return a response as the crawl takes it."""
    media_type, encoding = read_content_type(header_of(response.headers, "Content-Type"))
    location = (response.headers.get("Location") or b"").decode("utf-8", "replace").strip()
    return Download(
        status=response.status,
        body=response.body,
        content_type=media_type,
        encoding=encoding,
        location=resolve(response.url, [location])[0] if location else None,
        etag=_validator(response, "ETag"),
        last_modified=_validator(response, "Last-Modified"),
        robots=_fields(response, "X-Robots-Tag"),
        links=_fields(response, "Link"),
    )


def redirect_target(response: Response) -> str | None:
    """Return where a redirect leads; None: it is none, or leads nowhere."""
    return download_of(response).location if 300 <= response.status < 400 else None


def _fields(response: Response, name: str) -> tuple[str, ...]:
    return tuple(value.decode("latin-1") for value in response.headers.getlist(name))


def _validator(response: Response, name: str) -> str | None:
    value = header_of(response.headers, name)
    return value if value and len(value) <= _LONGEST_FIELD else None


def header_of(headers: Headers, name: str) -> str:
    """Return the value of a header field; empty if it is missing."""
    return (headers.get(name) or b"").decode("latin-1").strip()


def retry_after_of(response: Response) -> float | None:
    """Return the seconds that an answer asks to wait; None if it does not."""
    return read_retry_after(header_of(response.headers, "Retry-After"), datetime.now(UTC))


class VisitLock:
    """Lets one visit at a time be expanded and recorded.

    Attributes
    ----------
    holder : the visit whose turn it is
    """

    def __init__(self) -> None:
        self._lock = DeferredLock()
        self.holder: PageVisit | None = None

    @property
    def is_locked(self) -> bool:
        """True if a visit would have to wait."""
        return self._lock.locked

    @asynccontextmanager
    async def hold(self, visit: PageVisit) -> AsyncIterator[None]:
        """Wait for the turn of a visit, which ends with the context."""
        await self.acquire(visit)
        try:
            yield
        finally:
            self.release(visit)

    async def acquire(self, visit: PageVisit) -> None:
        """Wait until no other visit is between `Crawl.expand` and `Crawl.record`."""
        if self.holder is visit:
            return
        if self.is_locked:
            await maybe_deferred_to_future(self._lock.acquire())
        else:
            self._lock.acquire()
        self.holder = visit

    def release(self, visit: PageVisit) -> None:
        """Let the next visit have its turn, if it is this one's."""
        if self.holder is visit:
            self.holder = None
            self._lock.release()


class halt_on_error:  # noqa: N801  # used as a function; a generator would cost more than its work
    """Halt the crawl on an error that the next page would meet, too: see `Crawl.halt`."""

    __slots__ = ("_crawl", "_number")

    def __init__(self, crawl: Crawl, url_id: int) -> None:
        self._crawl, self._number = crawl, url_id

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            self._crawl.halt(self._number, time.monotonic())


def count_refetch(stats: StatsCollector, visit: PageVisit) -> None:
    """Count a page that was fetched once more."""
    stats.inc_value("focuscrawl/hubs_again")
    if visit.failure is not None:
        stats.inc_value("focuscrawl/failed_on")
    if visit.status == NOT_MODIFIED:
        stats.inc_value("focuscrawl/hubs_not_modified")
    stats.inc_value("focuscrawl/hubs_new_links", visit.links)
