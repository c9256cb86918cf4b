"""What a kept connection, a resolver or a proxy does cannot lead into the user's own network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.settings import ITEM_PIPELINES

from .running import BICYCLES, QUICK, Run, crawl
from .serving import serving

#: leads outside when it is first looked up, and inside from then on; the others stay outside
CHANGING = {
    "changing.example": [["127.0.0.21"], ["127.0.0.22"]],
    **{f"outer-{number}.example": [["127.0.0.21"]] for number in range(3)},
}
#: by what they are, resolvers that do not keep what a name led to
RESOLVERS: dict[str, dict[str, object]] = {
    "another": {"TWISTED_DNS_RESOLVER": "server.names.Names"},
    "no-cache": {"TWISTED_DNS_RESOLVER": "server.names.Threaded", "DNSCACHE_ENABLED": 0},
    "small-cache": {"TWISTED_DNS_RESOLVER": "server.names.Threaded", "DNSCACHE_SIZE": 1},
}


@dataclass(frozen=True)
class Hanging:
    """The servers of `tests/server/hanging.py`: their ports, and what they noted."""

    port: int
    tls: int
    log: Path

    def noted(self, server: str) -> list[dict[str, Any]]:
        """Return what one of them was sent, in that order."""
        lines = map(json.loads, self.log.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if line["server"] == server]

    def paths(self, server: str) -> list[str]:
        """Return what one of them was asked for, or sent, besides connections."""
        return [line["what"] for line in self.noted(server) if line["what"]]


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Hanging]:
    log = tmp_path / "log"
    with serving("server.hanging", log) as said:
        yield Hanging(**said, log=log)


def explore(folder: Path, seeds: str, names: object, code: object = 0, **settings: object) -> Run:
    """Crawl what is outside."""
    given = QUICK | {
        "TEST_NAMES": json.dumps(names),
        "TWISTED_DNS_RESOLVER": "server.names.Names",
        "DOWNLOAD_TIMEOUT": 60,
        "FOCUSCRAWL_BACKOFF": 0.1,
        "FOCUSCRAWL_BACKOFF_MAX": 1,
        "FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.21",
    }
    given |= BICYCLES | {"strategy": "breadth-first"} | settings
    return crawl(folder, code=code, **given, seeds=seeds, budget=50)


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_kept_connection_that_ends_leads_nowhere_else(
    hanging: Hanging, tmp_path: Path, scheme: str, resolver: str
) -> None:
    port = hanging.tls if scheme == "https" else hanging.port
    seeds = ",".join(f"{scheme}://{name}:{port}/" for name in CHANGING)
    run = explore(tmp_path / "crawl", seeds, CHANGING, **RESOLVERS[resolver])
    assert "/0" in hanging.paths("outer")  # asked for where the server hung up
    assert hanging.noted("inner") == []
    errors = {error for (error,) in run.kept.query("SELECT error FROM pages WHERE status = 0")}
    assert len(run.kept.order) == 16
    assert all(error.startswith("PrivateAddressError: changing.") for error in errors)
    assert errors or resolver == "small-cache"  # it may hold the name when that is looked up


def test_who_hangs_up_is_asked_again_after_the_delay(hanging: Hanging, tmp_path: Path) -> None:
    names = {"outer.example": [["127.0.0.21"]]}
    seeds = f"http://outer.example:{hanging.port}/"
    handlers = {"http": "server.downloadhandlers.Stamping"}
    run = explore(
        tmp_path / "crawl", seeds, names, DOWNLOAD_DELAY=1, DOWNLOAD_HANDLERS=json.dumps(handlers)
    )
    statuses = run.kept.query("SELECT status, count(*) FROM pages GROUP BY status")
    assert statuses == [(200, 4)]
    asked = [line for line in hanging.noted("outer") if line["what"] not in ("", "/robots.txt")]
    assert len(asked) > 4  # what was hung up on, again
    at = sorted(line["sent"] for line in asked)  # a request may be held up, and the next one not
    assert min(b - a for a, b in pairwise(at)) > 0.4


INSIDE = {"inner.example": [["127.0.0.22"]], "outer.example": [["127.0.0.21"]]}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_peer_is_checked_whoever_resolved_its_name(
    hanging: Hanging, tmp_path: Path, scheme: str
) -> None:
    port = hanging.tls if scheme == "https" else hanging.port
    smuggled = {"TWISTED_DNS_RESOLVER": "server.names.Smuggled"}
    seeds = f"{scheme}://inner.example:{port}/"
    run = explore(tmp_path / "crawl", seeds, INSIDE, code=3, **smuggled)
    assert hanging.noted("inner")  # connected to
    assert hanging.paths("inner") == []  # and sent nothing, not even to begin with TLS
    ((error,),) = run.kept.query("SELECT error FROM pages")
    assert error.startswith("PrivateAddressError: inner.example is at 127.0.0.22, a loopback")


def test_another_handler_is_told_no_address_of_a_private_network(
    hanging: Hanging, tmp_path: Path
) -> None:
    handlers = {"https": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}
    names = ("inner.example", "127.0.0.22", "outer.example")
    seeds = ",".join(f"https://{name}:{hanging.tls}/" for name in names)
    run = explore(tmp_path / "crawl", seeds, INSIDE, DOWNLOAD_HANDLERS=json.dumps(handlers))
    assert hanging.noted("inner") == []
    assert "/" in hanging.paths("outer")
    errors = {error for (error,) in run.kept.query("SELECT error FROM pages WHERE status = 0")}
    assert all(error.startswith("host not found") for error in errors)


def test_files_are_fetched_from_no_private_network(hanging: Hanging, tmp_path: Path) -> None:
    seeds = f"http://outer.example:{hanging.port}/"
    run = explore(
        tmp_path / "crawl",
        seeds,
        INSIDE,
        ITEM_PIPELINES=json.dumps({**ITEM_PIPELINES, "server.pipelines.Pictures": 950}),
        FILES_STORE=tmp_path / "files",
        TEST_PICTURES=",".join(
            f"http://{name}.example:{hanging.port}/robots.txt" for name in ("inner", "outer")
        ),
    )
    assert hanging.noted("inner") == []
    assert "inner.example is at 127.0.0.22, a loopback address" in run.stderr
