"""Causes of failed downloads, in words that a summary can count; errors of our own for some."""

from __future__ import annotations

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
from twisted.internet.error import ConnectionClosed
from twisted.web.client import ResponseFailed

if TYPE_CHECKING:
    from collections.abc import Iterator


class UnusableError(Exception):
    """An answer that nobody can use, for a reason that the crawl's user need not look into."""

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
    """The number in place of a status is none: such an answer is no HTTP."""

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


def is_everyday(error: BaseException) -> bool:
    """Tell whether an error is one of a bad web's, or a refusal; not one of a program's."""
    everyday = (DownloadFailedError, DownloadCancelledError, UnusableError, PrivateAddressError)
    return isinstance(error, (*everyday, *(kind for kind, _ in _CAUSES), IgnoreRequest))


def cause(error: Exception) -> str:
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
    """Tell apart what Scrapy has one name for."""
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
    """Return what a failed download is made of, without the wrappings."""
    inner = error.__cause__ if isinstance(error, DownloadFailedError) else error
    if isinstance(inner, ResponseFailed):
        for failure in inner.reasons:
            yield from _reasons(failure.value)
    elif inner is not None:
        yield inner


def _openssl(error: BaseException) -> str:
    """Return the words of an OpenSSL error, which carries a list of (library, function, words)."""
    parts = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return ", ".join(str(part[-1]) for part in parts) or "the handshake failed"


def _with_details(name: str, error: BaseException) -> str:
    details = str(error)
    return f"{name}: {details}" if details else name
