"""Operating a crawl that workers share: status, pause, resume, stop, metrics, reports, slips."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from focuscrawl.errors import UserError
from focuscrawl.report.stores import open_store
from focuscrawl.store.history import History
from focuscrawl.store.schema import SCHEMA_VERSION
from focuscrawl.workers import open_shared_crawl
from focuscrawl.workers.joining import SharingOptions

from .ports import free_port
from .postgres import PASSWORD
from .test_operations import ask, metrics
from .test_workers import ARGUMENTS, LONG, SHARDS, plan_of
from .workers import Workers, query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from .postgres import PostgresServer

PAUSED = 1.5  # seconds in which a crawl that is not paused fetches a lot


def look(url: str) -> dict[str, Any]:
    text = ask("status", url, "--json")
    assert PASSWORD not in text
    read: dict[str, Any] = json.loads(text)
    return read


def look_until(url: str, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    until = time.monotonic() + LONG
    while not true(seen := look(url)) and time.monotonic() < until:
        time.sleep(0.1)
    return seen


@pytest.fixture(scope="module")
def operated(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A crawl that is looked at, paused, joined, resumed and stopped; what was seen on the way."""
    url, folder = postgres.url("operated"), tmp_path_factory.mktemp("operated")
    ports = free_port(), free_port()
    seen: dict[str, Any] = {"url": url, "folder": folder}
    arguments = {**ARGUMENTS, "budget": 2500}
    with Workers(url, folder, arguments, *SHARDS, "-s", "DOWNLOAD_DELAY=0.1") as workers:
        for port in ports:
            workers.start("-s", f"FOCUSCRAWL_METRICS_PORT={port}")
        workers.wait_for(30, LONG)
        seen["crawling"] = look_until(
            url, lambda each: fetching(each) == 2 and shards_of(each) == [8, 8]
        )
        seen["text"] = ask("status", url, "--once")
        seen["pause"] = ask("pause", url)
        seen["paused"] = look_until(url, lambda each: all_is_recorded(each, ports))
        workers.start()
        look_until(url, lambda each: each["paused"] and shards_of(each) == [4, 6, 6])
        time.sleep(PAUSED)
        # two workers may be exchanging a shard
        seen["joined"] = look_until(url, lambda each: shards_of(each) == [4, 6, 6])
        seen["metrics"] = metrics(ports[0])
        seen["connections"] = connections(url, workers)
        seen["resume"] = ask("resume", url)
        workers.wait_for(seen["joined"]["fetched"] + 40, LONG)
        seen["resumed"] = look_until(url, lambda each: fetching(each) == 3)
        ((seen["leases"], seen["seconds"]),) = query(
            url,
            "SELECT count(*), extract(epoch FROM max(taken_at) - min(taken_at))::float FROM lease",
        )
        out = folder / "report"
        seen["report"] = ask("report", url, "--out", out, "--csv", folder / "pages.csv")
        seen["distill"] = ask("distill", url, "--html", folder / "hubs.html")
        newest = "SELECT url FROM pages WHERE score > 0 AND score < 1 ORDER BY seq DESC LIMIT 1"
        ((last,),) = query(url, newest)
        seen["why"] = ask("why", url, last)
        seen["stop"] = ask("stop", url)
        seen["codes"] = workers.wait(LONG)
        seen["logs"] = [workers.log(n) for n in (0, 1, 2)]
    seen["ended"], seen["ended text"] = look(url), ask("status", url)
    return seen


def fetching(status: dict[str, Any]) -> int:
    return sum(worker["fetched"] > 0 for worker in status["workers"])


def all_is_recorded(status: dict[str, Any], ports: Iterable[int]) -> bool:
    """Tell whether nothing is under way, and the store has all that workers have fetched."""
    if any(worker["in_flight"] for worker in status["workers"]):
        return False
    made = sum(metrics(port)["focuscrawl_worker_fetches_total"] for port in ports)
    return bool(made == status["fetched"])


def connections(url: str, workers: Workers) -> int:
    """Return how many the workers have; those of commands that looked may not be gone yet."""
    processes = [psutil.Process(each.pid) for each in workers.processes]
    held = {each.laddr.port for process in processes for each in process.net_connections()}
    named = "FROM pg_stat_activity WHERE application_name = 'focuscrawl'"
    return sum(port in held for (port,) in query(url, f"SELECT client_port {named}"))


def shards_of(status: dict[str, Any]) -> list[int]:
    return sorted(worker["shards"] for worker in status["workers"])


