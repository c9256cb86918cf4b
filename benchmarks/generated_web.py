"""Hosts of small pages made of arithmetic, over HTTP: cheap enough to be crawled to the million.

Run: ``python benchmarks/generated_web.py PAGES PORT OUT``; ends on SIGTERM, and writes to `OUT`
what it was asked for. Every host is an address of the loopback network, 127.1.0.1 and so on, which
Linux has without being told. Three pages of ten are of the topic; links from these lead to their
like more often than others do.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from focuscrawl.webs.synthetic.vocabulary import TOPICS, RandomStream, sentence

TOPIC = "/Sports/Cycling"
OUTSIDE = 2  # links of a page to other hosts
_INSIDE = 4  # to any page of its own, besides two that only this page is sure to link to
_A_HOST = 250  # addresses of a network
_MIX, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_TOPICAL = 77  # of 256 pages
_SENTENCES, _ON_A_PAGE = 2000, 3
_ABSENT = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nnone"


@dataclass(frozen=True)
class GeneratedWeb:
    """Says what every page is.

    Page n is on host n % hosts and is number n // hosts there.

    Attributes
    ----------
    pages, hosts : how many there are
    port : of all hosts
    """

    pages: int
    hosts: int
    port: int

    @classmethod
    def of(cls, pages: int, port: int) -> GeneratedWeb:
        """Make a web; its hosts have some thousand pages, but there are 32 to 500."""
        return cls(pages, min(500, max(32, pages // 1000)), port)

    def address(self, host: int) -> str:
        """Return the address of a host."""
        return f"127.1.{host // _A_HOST}.{1 + host % _A_HOST}"

    def url(self, number: int) -> str:
        """Return the URL of a page."""
        inside, host = divmod(number, self.hosts)
        return f"http://{self.address(host)}:{self.port}/p/{inside}"

    def number(self, host: str, path: str) -> int | None:
        """Return the page at a path of an address; None: there is none."""
        _, _, network, last = host.split(".")
        inside = path.removeprefix("/p/")
        if not inside.isdecimal():
            return None
        number = int(inside) * self.hosts + int(network) * _A_HOST + int(last) - 1
        return number if number < self.pages else None

    def of_topic(self, number: int) -> bool:
        """Tell whether a page is of the topic."""
        return (number * _MIX & _MASK) >> 56 < _TOPICAL

    def links(self, number: int) -> list[int]:
        """Return where the links of a page lead, each once."""
        rng, hosts = Random(number), self.hosts
        inside, host = divmod(number, hosts)
        draw, topical = rng.random, self.of_topic(number)
        on_host = (self.pages - host + hosts - 1) // hosts
        targets = [host + hosts * child for child in (2 * inside + 1, 2 * inside + 2)]
        targets = [target for target in targets if target < self.pages]
        for i in range(_INSIDE + OUTSIDE):
            for _ in range(2 if topical else 1):
                if i < _INSIDE:
                    target = host + hosts * int(draw() * on_host)
                else:
                    target = int(draw() * self.pages)
                if self.of_topic(target):
                    break
            targets.append(target)
        return [target for target in dict.fromkeys(targets) if target != number]


class Pages:
    """The HTML of a web's pages."""

    def __init__(self, web: GeneratedWeb) -> None:
        self._web = web
        topics = [topic.path for topic in TOPICS]
        draws = RandomStream(0)
        own = topics.index(TOPIC)
        others = [i for i in range(len(topics)) if i != own]
        self._topical = [sentence(own, 0.9, draws) for _ in range(_SENTENCES)]
        self._other = [sentence(draws.pick(others), 0.9, draws) for _ in range(_SENTENCES)]

    def html(self, number: int) -> str:
        """Return a page."""
        web, draw = self._web, Random(~number).random
        sentences = self._topical if web.of_topic(number) else self._other
        text = " ".join(sentences[int(draw() * _SENTENCES)] for _ in range(_ON_A_PAGE))
        links = " ".join(
            f'<a href="{web.url(target)}">page {target}</a>' for target in web.links(number)
        )
        return (
            f"<!DOCTYPE html><html><head><title>Page {number}</title></head>"
            f"<body><p>{text}</p><p>{links}</p></body></html>"
        )


class Asked:
    """What was asked for, and when.

    Attributes
    ----------
    first : float64 (pages,), time of the first request for each page; 0: there was none
    again : (page, time) of all others
    robots, absent, connections : how many
    """

    def __init__(self, pages: int) -> None:
        self.first = np.zeros(pages)
        self.again: list[tuple[int, float]] = []
        self.robots = self.absent = self.connections = 0

    def note(self, number: int) -> None:
        """Take note of a request for a page."""
        now = time.time()
        if self.first[number]:
            self.again.append((number, now))
        else:
            self.first[number] = now

    def save(self, path: Path) -> None:
        """Write it down, whole or not at all."""
        draft = path.with_suffix(".draft.npz")
        again = np.array(self.again, np.float64).reshape(-1, 2)
        others = np.array([self.robots, self.absent, self.connections])
        np.savez(draft, first=self.first, again=again, others=others)
        draft.rename(path)


class _Connection(asyncio.Protocol):
    """Answers the requests of one connection, as they come."""

    def __init__(self, pages: Pages, web: GeneratedWeb, asked: Asked) -> None:
        self._pages, self._web, self._asked = pages, web, asked
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host = transport.get_extra_info("sockname")[0]
        self._asked.connections += 1

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            request, _, self._received = self._received.partition(b"\r\n\r\n")
            self._transport.write(self._answer(request.split(b" ", 2)[1].decode()))

    def _answer(self, path: str) -> bytes:
        if path == "/robots.txt":
            self._asked.robots += 1
            return _ok("text/plain", "User-agent: *\nDisallow: /private/\n")
        number = self._web.number(self._host, path)
        if number is None:
            self._asked.absent += 1
            return _ABSENT
        self._asked.note(number)
        return _ok("text/html", self._pages.html(number))


def _ok(kind: str, text: str) -> bytes:
    body = text.encode()
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def serve(web: GeneratedWeb, out: Path) -> None:
    """Serve a web until SIGTERM."""
    asked, pages, loop = Asked(web.pages), Pages(web), asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    addresses = [web.address(host) for host in range(web.hosts)]
    server = await loop.create_server(
        lambda: _Connection(pages, web, asked), addresses, web.port, backlog=1000
    )
    print("ready", flush=True)
    await ended.wait()
    server.close()
    asked.save(out)


if __name__ == "__main__":
    asyncio.run(serve(GeneratedWeb.of(int(sys.argv[1]), int(sys.argv[2])), Path(sys.argv[3])))
