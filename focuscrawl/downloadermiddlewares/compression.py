"""Unpacks answers, also those that are made to hurt whoever unpacks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest

from focuscrawl.engine.download_errors import TooLargeError, UnpackingError
from focuscrawl.engine.meta import ROBOTS

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

_MOST_CODINGS = 2  # as many as a server and a proxy before it add by mistake


class CompressionMiddleware(HttpCompressionMiddleware):
    """Scrapy's own, which stops at ``DOWNLOAD_MAXSIZE``; its failures are named and counted.

    Codings upon codings are refused: unpacking each takes as long as unpacking a large page.
    """

    def process_response(  # type: ignore[override]  # Scrapy's third parameter is on its way out
        self, request: Request, response: Response
    ) -> Request | Response:
        """Unpack the body.

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
            return super().process_response(request, response)
        except IgnoreRequest as error:
            raise TooLargeError(str(error)) from error
        except Exception as error:  # every library has an error of its own, with no common base
            said = codings.decode("latin-1")
            raise UnpackingError(f"no {said}: {error}") from error
