"""A live crawl that records what it fetches, killed at random moments."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

from integration.running import BICYCLES, QUICK, Run, crawl, start_up_to
from integration.small_site import serve

from focuscrawl.webs import RecordedWeb

from .lasting import LONG, assert_sound

KILLS, PAGES = (30, 1200) if LONG else (3, 120)
_LATENCY = 0.01  # seconds that the server takes for a page
_FURTHER = 30  # pages that a crawl may have fetched more when it is killed


class _Tree(dict[str, tuple[str, bytes]]):
    """Answers: page n links to pages 2 n + 1 and 2 n + 2; all else is missing."""

    def __contains__(self, path: object) -> bool:
        time.sleep(_LATENCY)
        return str(path).startswith("/page-")

    def get(self, path: str, default: Any = None) -> Any:
        name = path.removeprefix("/page-")
        if not name.isdecimal():
            return default
        number = int(name)
        links = "".join(f"<p><a href=/page-{2 * number + i}>more</a>" for i in (1, 2))
        body = f"<title>{number}</title>bicycle {'and ' * (number % 50)}{links}"
        return "text/html", body.encode()


def test_every_page_that_is_known_is_recorded(tmp_path: Path) -> None:
    rng, folder = random.Random(0), tmp_path / "crawl"
    killed = 0
    with serve(lambda _: _Tree()) as site:
        given = QUICK | BICYCLES | {"FOCUSCRAWL_WARC": 1, "budget": PAGES}
        given["seeds"] = f"{site.origin}/page-0"
        for moment in sorted(rng.sample(range(5, PAGES * 3 // 4), KILLS)):
            with start_up_to(moment + _FURTHER, folder, **given) as running:
                running.wait_for(moment)
                time.sleep(rng.uniform(0.0, 0.1))
                run = running.stop(signal.SIGKILL)
            killed += run.returncode == -signal.SIGKILL
            assert_recorded(run)
        assert killed == KILLS
        assert assert_recorded(crawl(folder, **given)) == PAGES


def assert_recorded(run: Run) -> int:
    """Check that the recording has every page of the store; return how many there are."""
    pages = assert_sound(run.kept)
    web = RecordedWeb(run.kept.folder / "pages.warc.gz")
    for url, status, size in run.kept.query("SELECT url, status, bytes FROM pages"):
        answer = web.fetch(url)
        assert answer is not None, url
        assert (answer.status, len(answer.body)) == (status, size)
    return pages