def test_status_shows_every_worker(operated: dict[str, Any]) -> None:
    name, heading, crawl, shared, columns, *rows = operated["text"].splitlines()
    assert name.startswith("postgresql://127.0.0.1:")
    assert heading.strip() == "apprentice of /Sports/Cycling on demo: crawling"
    assert "fetched of 2,500" in crawl
    assert shared.strip().startswith("2 workers, 16 shards")
    assert columns.split()[-2:] == ["heard", "lease"]
    assert [row.split()[2] for row in rows] == ["crawling", "crawling"]
    seen = operated["crawling"]
    assert seen["store"] == name
    assert sum(worker["fetched"] for worker in seen["workers"]) >= seen["fetched"] >= 30
    assert seen["fetched"] <= seen["granted"] <= 2500
    for worker in seen["workers"]:
        assert worker["shards"] in (7, 8)  # one may be on its way to a worker with nothing to do
        assert worker["heard"] + worker["lease_left"] == pytest.approx(60.0, abs=0.1)
        assert worker["pages_per_second"] > 0.0
        assert worker["unread"] is not None
        assert (worker["paused"], worker["stop"], worker["state"]) == (False, False, "crawling")
        assert worker["pace"] >= 0.0
    assert sum(worker["trains"] for worker in seen["workers"]) == 1


def test_a_paused_crawl_fetches_nothing_and_keeps_its_leases(operated: dict[str, Any]) -> None:
    assert "paused" in operated["pause"]
    paused, joined = operated["paused"], operated["joined"]
    assert (paused["state"], paused["ended"]) == ("paused", False)
    assert joined["state"] == "paused"
    assert joined["fetched"] == paused["fetched"]
    assert all(worker["heard"] < 60.0 for worker in joined["workers"])


def test_who_joins_a_paused_crawl_is_given_shards_and_waits(operated: dict[str, Any]) -> None:
    workers = operated["joined"]["workers"]
    assert [worker["state"] for worker in workers] == ["paused"] * 3
    assert workers[2]["fetched"] == 0
    assert shards_of(operated["joined"]) == [4, 6, 6]


