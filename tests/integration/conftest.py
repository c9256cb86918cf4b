"""Fixtures of whole crawls."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.webs.synthetic import SyntheticWeb

from .badweb import BadWeb, listening
from .running import TOPIC, Run, crawl
from .serving import serving
from .studio import open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def demo() -> dict[str, str]:
    """Arguments of a crawl of the synthetic web."""
    seeds = ",".join(SyntheticWeb().seeds(TOPIC))
    return {
        "web": "demo",
        "critic": "models/demo",
        "topic": TOPIC,
        "seeds": seeds,
        "strategy": "best-first",
    }


@pytest.fixture(scope="session")
def crawled(demo: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A crawl of 60 pages, to be looked at."""
    return crawl(tmp_path_factory.mktemp("crawled") / "crawl", **demo, budget=60)


@pytest.fixture
def folder(crawled: Run, tmp_path: Path) -> Path:
    """The same crawl to do with as one likes."""
    shutil.copytree(crawled.kept.folder, tmp_path / "crawl")
    return tmp_path / "crawl"


@dataclass(frozen=True)
class LocalWeb:
    """The test servers: `origins` by name of the site, and what they were asked."""

    origins: dict[str, str]
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests so far, in the order they ended."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def local_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWeb]:
    """Servers on several loopback addresses, in a process of their own."""
    log = tmp_path_factory.mktemp("server") / "requests.jsonl"
    with serving("server", log) as origins:
        yield LocalWeb(origins, log)


@pytest.fixture(scope="module")
def bad_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BadWeb]:
    """A host for every way in which a web can be bad."""
    with listening(tmp_path_factory.mktemp("bad-web") / "requests.jsonl") as web:
        yield web


@pytest.fixture(scope="module")
def browser() -> Browser:
    """A real browser, which keeps this thread's event loop to itself while it runs."""
    return open_browser()
