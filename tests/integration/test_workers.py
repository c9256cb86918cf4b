"""Several workers on one crawl: nothing lost, nothing twice, whatever happens to them."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.crawl import CrawlPlan
from focuscrawl.errors import UserError
from focuscrawl.store.schema import SCHEMA_VERSION
from focuscrawl.workers import open_shared_crawl
from focuscrawl.workers.joining import SharingOptions

from .postgres import PASSWORD
from .running import TOPIC
from .workers import Workers, assert_whole, query

if TYPE_CHECKING:
    from .postgres import PostgresServer

LONG = 600.0  # seconds after which something hangs
ARGUMENTS = {
    "web": "demo",
    "critic": "models/demo",
    "topic": TOPIC,
    "seeds": "models/demo/seeds.csv",
}
SHARDS = ("-s", "FOCUSCRAWL_SHARDS=16")  # and a lease of a minute: a machine may be busy
SHORT_LEASE = ("-s", "FOCUSCRAWL_LEASE=30")  # for who is killed to be missed soon
JOINED = "SELECT count(*) FROM worker"


@pytest.mark.long
def test_a_worker_dies_and_the_server_restarts(postgres: PostgresServer, tmp_path: Path) -> None:
    url, budget = postgres.url("deaths"), 260
    arguments = {**ARGUMENTS, "budget": budget}
    with Workers(url, tmp_path, arguments, *SHARDS, *SHORT_LEASE, up_to=80) as workers:
        for _ in range(3):
            workers.start()
        workers.wait_for(60, LONG)
        # who is killed was granted fetches: without them the others may be through before its
        # lease runs out, and it is not missed
        workers.wait_until("SELECT count(*) FROM worker WHERE outstanding > 0", 3, LONG)
        workers.kill(1)
        workers.go_on()
        workers.wait_for(120, LONG)
        postgres.restart()
        assert workers.wait(LONG) == [0, -signal.SIGKILL, 0], workers.log(0) + workers.log(2)
        assert "Traceback" not in workers.log(0) + workers.log(2)
    assert_whole(url, budget)
    assert query(url, "SELECT state FROM worker ORDER BY id") in (
        [("left",), ("lost",), ("left",)],
        [("lost",), ("left",), ("left",)],  # numbered as they joined
        [("left",), ("left",), ("lost",)],
    )
    # every page was recorded while its worker held the host, and models went to all
    ((models,),) = query(url, "SELECT count(*) FROM models")
    assert models > 0
    assert query(
        url, "SELECT count(*) FROM worker WHERE state = 'left' AND model_version = 0"
    ) == [(0,)]
    assert query(url, "SELECT DISTINCT owner FROM shard") == [(None,)]


def test_workers_come_and_go(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.url("coming")
    arguments = {**ARGUMENTS, "strategy": "best-first", "budget": 200}
    with Workers(url, tmp_path, arguments, *SHARDS, up_to=90) as workers:
        first = workers.start()
        workers.wait_for(40, LONG)
        workers.start()
        workers.wait_for(60, LONG)
        workers.wait_until(JOINED, 2, LONG)
        first.send_signal(signal.SIGINT)
        workers.go_on()
        assert first.wait(LONG) == 0
        assert workers.wait(LONG) == [0, 0]
    assert_whole(url, 200)
    with Workers(url, tmp_path, {**arguments, "budget": 230}, *SHARDS) as workers:
        workers.start()
        assert workers.wait(LONG) == [0]
    assert_whole(url, 230)
    fetched = query(url, "SELECT fetched > 0 FROM worker ORDER BY id")
    assert fetched == [(True,), (True,), (True,)]


def test_a_crawl_ends_when_all_is_fetched(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.url("ending")
    seeds = tmp_path / "seeds.txt"
    recorded = {**ARGUMENTS, "strategy": "breadth-first", "budget": 40}
    with Workers(url, tmp_path, recorded, *SHARDS, "-s", "FOCUSCRAWL_WARC=1") as workers:
        workers.start()
        assert workers.wait(LONG) == [0]
    web = tmp_path / "worker-0" / "pages.warc.gz"
    seeds.write_text(
        "\n".join(row[0] for row in query(url, "SELECT url FROM pages WHERE depth=0"))
    )
    everything = postgres.url("everything")
    arguments = {**recorded, "web": web, "seeds": seeds, "budget": 0}
    (tmp_path / "two").mkdir()
    with Workers(everything, tmp_path / "two", arguments, *SHARDS) as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [0, 0]
        assert "frontier is empty" in workers.log(0)
    pages = "SELECT url FROM pages ORDER BY 1"
    assert query(everything, pages) == query(url, pages)


def test_a_shared_crawl_whose_start_pages_cannot_be_had_is_no_success(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url("unreachable")
    critic = {"critic": "server.critic:judge", "topic": "bicycle", "strategy": "breadth-first"}
    seeds = "http://127.0.0.1:9/,http://127.0.0.2:9/,http://127.0.0.3:9/"  # nobody answers
    opened = ("-s", "FOCUSCRAWL_PRIVATE_ADDRESSES=127.0.0.2/31", "-s", "RETRY_TIMES=0")
    with Workers(url, tmp_path, {**critic, "seeds": seeds}, *SHARDS, *opened) as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [3, 3], workers.log(0) + workers.log(1)
        assert "no start page could be had" in workers.log(0)
    ((reason,),) = query(url, "SELECT DISTINCT detail FROM events WHERE kind = 'stop'")
    assert reason == "seeds_unreachable"
    (tmp_path / "again").mkdir()
    with Workers(url, tmp_path / "again", {**critic, "seeds": seeds}, *SHARDS, *opened) as workers:
        workers.start()  # there is nothing left that it could try
        assert workers.wait(LONG) == [3], workers.log(0)


@pytest.mark.parametrize("paused", [False, True])
def test_a_worker_ends_that_cannot_take_in_what_came(
    postgres: PostgresServer, tmp_path: Path, *, paused: bool
) -> None:
    url = postgres.url(f"unreadable_{paused}".lower())
    with Workers(url, tmp_path, {**ARGUMENTS, "budget": 1000}, *SHARDS, up_to=100) as workers:
        workers.start()
        workers.wait_for(20, LONG)
        query(
            url,
            f"""WITH now AS (
                    UPDATE crawl SET posted = posted + 1, paused = {paused} RETURNING posted)
                INSERT INTO evidence
                    (id, shard, applied_by, source, relevance, targets, scores, memo)
                SELECT now.posted, url.host % 16, 0, url.id, 1.0, int8send(url.id),
                    float8send(0.5), 'no facts'
                FROM now, page JOIN url ON url.id = page.url WHERE page.seq = 1""",
        )
        workers.go_on()
        (code,) = workers.wait(LONG)
        said = workers.log(0)
    assert code == 1, said
    assert "Worker failed" in said
    assert "failed on a page: see the log" in said
    assert query(url, "SELECT state FROM worker") == [("left",)]
    ((fetched, recorded),) = query(url, "SELECT fetched, (SELECT count(*) FROM page) FROM crawl")
    assert 20 <= fetched == recorded < 1000


@pytest.mark.long
def test_who_joins_agrees_with_those_that_are_there(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url, slow = postgres.url("agreeing"), ("-s", "DOWNLOAD_DELAY=0.1")
    arguments = {**ARGUMENTS, "budget": 2000}
    with Workers(url, tmp_path, arguments, *SHARDS, *slow, up_to=100) as workers:
        first = workers.start()
        workers.wait_for(5, LONG)
        others: list[tuple[dict[str, object], tuple[str, ...], str]] = [
            ({"budget": 2001}, slow, "budget 2000, not 2001"),
            ({}, (), "DOWNLOAD_DELAY 0.1, not 0.0"),
        ]
        alike = plan_of(tmp_path / "x", budget=2000, delay=0.1, per_host=1)
        assert "budget 2000, not 0" in refused(url, replace(alike, budget=0))
        assert "to a host 1, not 4" in refused(url, replace(alike, per_host=4))
        for number, (changed, options, said) in enumerate(others):
            folder = tmp_path / str(number)
            folder.mkdir()
            with Workers(url, folder, {**arguments, **changed}, *SHARDS, *options) as other:
                other.start()
                assert other.wait(LONG) == [2]
                (line,) = other.log(0).splitlines()
            assert said in line
            assert PASSWORD not in line
            assert not (folder / "worker-0").exists()
        assert query(url, "SELECT count(*), max(budget) FROM worker") == [(1, 2000)]
        workers.go_on()
        workers.start()  # like the first
        workers.wait_until("SELECT count(*) FROM worker WHERE fetched > 0", 2, LONG)
        first.send_signal(signal.SIGINT)
        workers.processes[1].send_signal(signal.SIGINT)
        assert workers.wait(LONG) == [0, 0], workers.log(1)
    ((fetched,),) = query(url, "SELECT fetched FROM crawl")
    with Workers(url, tmp_path, {**arguments, "budget": fetched + 20}, *SHARDS) as workers:
        workers.start()
        assert workers.wait(LONG) == [0], workers.log(0)
    assert_whole(url, fetched + 20)


def plan_of(folder: Path, **changed: Any) -> CrawlPlan:
    return CrawlPlan(**{**ARGUMENTS, "crawl_dir": str(folder), "budget": 5, **changed})


def refused(url: str, plan: CrawlPlan) -> str:
    with pytest.raises(UserError) as error:
        open_shared_crawl(plan, url, SharingOptions())
    said = str(error.value)
    assert "\n" not in said
    assert "secret" not in said
    assert PASSWORD not in said
    assert plan.crawl_dir is not None
    assert not Path(plan.crawl_dir).exists()
    return said


def test_a_crawl_of_another_kind_is_refused(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.url("refusing")
    open_shared_crawl(plan_of(tmp_path / "first"), url, SharingOptions()).close("interrupted")
    before = query(url, "SELECT * FROM meta ORDER BY 1"), query(url, "SELECT * FROM worker")
    other = refused(url, plan_of(tmp_path / "x", topic="/Sports/Running"))
    assert "its topic is /Sports/Cycling" in other
    version = "UPDATE meta SET value = '{}' WHERE key = 'schema_version'"
    query(url, version.format(99))
    newer = refused(url, plan_of(tmp_path / "x"))
    assert "schema version 99" in newer
    assert "upgrade" in newer
    query(url, version.format(SCHEMA_VERSION))
    query(postgres.url(), "CREATE SCHEMA taken CREATE TABLE other (a int)")
    assert "something else" in refused(postgres.url("taken"), plan_of(tmp_path / "x"))
    after = query(url, "SELECT * FROM meta ORDER BY 1"), query(url, "SELECT * FROM worker")
    assert after == before
    for changed, said in (
        ({"strategy": "pagerank"}, "pagerank"),
        ({"distill": 10, "revisit_hubs": 5}, "FOCUSCRAWL_REVISIT_HUBS"),
        ({"options": {"contrast": 0.5}}, "contrast"),
    ):
        assert said in refused(postgres.url("new"), plan_of(tmp_path / "x", **changed))
    assert query(url, "SELECT nspname FROM pg_namespace WHERE nspname = 'new'") == []


def test_a_wrong_database_is_refused(postgres: PostgresServer, tmp_path: Path) -> None:
    query(postgres.url(), "CREATE ROLE guest LOGIN PASSWORD 'guest-secret'")
    here = postgres.url("x")
    plan = plan_of(tmp_path / "x")
    for url, said in (
        (postgres.url("x", user="guest", password="guest-secret"), "right CREATE"),
        (here.replace("/postgres?", "/nowhere?"), "nowhere"),
        ("postgresql://u:wrong-secret@127.0.0.1:1/d", "refused"),
        (postgres.url("public"), "name of a crawl"),
    ):
        assert said in refused(url, plan)
    wrong = postgres.url("x", password="wrong-secret")
    with Workers(wrong, tmp_path, ARGUMENTS) as workers:
        workers.start()
        assert workers.wait(LONG) == [2], workers.log(0)
        (line,) = workers.log(0).splitlines()
    assert line.startswith("scrapy crawl focused: store postgresql://127.0.0.1")
    assert "password authentication failed" in line
    assert "wrong-secret" not in line
    assert not (tmp_path / "worker-0").exists()
