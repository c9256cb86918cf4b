"""Errors of downloads by the name that a summary counts."""

from __future__ import annotations

import pytest
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadFailedError,
    DownloadTimeoutError,
)
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed

from focuscrawl.downloadermiddlewares.robots import RobotsUnreachableError
from focuscrawl.engine.visits import TooLargeError, describe_error


def _failed(*reasons: Exception) -> DownloadFailedError:
    error = DownloadFailedError("all of it")
    error.__cause__ = ResponseFailed([Failure(reason) for reason in reasons])  # type: ignore[no-untyped-call]
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DownloadTimeoutError("took 30 s"), "timed out: took 30 s"),
        (CannotResolveHostError(), "host not found"),
        (DownloadCancelledError(""), "too large: more than DOWNLOAD_MAXSIZE"),
        (TooLargeError("of headers"), "too large: of headers"),
        (ValueError("a: b"), "ValueError: a: b"),
        (_failed(ResponseFailed([Failure(ValueError("not HTTP"))])), "no HTTP: not HTTP"),  # type: ignore[no-untyped-call]
        (_failed(ConnectionLost(), TooLargeError("of headers")), "too large: of headers"),
        (RobotsUnreachableError("HTTP 500"), "robots.txt: HTTP 500"),
        (
            RobotsUnreachableError.from_download_error(DownloadTimeoutError("took 30 s")),
            "timed out: robots.txt: took 30 s",
        ),
    ],
)
def test_the_cause_comes_first(error: Exception, said: str) -> None:
    assert describe_error(error) == said


@pytest.mark.parametrize("reason", [ConnectionLost(), ConnectionDone()])
def test_a_connection_that_ends_is_hung_up(reason: Exception) -> None:
    assert describe_error(_failed(reason)).partition(":")[0] == "hung up"
