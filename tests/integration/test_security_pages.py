"""Pages that would keep a crawler from everything else: it goes on, and can be stopped."""

from __future__ import annotations

import json
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from focuscrawl.settings import DOWNLOADER_MIDDLEWARES

from .badweb import CRITIC, SETTINGS, BadWeb, Measured, explore, good_pages
from .running import Kept, start

HEARTS = "server.downloadermiddlewares"
TOO_HARD = "too hard to parse"
HARD = "attributes/large"
#: what took minutes, or gigabytes, and is a page like any other
LONG = ("refresh-digits", "links-around-text", "base", "nested", "links-bare", "host-long")
MEGABYTE = 1_000_000
#: of what the event loop must not wait for: a host whose front page takes long, and the middleware
SLOW = {
    "unpacking": ("gzip-members", "bodies.CompressionMiddleware"),
    "recording": ("many-words", "bodies.WarcMiddleware"),
}


def seeds(web: BadWeb, *pages: str) -> str:
    """Return the URLs of hard pages."""
    return ",".join(f"{web.origins['hard']}/{page}" for page in pages)


def outcomes(run: Measured, web: BadWeb) -> dict[str, str]:
    """Return what became of the hard pages: the error, or ``page``."""
    rows = run.pages(web)
    return {
        name.removeprefix("hard/"): row["error"] or "page"
        for name, row in rows.items()
        if name.startswith("hard/") and row["status"] == 200
    }


@pytest.mark.long
def test_a_page_without_an_end_holds_up_nobody(bad_web: BadWeb, tmp_path: Path) -> None:
    both = f"{seeds(bad_web, HARD)},{bad_web.seeds('good')}"
    run = explore(tmp_path / "crawl", both, weighed=False, budget=10)
    assert run.returncode == 0
    assert "Traceback" not in run.stderr
    assert good_pages(run, bad_web) == 9
    assert outcomes(run, bad_web) == {HARD: TOO_HARD}
    assert f"{TOO_HARD}: 1" in run.summary("errors")
    seqs = {name: int(page["seq"]) for name, page in run.pages(bad_web).items()}
    good = [seq for name, seq in seqs.items() if name.startswith("good/")]
    assert max(good) < seqs[f"hard/{HARD}"]  # the whole site was fetched while it was parsed


def test_products_of_two_lengths_are_bounded(bad_web: BadWeb, tmp_path: Path) -> None:
    pages = [f"{kind}/large" for kind in LONG]
    given = {"budget": len(pages), "strategy": "apprentice"}
    run = explore(tmp_path / "crawl", seeds(bad_web, *pages), **given)
    assert run.returncode == 0
    assert outcomes(run, bad_web) == dict.fromkeys(pages, "page")
    assert run.peak < 600 * MEGABYTE


@pytest.mark.parametrize("what", SLOW)
def test_the_event_loop_goes_on_beside(bad_web: BadWeb, tmp_path: Path, what: str) -> None:
    case, name = SLOW[what]
    at = DOWNLOADER_MIDDLEWARES[f"focuscrawl.downloadermiddlewares.{name}"]
    assert at is not None
    # answers pass the highest first
    hearts = {f"{HEARTS}.StartsHeart": at + 1, f"{HEARTS}.StopsHeart": at - 1}
    given = {
        "DOWNLOADER_MIDDLEWARES": json.dumps({**DOWNLOADER_MIDDLEWARES, **hearts}),
        "TEST_HEART": tmp_path / "beats",
    }
    url = bad_web.seeds(case)
    run = explore(tmp_path / "crawl", url, weighed=False, budget=1, **given)
    assert run.kept.query("SELECT url, status FROM pages") == [(url, 200)]
    beats = dict(map(json.loads, (tmp_path / "beats").read_text("utf-8").splitlines()))
    # what is done takes hundreds of times as long as a beat
    assert beats[url] > 10


def test_a_crawl_can_be_stopped_while_it_parses(bad_web: BadWeb, tmp_path: Path) -> None:
    """What is parsed then is for the next run."""
    folder = tmp_path / "crawl"
    given = SETTINGS | CRITIC | {"FOCUSCRAWL_STOP_TIMEOUT": 0.5}
    with start(folder, **given, seeds=seeds(bad_web, HARD), budget=5) as running:
        parsing = child_of(running.pid)
        run = running.stop(signal.SIGTERM)
    assert run.returncode == 0
    assert "Traceback" not in run.stderr
    assert not parsing.is_running()
    kept = Kept(folder)
    assert kept.stop_reasons == ["interrupted"]
    assert kept.query("SELECT url, state FROM frontier") == [(seeds(bad_web, HARD), "queued")]


def child_of(pid: int) -> psutil.Process:
    """Return the process that pages are parsed in, once it is there.

    Others come and go before: imported libraries ask ``uname`` what machine this is.
    """
    while True:
        for child in psutil.Process(pid).children():
            with suppress(psutil.NoSuchProcess):
                if any("focuscrawl.page.parser_process" in part for part in child.cmdline()):
                    return child
        time.sleep(0.01)
