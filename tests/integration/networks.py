"""Crawl the outer and the inner network of `tests/server/networks.py`, with names that change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .running import BICYCLES, QUICK, Run, crawl
from .serving import serving

# by name, what each look-up answers; the last answer is for good
NAMES = {
    "inner.example": [["127.0.0.22"]],
    "sixth.example": [["::1"]],
    "mapped.example": [["::ffff:127.0.0.22"]],
    "both.example": [["127.0.0.22", "127.0.0.21"]],
    "moved-robots.example": [["127.0.0.21"]],
    "changing.example": [["127.0.0.21"], ["127.0.0.21"], ["127.0.0.22"]],  # robots.txt, a page
    "public.example": [["93.184.215.14"]],
    "partly.example": [["93.184.215.14", "10.0.0.7"]],
    "nowhere.example": [[]],
    "proxy.example": [["127.0.0.23"]],
}


@dataclass(frozen=True)
class Nets:
    """The servers: their ports, and what they noted, but for the first lines."""

    port: int
    tls: int
    log: Path
    seen: int = 0

    def noted(self) -> list[str]:
        """Return ``server what`` for every connection and every request."""
        return self.log.read_text(encoding="utf-8").splitlines()[self.seen :]

    def from_now(self) -> Nets:
        """Return the same with what is noted from now on."""
        return replace(self, seen=self.seen + len(self.noted()))

    def url(self, pattern: str) -> str:
        """Fill in the ports."""
        return pattern.replace("{port}", str(self.port)).replace("{tls}", str(self.tls))


@contextmanager
def listening(log: Path, site: Mapping[str, Any]) -> Iterator[Nets]:
    """Start the servers in a process of their own; `site` says where the outer one leads."""
    with serving("server.networks", log, site) as said:
        yield Nets(**said, log=log)


def explore(folder: Path, seeds: str, *options: str, code: object = 0, **given: object) -> Run:
    """Crawl with the name server of `NAMES`, without waiting."""
    settings = QUICK | {
        "TWISTED_DNS_RESOLVER": "server.names.Names",
        "TEST_NAMES": json.dumps(NAMES),
        "DOWNLOAD_TIMEOUT": 60,
        "FOCUSCRAWL_PRIVATE_ADDRESSES": "",
    }
    given = {**settings, **BICYCLES, "strategy": "breadth-first", "budget": 200, **given}
    return crawl(folder, *options, code=code, **given, seeds=seeds)