def test_nobody_gives_away_more_shards_than_others_should_have(operated: dict[str, Any]) -> None:
    # all to the first worker, half of them to the second, then two from each to the third
    # besides, two workers may exchange a shard for a shard every three seconds
    assert operated["leases"] <= 16 + 8 + 4 + 2 * (1 + operated["seconds"] // 3)


def test_a_worker_has_two_connections(operated: dict[str, Any]) -> None:
    assert 3 <= operated["connections"] <= 2 * 3 + 1  # one for a moment, as threads meet


def test_a_resumed_crawl_goes_on_with_all(operated: dict[str, Any]) -> None:
    assert "resumed" in operated["resume"]
    assert operated["resumed"]["state"] == "crawling"
    assert fetching(operated["resumed"]) == 3


def test_stopped_workers_end_in_order(operated: dict[str, Any]) -> None:
    assert "stopped" in operated["stop"]
    assert operated["codes"] == [0, 0, 0], "".join(operated["logs"])
    assert not any("Traceback" in log or PASSWORD in log for log in operated["logs"])
    assert all("asked to stop" in log for log in operated["logs"])
    ended = operated["ended"]
    assert (ended["ended"], ended["workers"], ended["gone"]) == (True, [], {"left": 3})
    assert ended["gone_fetched"] == ended["fetched"] == ended["granted"]
    assert "stopped by `focuscrawl stop`" in operated["ended text"]
    assert "nobody crawls" in ask("stop", operated["url"], code=2)
    assert "not paused" in ask("resume", operated["url"], code=2)


def test_metrics_are_of_the_crawl_and_of_the_worker(operated: dict[str, Any]) -> None:
    found, crawl = operated["metrics"], operated["joined"]
    me = next(name.split()[-1] for name in found if name.startswith("focuscrawl_worker_info"))
    (worker,) = (each for each in crawl["workers"] if str(each["id"]) == me)
    assert found["focuscrawl_fetches_total"] == crawl["fetched"]
    assert found["focuscrawl_relevance_total"] == pytest.approx(
        crawl["fetched"] * crawl["harvest_rate"]
    )
    assert found["focuscrawl_worker_fetches_total"] == worker["fetched"]
    assert found["focuscrawl_worker_shards"] == worker["shards"]
    assert found["focuscrawl_worker_trains"] == worker["trains"]
    assert 0.0 < found["focuscrawl_worker_lease_seconds"] <= 60.0
    assert found["focuscrawl_paused"] == 1


def test_reports_are_of_the_whole_crawl(operated: dict[str, Any]) -> None:
    folder = operated["folder"]
    assert "stopped       not yet: workers go on" in operated["report"]
    assert "kept in       postgresql://127.0.0.1:" in operated["report"]
    html = (folder / "report" / "report.html").read_text(encoding="utf-8")
    pages = (folder / "pages.csv").read_text(encoding="utf-8")
    assert len(pages.splitlines()) - 1 >= operated["resumed"]["fetched"]
    assert "hubs" in operated["distill"]
    assert "fetched as number" in operated["why"]
    assert "reasons by the last model of the apprentice" in operated["why"]
    assert "together" in operated["why"]
    hubs = (folder / "hubs.html").read_text(encoding="utf-8")
    for text in (operated["report"], operated["distill"], operated["why"], html, pages, hubs):
        assert PASSWORD not in text


def test_its_history_is_read_fetch_by_fetch(operated: dict[str, Any]) -> None:
    url = operated["url"]
    with closing(open_store(url)) as store:
        history = History(store)
        fetches = [*history.fetches()]
        assert [each.seq for each in fetches] == [*range(1, history.n_fetches() + 1)]
        links = [(each.url, link.target) for each in fetches for link in each.links]
        assert sorted(links) == sorted(map(tuple, history.links().tolist()))
    on_page = query(url, "SELECT p.seq, l.id FROM link l JOIN page p ON p.url = l.source")
    assert sorted((each.seq, link.id) for each in fetches for link in each.links) == sorted(
        on_page
    )
    assert all([*each.links] == sorted(each.links) for each in fetches)
    assert query(url, "SELECT url FROM pages ORDER BY seq") == [(each.name,) for each in fetches]


def test_slips_are_one_line(
    postgres: PostgresServer, operated: dict[str, Any], tmp_path: Path
) -> None:
    query(postgres.url(), "CREATE ROLE reader LOGIN PASSWORD 'reader-secret'")
    url = operated["url"]
    no_right = postgres.url("operated", user="reader", password="reader-secret")
    for name, said in (
        (postgres.url("nothing"), "there is no crawl of this name"),
        (postgres.url("operated", password="wrong-secret"), "password authentication failed"),
        (url.replace("/postgres?", "/nowhere?"), '"nowhere" does not exist'),
        ("postgresql://u:wrong-secret@127.0.0.1:1/d", "refused"),
        ("mysql://u:wrong-secret@127.0.0.1/d", "no PostgreSQL URL"),
        (f"{url}&password=wrong-secret", "password as a parameter"),
        (no_right, "permission denied"),
    ):
        for command in ("status", "pause", "resume", "stop", "report", "distill"):
            refused(said, command, name)
        refused(said, "why", name, "https://example.org/")
    # a command for folders alone
    refused("holds no crawl", "topic", "suggest", url)
    # what may be read may not be asked for anything
    query(url, "GRANT USAGE ON SCHEMA operated TO reader")
    refused("permission denied for table", "status", no_right)
    query(url, "GRANT SELECT ON ALL TABLES IN SCHEMA operated TO reader")
    assert "stopped by" in ask("status", no_right)
    refused("as the role that crawls", "pause", no_right)
    plan = plan_of(tmp_path / "worker")
    with pytest.raises(UserError, match="take the role that made the crawl"):
        open_shared_crawl(plan, no_right, SharingOptions(shards=16))
    assert not (tmp_path / "worker").exists()
    assert not look(url)["paused"]


def refused(said: str, *arguments: object) -> None:
    (line,) = ask(*arguments, code=2).splitlines()
    assert said in line, line
    assert "secret" not in line
    assert PASSWORD not in line


def test_a_store_of_schema_2_is_read_and_migrated(
    postgres: PostgresServer, operated: dict[str, Any], tmp_path: Path
) -> None:
    url, fetched = operated["url"], operated["ended"]["fetched"]
    new = "SELECT table_name, column_name, is_nullable, column_default "
    new += "FROM information_schema.columns "
    new += "WHERE table_schema = 'operated' ORDER BY 1, 2"
    before = query(url, new)
    for column in ("budget", "taken_in", "in_flight", "paused", "stop"):
        query(url, f"ALTER TABLE worker DROP COLUMN {column}")
    query(url, "ALTER TABLE crawl DROP COLUMN paused")
    query(url, "DROP VIEW revisits")
    query(url, "DROP TABLE revisit")
    query(url, "UPDATE meta SET value = '2' WHERE key = 'schema_version'")
    seen = look(url)
    assert (seen["fetched"], seen["budget"], seen["ended"]) == (fetched, None, True)
    assert "SIGTERM" in ask("pause", url, code=2)
    with Workers(url, tmp_path, {**ARGUMENTS, "budget": fetched + 20}, *SHARDS) as workers:
        workers.start()  # both at once: one of them migrates it
        workers.start()
        assert workers.wait(LONG) == [0, 0], workers.log(0) + workers.log(1)
    assert query(url, new) == before
    assert query(url, "SELECT value FROM meta WHERE key = 'schema_version'") == [
        (str(SCHEMA_VERSION),)
    ]
    assert look(url)["fetched"] == fetched + 20
    # what a crawl that is over may do without
    query(url, "TRUNCATE evidence, instances")
    assert "the budget" in ask("report", url, "--out", tmp_path / "report")
    ((last,),) = query(url, "SELECT url FROM pages WHERE depth > 0 ORDER BY seq DESC LIMIT 1")
    assert "fetched as number" in ask("why", url, last)
    assert "hubs" in ask("distill", url, "--html", tmp_path / "hubs.html")
