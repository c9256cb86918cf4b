"""Parts of a crawl that several workers share: limits, near-duplicates, the distiller."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from focuscrawl.webs import WarcRecorder

from .workers import Workers, assert_whole, query

if TYPE_CHECKING:
    from pathlib import Path

    from .postgres import PostgresServer

LONG = 250.0  # seconds after which something hangs
LEASE = ("-s", "FOCUSCRAWL_LEASE=10", "-s", "FOCUSCRAWL_SHARDS=16")
CRITIC = {"topic": "bicycle", "critic": "server.critic:judge", "strategy": "breadth-first"}
CALENDARS, MONTHS, ARTICLES, VERSIONS = 4, 70, 60, 60
START = "http://start.example/"


def calendars() -> dict[str, str]:
    """Months without an end on some hosts, versions of one page on another, and articles."""
    rng = random.Random(0)
    page = ["bicycle", *(f"word{rng.randrange(3000)}" for _ in range(300))]
    pages = {
        f"http://cal{host}.example/?month={month}": f"nothing in month {month} of {host}"
        for host in range(CALENDARS)
        for month in range(MONTHS)
    }
    pages |= {
        f"http://wiki.example/w?version={i}": " ".join([*page[:100], f"edit{i}", *page[101:]])
        for i in range(VERSIONS)
    }
    pages |= {
        f"http://news{i % 5}.example/articles/{i}": f"bicycle {i} "
        + " ".join(f"word{rng.randrange(3000)}" for _ in range(100))
        for i in range(ARTICLES)
    }
    links = " ".join(f'<a href="{url}">{i}</a>' for i, url in enumerate(pages))
    return {START: f"bicycle {links}", **pages}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "calendars.warc.gz"
    with WarcRecorder(path) as recorder:
        for url, text in calendars().items():
            recorder.record(
                request_method="GET",
                url=url,
                request_headers=[],
                request_body=b"",
                status=200,
                reason="OK",
                response_headers=[("Content-Type", "text/html")],
                body_raw=f"<title>{url}</title><p>{text}".encode(),
                ip=None,
                at=datetime(2024, 1, 1, tzinfo=UTC),
            )
    return path


def test_limits_and_near_duplicates_hold_for_all_workers(
    postgres: PostgresServer, tmp_path: Path, recorded: Path
) -> None:
    url = postgres.url("limits")
    arguments = {**CRITIC, "web": recorded, "seeds": START, "budget": 0}
    with Workers(url, tmp_path, arguments, *LEASE) as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [0, 0], workers.log(0) + workers.log(1)
    fetched = [row[0] for row in query(url, "SELECT url FROM pages ORDER BY seq")]
    assert sorted(fetched) == sorted(calendars())  # nothing is lost, nothing twice
    limited = query(url, "SELECT detail FROM events WHERE kind = 'limited'")
    for host in range(CALENDARS):
        assert sum(f"cal{host}.example/*?month" in detail for (detail,) in limited) == 1
    articles = [i for i, each in enumerate(fetched) if "/articles/" in each]
    months = [i for i, each in enumerate(fetched) if "month=" in each]
    # breadth-first, the months are found first: without limits the last article is the last page
    assert articles[-1] < months[-MONTHS]
    near = query(url, "SELECT detail FROM events WHERE kind = 'near-duplicate'")
    assert len(near) == VERSIONS - 1
    assert query(url, "SELECT count(*) > 0 FROM events WHERE kind = 'raised'") == [(True,)]


def test_one_worker_distils_for_all(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.url("distilling")
    demo = {
        "web": "demo",
        "critic": "models/demo",
        "topic": "/Sports/Cycling",
        "seeds": "models/demo/seeds.csv",
        "strategy": "best-first",
    }
    options = (*LEASE, "-s", "FOCUSCRAWL_DISTILL=40")
    with Workers(url, tmp_path, {**demo, "budget": 260}, *options) as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [0, 0], workers.log(0) + workers.log(1)
    assert_whole(url, 260)
    told = query(url, "SELECT seq, detail FROM events WHERE kind = 'distilled' ORDER BY id")
    assert told
    assert all(after - before >= 20 for (before, _), (after, _) in itertools.pairwise(told))
    first = int(told[0][1].split()[0])
    assert first > 0
    # what was raised is fetched without a score, like start URLs, though links led to it
    found = query(
        url,
        "SELECT count(*) FROM pages WHERE score IS NULL AND referrer IS NOT NULL"
        " AND status = 200 AND depth > 0",
    )
    assert found[0][0] >= first
