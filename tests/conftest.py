"""Fixtures shared by all tests: the recorded webs, unpacked once into the cache."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from integration import studio, warm
from threadpoolctl import threadpool_limits

from focuscrawl.foundation.files import cache_dir

ROOT = Path(__file__).resolve().parents[1]
WEBS = Path(os.environ.get("FOCUSCRAWL_WEBS", ROOT.parent / "shared" / "webs"))
CONFORMANCE = Path(
    os.environ.get("FOCUSCRAWL_CONFORMANCE", ROOT.parent / "shared" / "conformance")
)

# How long an example takes is a matter of what else the machine has to do.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")

# What a shell starts in the background is deaf to Ctrl-C, and so is all that it starts in turn:
# tests that press it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Tests run beside each other: what they start has one core, not all.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection() -> None:
    """Collect no garbage while tests are: to look through what is imported took a third of it."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Have later collections of garbage pass over what is imported, and come less often."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """End the browser of the tests of the studio after them: it keeps the event loop to itself."""
    if not item.path.match("integration/test_studio*.py"):
        studio.close_browser()


def pytest_sessionfinish() -> None:
    """End the browser, and what crawls are forked from."""
    studio.close_browser()
    warm.close()


@pytest.fixture(scope="session", autouse=True)
def one_thread_of_blas() -> Iterator[None]:
    """Have crawls in this process learn as fast as in the process of a crawl."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def webs_dir() -> Path:
    """Folder of the recorded webs: packed recordings, labels, seeds, portals."""
    if not (WEBS / "unpack").is_file():
        pytest.skip(f"the recorded webs are not in {WEBS}: name their folder in FOCUSCRAWL_WEBS")
    return WEBS


@pytest.fixture(scope="session")
def conformance_dir() -> Path:
    """Folder of the test data of other projects, in sub-folders such as ``robots``."""
    if not CONFORMANCE.is_dir():
        pytest.skip(f"{CONFORMANCE} does not exist: name its folder in FOCUSCRAWL_CONFORMANCE")
    return CONFORMANCE


def _unpacked(webs: Path, name: str) -> Path:
    command = [sys.executable, str(webs / "unpack"), name, str(cache_dir() / "recorded")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def uci_warc(webs_dir: Path) -> Path:
    return _unpacked(webs_dir, "uci")


@pytest.fixture(scope="session")
def wikipedia_warc(webs_dir: Path) -> Path:
    return _unpacked(webs_dir, "wikipedia")


@pytest.fixture(scope="session")
def webkb_warc(webs_dir: Path) -> Path:
    return _unpacked(webs_dir, "webkb")
