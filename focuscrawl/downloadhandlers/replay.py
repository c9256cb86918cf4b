"""The download handler for a recording (saved pages), which opens no network connection."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from scrapy.http import Headers

from focuscrawl.engine.component import Component
from focuscrawl.engine.private import response_class
from focuscrawl.engine.visits import NotInArchiveError, TooLargeError
from focuscrawl.errors import RequestCancelledError, UserError
from focuscrawl.foundation.urls import normalize
from focuscrawl.webs.web_protocol import is_not_modified

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from focuscrawl.webs.web_protocol import Answer


logger = logging.getLogger(__name__)

_SINCE = "If-Modified-Since"
_NOT_MODIFIED_HEADERS = frozenset(
    {"etag", "last-modified", "date", "cache-control", "expires", "vary"}
)


class ReplayDownloadHandler(Component):
    """Returns responses from the crawl's recording; URLs not in the recording get status 404."""

    lazy = False

    async def download_request(self, request: Request) -> Response:
        """Return the recorded response.

        Raises
        ------
        TooLargeError
            The recorded body is larger than the limit of a crawl.
        NotInArchiveError
            The web is an archive that lacks a response of its index.
        RequestCancelledError
            The recording cannot be read any more. The crawl is halted.
        """
        web = self._crawl.web
        assert web is not None
        url = normalize(request.url)
        try:
            known = None if url is None else web.resolve([url])[0]
            answer = None if known is None else web.fetch(known)
        except UserError as error:
            logger.error("Cannot read the recording: %s", error)
            self._crawl.halt(None, time.monotonic())
            raise RequestCancelledError(str(error)) from None
        if answer is not None and answer.too_large:
            raise TooLargeError("the recorded body")
        if answer is not None and answer.failure:
            raise NotInArchiveError(answer.failure)
        if answer is None:
            status, headers, body = 404, Headers({"Content-Type": "text/plain"}), b""
        elif is_not_modified(answer, _field(request, "If-None-Match"), _field(request, _SINCE)):
            status, headers, body = 304, _headers(answer, _NOT_MODIFIED_HEADERS), b""
        else:
            status, body = answer.status, answer.body
            headers = _headers(answer)
        kind = response_class(headers, request.url, body)
        flags = [answer.truncated] if answer is not None and answer.truncated else None
        return kind(
            request.url, status=status, headers=headers, body=body, flags=flags, request=request
        )

    async def close(self) -> None:
        """Do nothing, because a replay has no network connections."""


def _field(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    return None if value is None else value.decode("latin-1")


def _headers(answer: Answer, only: frozenset[str] | None = None) -> Headers:
    headers = Headers(encoding="latin-1")  # as the web decoded the values
    for name, value in answer.headers:
        if only is None or name.lower() in only:
            headers.appendlist(name, value)
    return headers
