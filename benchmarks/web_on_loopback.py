"""Serves a recorded or generated web on the loopback network, with or without TLS.

Run: ``python benchmarks/web_on_loopback.py WEB [--tls] [--close]``. The server runs until its
standard input ends, and the first printed line is its port. As in a replay, links to pages that
are not recorded lead nowhere. HTML is compressed, as by most servers. With ``--close``, each
connection ends after one page.

A crawl with the settings `settings_of` connects to the server for every URL. The crawl then has
all the work of a live crawl, such as robots.txt, redirects and the recording.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from replays import ROOT
from twisted.internet.address import IPv4Address

from focuscrawl.downloadhandlers.live import LiveDownloadHandler
from focuscrawl.foundation.urls import normalize
from focuscrawl.webs import open_web

sys.path.append(str(ROOT / "tests"))
from server.certificates import Authority

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focuscrawl.webs import Web

ADDRESS = "127.0.0.1"
_LINK = re.compile(
    rb"""(<(?:a|area|link)\b[^>]*?\bhref\s*=\s*|<i?frame\b[^>]*?\bsrc\s*=\s*)"""
    rb"""("[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.IGNORECASE,
)
_BASE = re.compile(rb"""<base\b[^>]*?\bhref\s*=\s*["']?([^\s"'>]+)""", re.IGNORECASE)
_NOT_SENT = {"content-length", "content-encoding", "transfer-encoding", "connection"}


class Pages:
    """The responses of a server, as bytes."""

    def __init__(self, web: Web, *, close: bool) -> None:
        self._web = web
        self._close = close
        self.response = cache(self._response)

    def _response(self, url: str) -> bytes:
        name = normalize(url)
        found = None if name is None else self._web.resolve([name])[0]
        answer = None if found is None else self._web.fetch(found)
        if found is None or answer is None:
            return self._written(404, [("Content-Type", "text/plain")], b"")
        headers = [each for each in answer.headers if each[0].lower() not in _NOT_SENT]
        body = answer.body
        if answer.content_type[0] == "text/html":
            body = gzip.compress(self._closed(found, body), 6)
            headers.append(("Content-Encoding", "gzip"))
        return self._written(answer.status, headers, body)

    def _written(self, status: int, headers: list[tuple[str, str]], body: bytes) -> bytes:
        end = [("Content-Length", str(len(body)))] + [("Connection", "close")] * self._close
        lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers + end)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body

    def _closed(self, url: str, body: bytes) -> bytes:
        """Return the page with every link as recorded, or empty if its target is not."""
        named = _BASE.search(body)
        base = urljoin(url, named[1].decode("utf-8", "replace")) if named else url

        def rewritten(link: re.Match[bytes]) -> bytes:
            value = unescape(link[2].strip(b"\"'").decode("utf-8", "replace")).strip()
            with contextlib.suppress(ValueError):
                target = normalize(urljoin(base, value))
                if target is not None:
                    recorded = self._web.resolve([target])[0]
                    if recorded == target:
                        return link[0]
                    return link[1] + f'"{escape(recorded or "data:,")}"'.encode()
            return link[0]

        return _LINK.sub(rewritten, body)


def context_of_names() -> ssl.SSLContext:
    """Return a server's side of TLS, with a certificate of its own for each host name."""

    @cache
    def of(name: str) -> ssl.SSLContext:
        with tempfile.TemporaryDirectory() as folder:
            return Authority(Path(folder)).context(name)

    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = of(name or ADDRESS)

    context = of(ADDRESS)
    context.sni_callback = choose
    return context


async def serve(web: str, *, tls: bool, close: bool) -> None:
    """Serve a web until standard input ends."""
    pages = Pages(open_web(web), close=close)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode("latin-1")
                host = re.search(rb"(?i)\nhost: *(\S+)", head)
                name = "" if host is None else host[1].decode("latin-1")
                writer.write(pages.response(f"https://{name}{path}"))
                await writer.drain()
                if close:
                    break
        writer.close()

    context = context_of_names() if tls else None
    server = await asyncio.start_server(answer, ADDRESS, 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)


@contextlib.contextmanager
def serving(web: str, *, tls: bool = False, close: bool = False) -> Iterator[dict[str, Any]]:
    """Serve a web in another process during the ``with`` block; yield settings for a crawl."""
    command = [sys.executable, __file__, web, *["--tls"] * tls, *["--close"] * close]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield settings_of(int(server.stdout.readline()), tls=tls)
        finally:
            server.stdin.close()


def settings_of(port: int, *, tls: bool) -> dict[str, Any]:
    """Return the settings of a crawl that fetches from the server, without delays.

    As in a replay, the crawl sends one request at a time, and therefore fetches the same pages.
    """
    handler = f"{Path(__file__).stem}.LoopbackHandler"
    return {
        "TWISTED_DNS_RESOLVER": f"{Path(__file__).stem}.LoopbackResolver",
        "DOWNLOAD_HANDLERS": json.dumps({"http": handler, "https": handler}),
        "LOOPBACK_PORT": port,
        "LOOPBACK_SCHEME": "https" if tls else "http",
        "FOCUSCRAWL_PRIVATE_ADDRESSES": ADDRESS,
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": 0,
    }


class LoopbackResolver:
    """Twisted `IHostnameResolver` that returns the address and the port of the server."""

    def __init__(self, reactor: Any, port: int) -> None:
        self._reactor = reactor
        self._address = IPv4Address("TCP", ADDRESS, port)

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Any) -> Self:
        return cls(reactor, crawler.settings.getint("LOOPBACK_PORT"))

    def install_on_reactor(self) -> None:
        self._reactor.installNameResolver(self)

    def resolveHostName(self, receiver: Any, *_: Any, **__: Any) -> Any:  # noqa: N802 - Twisted's name
        receiver.resolutionBegan(self)
        receiver.addressResolved(self._address)
        receiver.resolutionComplete()
        return self


class LoopbackHandler(LiveDownloadHandler):
    """Sends every request with the scheme of the server; each host has its own connections."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._scheme = crawler.settings["LOOPBACK_SCHEME"]

    async def download_request(self, request: Request) -> Response:
        url = urlsplit(request.url)._replace(scheme=self._scheme).geturl()
        sent = request.replace(url=url)
        try:
            response = await super().download_request(sent)
        finally:
            request.meta.update(sent.meta)
        return response.replace(url=request.url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("web")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--close", action="store_true")
    given = parser.parse_args()
    asyncio.run(serve(given.web, tls=given.tls, close=given.close))


if __name__ == "__main__":
    main()
