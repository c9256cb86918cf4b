"""Parts of a crawl that several workers share: limits, near-duplicates, the distiller."""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING

import psycopg
import pytest

from focuscrawl.store.schema import QUEUED

from .recording import record
from .workers import Workers, assert_whole, query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .postgres import PostgresServer

LONG = 600.0  # seconds after which something hangs
SHARDS = ("-s", "FOCUSCRAWL_SHARDS=16")  # and a lease of a minute: a machine may be busy
CRITIC = {"topic": "bicycle", "critic": "server.critic:judge", "strategy": "breadth-first"}
CALENDARS, MONTHS, ARTICLES, VERSIONS = 4, 70, 60, 60
START = "http://start.example/"
DEMO = {
    "web": "demo",
    "critic": "models/demo",
    "topic": "/Sports/Cycling",
    "seeds": "models/demo/seeds.csv",
    "strategy": "best-first",
}


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


def slow_news() -> dict[str, str]:
    """Months on many hosts, more than come before the limits; articles on one, all found first."""
    pages = {f"http://news.example/articles/{i}": f"bicycle {i}" for i in range(2 * ARTICLES)}
    pages |= {
        f"http://cal{host}.example/?month={month}": f"nothing in month {month} of {host}"
        for host in range(3 * CALENDARS)
        for month in range(33)
    }
    links = " ".join(f'<a href="{url}">{i}</a>' for i, url in enumerate(pages))
    return {START: f"bicycle {links}", **pages}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return record(tmp_path / "calendars.warc.gz", titled(calendars()))


