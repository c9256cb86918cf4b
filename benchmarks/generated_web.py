"""A server of generated small pages on many hosts, fast enough for crawls of a million pages.

Run: ``python benchmarks/generated_web.py PAGES PORT OUT``. The server ends on SIGTERM, and writes
its requests to `OUT`. Every host is an address of the loopback network, 127.1.0.1 and so on, which
Linux provides without configuration. Three in ten pages are on the topic, and these link to
on-topic pages more often than others do.
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
_INSIDE = 4  # links to random pages of the host; two more links make every page reachable
_A_HOST = 250  # addresses of a network
_MIX, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_TOPICAL = 77  # of 256 pages
_SENTENCES, _ON_A_PAGE = 2000, 3
_ABSENT = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nnone"


@dataclass(frozen=True)
class GeneratedWeb:
    """Defines the content of every page; page n is number n // hosts on host n % hosts."""

    pages: int
    hosts: int
    port: int

    @classmethod
    def of(cls, pages: int, port: int) -> GeneratedWeb:
        """Create a web whose 32 to 500 hosts have some thousand pages each."""
        return cls(pages, min(500, max(32, pages // 1000)), port)

    def address(self, host: int) -> str:
        """Return the address of a host."""
        return f"127.1.{host // _A_HOST}.{1 + host % _A_HOST}"

    def url(self, number: int) -> str:
        """Return the URL of a page."""
        inside, host = divmod(number, self.hosts)
        return f"http://{self.address(host)}:{self.port}/p/{inside}"

    def number(self, host: str, path: str) -> int | None:
        """Return the page at a path of an address; None if there is none."""
        _, _, network, last = host.split(".")
        inside = path.removeprefix("/p/")
        if not inside.isdecimal():
            return None
        number = int(inside) * self.hosts + int(network) * _A_HOST + int(last) - 1
        return number if number < self.pages else None

    def of_topic(self, number: int) -> bool:
        """Tell whether a page is on the topic."""
        return (number * _MIX & _MASK) >> 56 < _TOPICAL

    def links(self, number: int) -> list[int]:
        """Return the distinct targets of a page's links."""
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
    """Requests and their times.

    Attributes
    ----------
    first : NDArray[np.float64] of shape (n_pages,)
        Time of the first request for each page; 0 without a request.
    again : list[tuple[int, float]]
        Page and time of all further requests.
    robots, absent, connections : int
        Numbers of such requests and of connections.
    """

    def __init__(self, pages: int) -> None:
        self.first = np.zeros(pages)
        self.again: list[tuple[int, float]] = []
        self.robots = self.absent = self.connections = 0

    def note(self, number: int) -> None:
        """Record a request for a page."""
        now = time.time()
        if self.first[number]:
            self.again.append((number, now))
        else:
            self.first[number] = now

    def save(self, path: Path) -> None:
        """Write all records to a file atomically."""
        draft = path.with_suffix(".draft.npz")
        again = np.array(self.again, np.float64).reshape(-1, 2)
        others = np.array([self.robots, self.absent, self.connections])
        np.savez(draft, first=self.first, again=again, others=others)
        draft.rename(path)


class _Connection(asyncio.Protocol):
    """Answers the requests of one connection in order."""

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
