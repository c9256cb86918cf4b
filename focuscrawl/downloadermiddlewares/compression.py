"""Unpacks answers, also those that are made to hurt whoever unpacks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from focuscrawl.engine.download_errors import TooLargeError, UnpackingError
from focuscrawl.engine.meta import ROBOTS

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

_LARGE = 100_000  # bytes as they were sent; they may be gzip members by the thousand
_MOST_CODINGS = 2  # as many as a server and a proxy before it add by mistake


class CompressionMiddleware(HttpCompressionMiddleware):
    """Scrapy's own, which stops at ``DOWNLOAD_MAXSIZE``; its failures are named and counted.

    Codings upon codings are refused: unpacking each takes as long as unpacking a large page.
    """

    async def process_response(  # type: ignore[override]  # Scrapy's is no coroutine
        self, request: Request, response: Response
    ) -> Request | Response:
        """Unpack the body; a large one in a thread.

        Raises
        ------
        TooLargeError
            It is larger than ``DOWNLOAD_MAXSIZE``.
        UnpackingError
            It is not what its ``Content-Encoding`` says, or was packed too often.
        """
        codings = b",".join(response.headers.getlist("Content-Encoding"))
        if codings.count(b",") >= _MOST_CODINGS:
            raise UnpackingError(f"packed {codings.count(b',') + 1} times over")
        if ROBOTS in request.meta:  # it may be loaded beyond the limit, but not unpacked
            request = request.replace(meta={})
        try:
            unpack = super().process_response
            if not codings or len(response.body) <= _LARGE:
                return unpack(request, response)
            return await maybe_deferred_to_future(deferToThread(unpack, request, response))
        except IgnoreRequest as error:
            raise TooLargeError(str(error)) from error
        except Exception as error:  # every library has an error of its own, with no common base
            said = codings.decode("latin-1")
            raise UnpackingError(f"no {said}: {error}") from error
