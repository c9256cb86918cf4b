"""Fetches single pages of the live Web for a person who follows links."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from focuscrawl import __version__
from focuscrawl.errors import UserError
from focuscrawl.webs.web_protocol import Answer

if TYPE_CHECKING:
    from focuscrawl.foundation.networks import Networks
    from focuscrawl.webs.warc_recorder import WarcRecorder


_TIMEOUT = 30.0  # seconds
_MAX_BYTES = 10_000_000  # bytes of a body
_LAST_STATUS = 599
_MAX_REASON = 200  # characters of an error message from outside


class LiveWeb:
    """Fetches and records single pages of the live Web, but not from private networks.

    Parameters
    ----------
    networks : Networks
        Addresses that may be connected to.
    agent : str
        The User-Agent header.
    """

    def __init__(
        self, networks: Networks, recorder: WarcRecorder, agent: str = f"focuscrawl/{__version__}"
    ) -> None:
        self._networks = networks
        self._recorder = recorder
        self._agent = agent

    def resolve(self, urls: Sequence[str]) -> list[str | None]:
        """Return `urls` unchanged, because any URL may exist on the live Web."""
        return list(urls)

    def fetch(self, url: str) -> Answer:
        """Fetch a URL, and return the response without following redirects.

        Raises
        ------
        UserError
            The server does not answer, or its address is in a private network.
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
                raise http.client.BadStatusLine(
                    str(answer.status)
                )  # http.client checks the lower limit
            body = answer.read(_MAX_BYTES + 1)
        except (OSError, ValueError, http.client.HTTPException) as error:
            # ValueError: a negative chunk size
            reason = " ".join(str(error).split())[:_MAX_REASON] or type(error).__name__
            raise UserError(f"{url} does not answer ({reason}): choose another link") from None
        finally:
            connection.close()
        if len(body) > _MAX_BYTES:
            raise UserError(
                f"{url} is larger than {_MAX_BYTES // 1_000_000} MB: choose another link"
            )
        truncated = "disconnect" if answer.length else ""  # bytes that were announced but not sent
        self._recorder.record(
            url=url,
            at=at,
            request_headers=list(headers.items()),
            status=answer.status,
            reason=answer.reason,
            response_headers=answer.getheaders(),
            body_raw=body,
            truncated=truncated,
        )
        return Answer(url, answer.status, answer.getheaders(), body, truncated=truncated)

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        """Connect to the first address of a host, if all its addresses are allowed."""
        secure = scheme == "https"
        port = port or (443 if secure else 80)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise UserError(
                f"{host} is not found ({error.strerror}): choose another link"
            ) from None
        for *_, (address, *_) in found:
            refusal = self._networks.refusal(str(address))
            if refusal is not None:
                raise UserError(
                    f"{host} is at {address}, {refusal}: allow it with --private {address}"
                )
        # a second name look-up might give another address, so the socket is opened here
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
        try:
            address = str(found[0][4][0])
            connected = socket.create_connection((address, port), timeout=_TIMEOUT)
            if secure:
                connected = ssl.create_default_context().wrap_socket(
                    connected, server_hostname=host
                )
        except OSError as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{host} does not answer ({reason}): choose another link") from None
        connection.sock = connected
        return connection