def titled(pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    for url, text in pages.items():
        yield url, f"<title>{url}</title><p>{text}"


@pytest.mark.long
def test_limits_and_near_duplicates_hold_for_all_workers(
    postgres: PostgresServer, tmp_path: Path, recorded: Path
) -> None:
    url = postgres.url("limits")
    arguments = {**CRITIC, "web": recorded, "seeds": START, "budget": 0}
    with Workers(url, tmp_path, arguments, *SHARDS) as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [0, 0], workers.log(0) + workers.log(1)
    fetched = [row[0] for row in query(url, "SELECT url FROM pages ORDER BY seq")]
    assert sorted(fetched) == sorted(calendars())  # nothing is lost, nothing twice
    limited = query(url, "SELECT detail FROM events WHERE kind = 'limited'")
    for host in range(CALENDARS):
        said = sum(f"cal{host}.example/*?month" in detail for (detail,) in limited)
        ((holders,),) = query(
            url,
            "SELECT count(DISTINCT worker) FROM lease JOIN host ON lease.shard = host.id % 16"
            f" WHERE host.name = 'cal{host}.example'",
        )
        assert 1 <= said <= holders  # who is given its shard later holds it back by itself
    articles = [i for i, each in enumerate(fetched) if "/articles/" in each]
    months = [i for i, each in enumerate(fetched) if "month=" in each]
    # breadth-first, the months are found first: without limits the last article is the last page
    assert articles[-1] < months[-MONTHS]
    near = query(url, "SELECT detail FROM events WHERE kind = 'near-duplicate'")
    assert len(near) == VERSIONS - 1
    assert query(url, "SELECT count(*) > 0 FROM events WHERE kind = 'raised'") == [(True,)]


@pytest.mark.long
def test_limits_are_not_raised_while_a_worker_waits_to_be_polite(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url("polite")
    web = record(tmp_path / "news.warc.gz", titled(slow_news()))
    arguments = {**CRITIC, "web": web, "seeds": START, "budget": 0}
    with Workers(url, tmp_path, arguments, *SHARDS, "-s", "DOWNLOAD_DELAY=0.2") as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [0, 0], workers.log(0) + workers.log(1)
    fetched = [row[0] for row in query(url, "SELECT url FROM pages ORDER BY seq")]
    assert sorted(fetched) == sorted(slow_news())
    last_article = max(i for i, each in enumerate(fetched, 1) if "/articles/" in each)
    ((raised,),) = query(url, "SELECT min(seq) FROM events WHERE kind = 'raised'")
    assert raised >= last_article


def test_who_joins_has_the_limits_that_were_reached(
    postgres: PostgresServer, tmp_path: Path, recorded: Path
) -> None:
    url = postgres.url("reached")
    arguments = {**CRITIC, "web": recorded, "seeds": START, "budget": 1}
    with Workers(url, tmp_path, arguments, *SHARDS) as workers:
        workers.start()
        assert workers.wait(LONG) == [0], workers.log(0)
        query(
            url,
            "INSERT INTO events (at, seq, kind, detail)"
            " SELECT '', 1, 'raised', 'all limits are ' || n || ' times as high: nothing else'"
            " FROM unnest(ARRAY[2, 4, 2]) AS n",
        )
        workers.start(budget=0)
        assert workers.wait(LONG) == [0, 0], workers.log(1)
    assert query(url, "SELECT count(*) FROM page") == [(len(calendars()),)]
    # no host or pattern has four times as many pages as may be fetched of it at first
    assert query(url, "SELECT detail FROM events WHERE kind = 'limited'") == []


def test_one_worker_distils_for_all(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.url("distilling")
    options = (*SHARDS, "-s", "FOCUSCRAWL_DISTILL=40", "-s", "DOWNLOAD_DELAY=0.2")
    with Workers(url, tmp_path, {**DEMO, "budget": 260}, *options) as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [0, 0], workers.log(0) + workers.log(1)
    assert_whole(url, 260)
    told = query(url, "SELECT seq, detail FROM events WHERE kind = 'distilled' ORDER BY id")
    # however late one takes effect; two workers that distil would begin twice as many
    assert 0 < len(told) <= 260 // 40
    assert all(int(detail.split()[0]) > 0 for _, detail in told)
    # what was raised is fetched without a score, like start URLs, though links led to it; some of
    # it leads elsewhere
    raised = "score IS NULL AND referrer IS NOT NULL AND depth > 0"
    assert query(url, f"SELECT count(*) > 0 FROM pages WHERE {raised}") == [(True,)]
    # and it comes next: after what is under way, 16 with each of them, and no more often than
    # its host may be asked
    late = sum(int(detail.split()[0]) for seq, detail in told if seq > 260 - 80)
    ((waiting,),) = query(url, f"SELECT count(*) FROM url WHERE {raised} AND state = {QUEUED}")
    assert waiting <= late


@pytest.mark.long
def test_a_distillation_outlasts_a_restart_of_the_server(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url("distilling_again")
    options = (*SHARDS, "-s", "FOCUSCRAWL_DISTILL=3", "-s", "DOWNLOAD_DELAY=0.15")
    with Workers(url, tmp_path, {**DEMO, "budget": 240}, *options) as workers:
        workers.start()
        workers.wait_for(40, LONG)
        with contextlib.closing(psycopg.connect(postgres.url())) as lock:
            hold_up_a_distillation(lock)
            ((before,),) = query(url, "SELECT fetched FROM crawl")
            postgres.restart()
        assert workers.wait(LONG) == [0], workers.log(0)
        said = workers.log(0)
    assert said.count("a distillation is left out, the store is away") == 1
    assert said.count("the store is away, trying again") == said.count("the store is back") <= 2
    assert "Traceback" not in said
    assert_whole(url, 240)
    assert query(url, "SELECT max(seq) FROM events WHERE kind = 'distilled'") > [(before,)]


def hold_up_a_distillation(connection: psycopg.Connection) -> None:
    """Lock the links by a transaction; return when a distillation waits for them."""
    reads = """
        SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%SELECT link.source%'"""
    for _ in range(100):
        connection.execute("LOCK TABLE distilling_again.link IN ACCESS EXCLUSIVE MODE")
        time.sleep(0.3)
        if connection.execute(reads).fetchone() != (0,):
            return
        connection.rollback()  # it was not time for one, and with this nothing is recorded
        time.sleep(0.05)
    pytest.fail("no distillation was begun")
