"""A name server whose answers change: ``-s TWISTED_DNS_RESOLVER=server.names.Names``."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from scrapy.resolver import CachingThreadedResolver
from twisted.internet.address import IPv4Address, IPv6Address

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


@dataclass(frozen=True)
class LookUp:
    """A look-up, which is over at once."""

    name: str


class Names:
    """Answers from ``TEST_NAMES``: by name the answers, of which the last one is for good.

    What is not in there answers to its own name, as an IP address does. An answer of None is
    never given.
    """

    def __init__(
        self, reactor: Any, answers: Mapping[str, Sequence[Sequence[str] | None]]
    ) -> None:
        self._reactor = reactor
        self._answers = {name: list(each) for name, each in answers.items()}

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Any) -> Self:
        """Make the resolver as Scrapy does."""
        return cls(reactor, crawler.settings.getdict("TEST_NAMES"))

    def install_on_reactor(self) -> None:
        """Answer whatever the process looks up."""
        self._reactor.installNameResolver(self)

    def resolveHostName(  # noqa: N802 - Twisted's name
        self,
        receiver: Any,
        host_name: str,
        portNumber: int = 0,  # noqa: N803
        *_: Any,
    ) -> LookUp:
        """Look up a name; see Twisted's `IHostnameResolver`."""
        answers: list[Sequence[str] | None] = self._answers.get(host_name, [[host_name]])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        look_up = LookUp(host_name)
        receiver.resolutionBegan(look_up)
        if answer is None:
            return look_up
        for address in answer:
            kind = IPv4Address if ipaddress.ip_address(address).version == 4 else IPv6Address
            receiver.addressResolved(kind("TCP", address, portNumber))
        receiver.resolutionComplete()
        return look_up


class Smuggled(Names):
    """Gives its answers past whoever listens in front, as a resolver could that has a fault."""

    def resolveHostName(  # noqa: N802 - Twisted's name
        self,
        receiver: Any,
        host_name: str,
        portNumber: int = 0,  # noqa: N803
        *_: Any,
    ) -> LookUp:
        """Look up a name for the last in the row of receivers."""
        while hasattr(receiver, "_receiver"):
            receiver = receiver._receiver
        return super().resolveHostName(receiver, host_name, portNumber)


class Threaded(CachingThreadedResolver):
    """Scrapy's own resolver, with its threads and its cache; the system answers as `Names` do."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Any) -> Self:
        """Make the resolver as Scrapy does."""
        answers = {
            name: list(each) for name, each in crawler.settings.getdict("TEST_NAMES").items()
        }

        def look_up(name: str) -> str:
            of_name = answers.get(name, [[name]])
            (address,) = of_name.pop(0) if len(of_name) > 1 else of_name[0]
            return str(address)

        socket.gethostbyname = look_up  # what the threads call
        return super().from_crawler(crawler, reactor)
