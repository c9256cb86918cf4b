"""Live rounds: their time where hosts are slow, and the copies of what is fetched so far."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.crawl import CrawlConfig
from focuscrawl.foundation.urls import host
from focuscrawl.rounds import RoundsPlan, crawl_in_rounds
from focuscrawl.rounds.context import RoundTime, load_context
from focuscrawl.rounds.fetching import LiveFetchFolder, open_round
from focuscrawl.rounds.tables import Tables
from focuscrawl.rounds.tasks import LocalMaster, Task, run_task
from focuscrawl.testing import TinyWeb
from focuscrawl.webs import WarcRecorder, open_web

SLOW = "http://slow.example/"
SEEDS = [f"{SLOW}{n}" for n in range(40)] + [f"http://h{n}.example/" for n in range(12)]


class UntilFetchedError(Exception):
    """The round has been chosen."""


class Choosing(LocalMaster):
    """Has all tasks done but those that fetch."""

    def run_tasks(
        self, tasks: Sequence[Task], advance: Callable[[int], object]
    ) -> list[dict[str, Any]]:
        if tasks[0].stage == "fetch":
            raise UntilFetchedError
        return super().run_tasks(tasks, advance)


def chosen(root: Path, web: str | None, **more: Any) -> list[str]:
    """Begin a crawl in rounds; return what the first one would fetch, best first."""
    crawl = CrawlConfig(
        topic="/Sports/Cycling",
        critic="models/demo",
        strategy="best-first",
        seeds=",".join(SEEDS),
        web=web,
        budget=1000,
        own_names=True,
    )
    load_context.cache_clear()
    with pytest.raises(UntilFetchedError):
        crawl_in_rounds(
            RoundsPlan(crawl=crawl, round=100, buckets=2, settings={"DOWNLOAD_DELAY": 10}, **more),
            str(root),
            Choosing(1),
            lambda _: None,
        )
    urls: list[str] = load_context(str(root)).tables.read("chosen/00001")["url"].to_pylist()
    return urls


def test_no_host_has_more_of_a_round_than_can_be_asked_for_in_its_time(tmp_path: Path) -> None:
    hosts = Counter(map(host, chosen(tmp_path / "live", None, seconds=60.0)))
    assert hosts.pop("slow.example") == 60 / 10
    assert hosts == {f"h{n}.example": 1 for n in range(12)}
    web = str(TinyWeb(dict.fromkeys(SEEDS, "<p>bicycle")).write(tmp_path / "web.warc.gz"))
    assert chosen(tmp_path / "replay", web, seconds=60.0) == SEEDS  # which asks nobody


def test_settings_may_change_when_it_goes_on(tmp_path: Path) -> None:
    chosen(tmp_path, None, seconds=60.0)
    chosen(tmp_path, None, seconds=90.0)
    assert load_context(str(tmp_path)).time == (90.0, 9)


def test_without_a_time_a_round_takes_as_long_as_its_share_of_one_host() -> None:
    assert RoundTime.of({"DOWNLOAD_DELAY": 2}, 500.0, None) == (1000.0, 500)
    assert RoundTime.of({}, 3.0, None) == (60.0, 60)
    assert RoundTime.of({"DOWNLOAD_DELAY": 0}, 3.0, 5.0).fetches > 10**9


def test_a_host_that_is_slower_than_it_seemed_does_not_hold_a_round(tmp_path: Path) -> None:
    first = chosen(tmp_path, None, seconds=60.0)
    context = load_context(str(tmp_path))
    (bucket,) = {
        row["bucket"]
        for row in context.tables.read("chosen/00001").to_pylist()
        if row["url"].startswith(SLOW)
    }
    plan = context.checked.config.with_values(crawl_dir=str(tmp_path / "fetched"), delay=10.0)
    crawl = open_round(context, bucket, 1, plan.with_values(per_host=1))
    now, asked = 0.0, 0
    while crawl.stop_reason is None:
        fetch = crawl.next(now)
        if fetch is not None:
            asked += 1
            now += 25.0 if fetch.url.startswith(SLOW) else 0.1  # to answer
            crawl.record_failed(fetch.id, "timeout", now)
        now += 1.0
    crawl.close(crawl.stop_reason)
    assert crawl.fetched == asked
    pages = context.tables.read(f"pages/{bucket:03}/00001")["url"].to_pylist()
    slow = [url for url in pages if url.startswith(SLOW)]
    assert 1 <= len(slow) <= 60 / 25 + 1
    run_task(Task("update", str(tmp_path), bucket, 1))
    name = f"candidates/{bucket:03}/00001"
    waiting = context.tables.read(name)["url"].to_pylist()
    left = [url for url in SEEDS if url.startswith(SLOW) and url not in pages]
    assert [url for url in waiting if url.startswith(SLOW)] == left[:6]
    assert not {*waiting} & {*pages}
    assert {url for url in first if url.startswith(SLOW)} & {*waiting}


def fetch(under_way: LiveFetchFolder, number: int) -> None:
    """Record a page as a crawl does: in its WARC file, then in its store."""
    with WarcRecorder(under_way.folder / "pages.warc.gz") as recorder:
        recorder.record(
            request_method="GET",
            url=f"http://a.example/{number}",
            request_headers=[],
            request_body=b"",
            status=200,
            reason="OK",
            response_headers=[("Content-Type", "text/html")],
            body_raw=b"<p>bicycle",
            ip=None,
            at=datetime.now(UTC),
        )
    with closing(sqlite3.connect(under_way.folder / "crawl.db")) as store, store:
        store.execute("CREATE TABLE IF NOT EXISTS page (number)")
        store.execute("INSERT INTO page VALUES (?)", (number,))


def had(under_way: LiveFetchFolder) -> tuple[list[str], list[int]]:
    """Return the pages recorded, and those in the store."""
    recorded = open_web(str(under_way.folder / "pages.warc.gz")).urls()
    with closing(sqlite3.connect(under_way.folder / "crawl.db")) as store:
        stored = [number for (number,) in store.execute("SELECT number FROM page")]
    return sorted(url.rpartition("/")[2] for url in recorded), stored


def test_another_machine_goes_on_from_the_last_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tables, "local_path", lambda *_: None)  # as of tables on S3
    tables = Tables(str(tmp_path / "tables"))
    first = LiveFetchFolder(tables, 3, 7)
    first.copy()  # nothing yet
    for number in (1, 2):
        fetch(first, number)
        first.copy()
    recording = first.folder / "pages.warc.gz"
    whole = recording.read_bytes()
    fetch(first, 3)
    with recording.open("r+b") as file:  # it is killed while it writes the third one
        file.truncate(len(whole) + 20)
    first.copy()
    second = LiveFetchFolder(tables, 3, 7)
    assert had(second) == (["1", "2"], [1, 2, 3])
    assert (second.folder / "pages.warc.gz").read_bytes() == whole
    fetch(second, 4)
    second.copy()
    third = LiveFetchFolder(tables, 3, 7)
    assert had(third) == (["1", "2", "4"], [1, 2, 3, 4])
    for each in (first, second, third):
        each.close()
        assert not each.folder.exists()
    tables.remove("under-way")
    assert not [*(tmp_path / "tables").glob("under-way/*")]


def test_beside_the_tables_it_is_kept_until_the_round_is_over(tmp_path: Path) -> None:
    tables = Tables(str(tmp_path))
    fetch(LiveFetchFolder(tables, 0, 1), 1)
    again = LiveFetchFolder(tables, 0, 1)
    assert again.folder == tmp_path / "under-way" / "000-00001"
    assert had(again) == (["1"], [1])
