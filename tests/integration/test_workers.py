"""Several workers on one crawl: nothing lost, nothing twice, whatever happens to them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from focuscrawl.store.schema import SCHEMA_VERSION

from .running import TOPIC
from .workers import Workers, assert_whole, query

if TYPE_CHECKING:
    from pathlib import Path

    from .postgres import PostgresServer

LONG = 250.0  # seconds after which something hangs
ARGUMENTS = {
    "web": "demo",
    "critic": "models/demo",
    "topic": TOPIC,
    "seeds": "models/demo/seeds.csv",
}
LEASE = ("-s", "FOCUSCRAWL_LEASE=10", "-s", "FOCUSCRAWL_SHARDS=16")


def test_a_worker_dies_and_the_server_restarts(postgres: PostgresServer, tmp_path: Path) -> None:
    url, budget = postgres.url("deaths"), 400
    arguments = {**ARGUMENTS, "budget": budget}
    with Workers(url, tmp_path, arguments, *LEASE) as workers:
        for _ in range(3):
            workers.start()
        workers.wait_for(80, LONG)
        workers.kill(1)
        workers.wait_for(160, LONG)
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
    arguments = {**ARGUMENTS, "strategy": "best-first", "budget": 300}
    with Workers(url, tmp_path, arguments, *LEASE) as workers:
        first = workers.start()
        workers.wait_for(40, LONG)
        workers.start()
        until = workers.wait_for(120, LONG)
        first.send_signal(signal.SIGINT)
        assert first.wait(LONG) == 0
        assert workers.wait(LONG) == [0, 0]
    assert until > 40
    assert_whole(url, 300)
    with Workers(url, tmp_path, {**arguments, "budget": 350}, *LEASE) as workers:
        workers.start()
        assert workers.wait(LONG) == [0]
    assert_whole(url, 350)
    fetched = query(url, "SELECT fetched > 0 FROM worker ORDER BY id")
    assert fetched == [(True,), (True,), (True,)]


def test_a_crawl_ends_when_all_is_fetched(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.url("ending")
    seeds = tmp_path / "seeds.txt"
    recorded = {**ARGUMENTS, "strategy": "breadth-first", "budget": 60}
    with Workers(url, tmp_path, recorded, *LEASE, "-s", "FOCUSCRAWL_WARC=1") as workers:
        workers.start()
        assert workers.wait(LONG) == [0]
    web = tmp_path / "worker-0" / "pages.warc.gz"
    seeds.write_text(
        "\n".join(row[0] for row in query(url, "SELECT url FROM pages WHERE depth=0"))
    )
    everything = postgres.url("everything")
    arguments = {**recorded, "web": web, "seeds": seeds, "budget": 0}
    (tmp_path / "two").mkdir()
    with Workers(everything, tmp_path / "two", arguments, *LEASE) as workers:
        workers.start()
        workers.start()
        assert workers.wait(LONG) == [0, 0]
        assert "frontier is empty" in workers.log(0)
    pages = "SELECT url FROM pages ORDER BY 1"
    assert query(everything, pages) == query(url, pages)


def test_the_same_crawl_is_refused_with_other_arguments(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url("refusing")
    with Workers(url, tmp_path, {**ARGUMENTS, "budget": 5}, *LEASE) as workers:
        workers.start()
        assert workers.wait(LONG) == [0]
    before = query(url, "SELECT * FROM meta ORDER BY 1"), query(url, "SELECT * FROM worker")
    query(postgres.url(), "CREATE ROLE guest LOGIN PASSWORD 'guest-secret'")
    bad = {
        "other": (url, {"topic": "/Sports/Running", "budget": 9}, "its topic is /Sports/Cycling"),
        "password": (postgres.url("x", password="wrong-secret"), {}, "password"),
        "rights": (postgres.url("x", user="guest", password="guest-secret"), {}, "CREATE"),
        "nowhere": (url.replace("/postgres?", "/nowhere?"), {}, "nowhere"),
        "host": ("postgresql://u:wrong-secret@127.0.0.1:1/d", {}, "refused"),
        "strategy": (postgres.url("x"), {"strategy": "pagerank"}, "pagerank"),
        "public": (postgres.url("public"), {}, "name of a crawl"),
    }
    for name, (where, changed, said) in bad.items():
        folder = tmp_path / name
        folder.mkdir()
        with Workers(where, folder, {**ARGUMENTS, **changed}, *LEASE) as workers:
            workers.start()
            assert workers.wait(LONG) == [2], workers.log(0)
            (line,) = workers.log(0).splitlines()
        assert line.startswith("scrapy crawl focused: ")
        assert said in line
        assert "secret" not in line
        assert not (folder / "worker-0").exists()
    version = "UPDATE meta SET value = '{}' WHERE key = 'schema_version'"
    query(url, version.format(99))
    with Workers(url, tmp_path, {**ARGUMENTS, "budget": 5}, *LEASE) as workers:
        workers.start()
        assert workers.wait(LONG) == [2]
        (line,) = workers.log(0).splitlines()
        assert "schema version 99" in line
        assert "upgrade" in line
    query(url, version.format(SCHEMA_VERSION))
    after = query(url, "SELECT * FROM meta ORDER BY 1"), query(url, "SELECT * FROM worker")
    assert after == before
