"""Serves metrics of a running crawl to Prometheus, by default only on the local machine."""

from __future__ import annotations

import errno
import importlib
import ipaddress
import logging
import socket
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from focuscrawl.engine.component import Component
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class Metrics(Component):
    """Serves metrics at ``/metrics`` of the configured address and port.

    The port 0, which is the default, disables the extension. A thread serves the current values of
    the metrics.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._port = self._crawl.config.metrics_port
        self._address = self._crawl.config.metrics_address
        if not self._port:
            raise NotConfigured
        from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - an extra

        from focuscrawl.extensions.metrics_collector import CrawlCollector  # noqa: PLC0415

        registry = CollectorRegistry(auto_describe=False)
        registry.register(CrawlCollector(crawler))
        self._server, self._thread = start_http_server(self._port, self._address, registry)

    def spider_opened(self) -> None:
        """Log the URL of the metrics; warn if other machines can read the metrics."""
        address = ipaddress.ip_address(self._address)
        host = f"[{address}]" if address.version == 6 else str(address)
        if address.is_loopback:
            logger.info("Serving metrics at http://%s:%d/metrics", host, self._port)
        else:
            logger.warning(
                "Serving metrics at http://%s:%d/metrics to everybody who can reach this address",
                host,
                self._port,
            )

    def spider_closed(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def check_port(port: int, address: str) -> None:
    """Raise `UserError` if the metrics port cannot be used; called before any file is written."""
    if not port:
        return
    with require_extra("metrics", "FOCUSCRAWL_METRICS_PORT"):
        importlib.import_module("prometheus_client")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise UserError(
                    f"FOCUSCRAWL_METRICS_ADDRESS={address} is no address of this machine: "
                    "give an address of this machine, or 0.0.0.0 for all"
                ) from None
            why = "is in use" if error.errno == errno.EADDRINUSE else f"fails ({error.strerror})"
            raise UserError(f"FOCUSCRAWL_METRICS_PORT={port} {why}: give another port") from None
