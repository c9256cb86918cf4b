"""`LiveWeb`: single pages of the live Web, for a person who clicks; crawls go through Scrapy."""

from __future__ import annotations

import http.client
import socket
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from focuscrawl import __version__
from focuscrawl.errors import UserError
from focuscrawl.webs.web_protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focuscrawl.foundation.networks import Networks
    from focuscrawl.webs.warc_recorder import WarcRecorder


_TIMEOUT = 30.0  # seconds
_LARGEST = 10_000_000  # bytes of a body
_LAST_STATUS = 599
_SHOWN = 200  # characters of what was wrong
_LARGEST_TEXT = "10 MB"


class LiveWeb:
    """Fetches single pages, records them, and keeps out of private networks.

    Parameters
    ----------
    networks : what may be connected to
    recorder : writes what was fetched
    agent : the User-Agent
    """

    def __init__(
        self, networks: Networks, recorder: WarcRecorder, agent: str = f"focuscrawl/{__version__}"
    ) -> None:
        self._networks = networks
        self._recorder = recorder
        self._agent = agent

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return the URLs: all of them may be there."""
        return list(urls)

    def fetch(self, url: str) -> Answer:
        """Return the answer for a URL, a redirect as it is.

        Raises
        ------
        UserError
            There is none, or its server is in a network that must not be connected to.
        """
        parts = urlsplit(url)
        request = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        headers = {"User-Agent": self._agent, "Accept": "text/html,*/*;q=0.1"}
        headers["Accept-Encoding"] = "identity"
        at = datetime.now(UTC)
        connection = self._connection(parts.scheme, parts.hostname or "", parts.port)
        try:
            connection.request("GET", request, headers=headers)
            answer = connection.getresponse()
            if answer.status > _LAST_STATUS:
                raise http.client.BadStatusLine(str(answer.status))  # others it finds by itself
            body = answer.read(_LARGEST + 1)
        except (OSError, ValueError, http.client.HTTPException) as error:
            # ValueError: a chunk of less than no bytes
            reason = " ".join(str(error).split())[:_SHOWN] or type(error).__name__
            raise UserError(f"{url} does not answer ({reason}): take another link") from None
        finally:
            connection.close()
        if len(body) > _LARGEST:
            raise UserError(f"{url} is larger than {_LARGEST_TEXT}: take another link")
        self._recorder.record(
            url=url,
            at=at,
            request_headers=list(headers.items()),
            status=answer.status,
            reason=answer.reason,
            response_headers=answer.getheaders(),
            body_raw=body,
        )
        return Answer(url, answer.status, answer.getheaders(), body)

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        """Connect to the first address of a host, if all its addresses may be connected to."""
        secure = scheme == "https"
        port = port or (443 if secure else 80)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise UserError(f"{host} is not found ({error.strerror}): take another link") from None
        for *_, (address, *_) in found:
            refusal = self._networks.refusal(str(address))
            if refusal is not None:
                raise UserError(f"{host} is at {address}, {refusal}: --private {address} opens it")
        # the socket is made here: a second look-up might say another address
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
        try:
            address = str(found[0][4][0])
            made = socket.create_connection((address, port), timeout=_TIMEOUT)
            if secure:
                made = ssl.create_default_context().wrap_socket(made, server_hostname=host)
        except OSError as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{host} does not answer ({reason}): take another link") from None
        connection.sock = made
        return connection
