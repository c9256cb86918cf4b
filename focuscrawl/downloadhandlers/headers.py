"""An end to headers: Twisted reads them for as long as a server sends some."""

from __future__ import annotations

from typing import Any

from twisted.python.failure import Failure
from twisted.web._newclient import HEADER, STATUS

from focuscrawl.engine.download_errors import TooLargeError

_MOST = 256 * 1024  # bytes, early hints included; as much as Chromium reads


def bounded(factory_class: type[Any]) -> type[Any]:
    """Return a factory of HTTP client protocols that hang up on headers without end.

    Parameters
    ----------
    factory_class : a factory of Twisted's `HTTP11ClientProtocol`, or what Scrapy makes of it
    """

    class Bounded(factory_class):  # type: ignore[misc]
        """A factory of protocols whose answers have an end before their bodies begin."""

        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
            protocol = super().buildProtocol(addr)
            _count_headers(protocol)
            return protocol

    return Bounded


def _count_headers(protocol: Any) -> None:
    received, take = 0, protocol.dataReceived

    def data_received(data: bytes) -> None:
        nonlocal received
        parser = protocol._parser  # of the answer under way
        if parser is None or parser.state not in (STATUS, HEADER):
            received = 0
            take(data)
            return
        received += len(data)
        if received <= _MOST:
            take(data)
            return
        error = TooLargeError(f"more than {_MOST // 1024} KiB of headers")
        protocol._giveUp(Failure(error))  # type: ignore[no-untyped-call]
        protocol.transport.abortConnection()  # whatever is still to come

    protocol.dataReceived = data_received
