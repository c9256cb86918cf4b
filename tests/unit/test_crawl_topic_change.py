"""A crawl judged anew: the same critic changes nothing, another one is followed exactly."""

from __future__ import annotations

import json
import shutil
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from longer import long

from focuscrawl.completeness.recall_estimate import ESTIMATES_FILE, read_estimates
from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.crawl.rejudging import (
    REDEFINED,
    REQUEST_FILE,
    parse_moved,
    read_request,
    rejudge_crawl,
    remove_request,
    request_topic_change,
)
from focuscrawl.critic import load_critic
from focuscrawl.critic.critic_files import find_model
from focuscrawl.critic.protocol import RELEVANT
from focuscrawl.errors import UserError
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.store import CrawlStore

if TYPE_CHECKING:
    from focuscrawl.crawl import Crawl

BEGUN, OTHER = "/Sports/Cycling", "/Sports/Running"
HALF, WHOLE = 40, 70
STRATEGIES = ["best-first", "apprentice", *long("hard-focus", "pagerank")]


def plan(folder: Path, strategy: str = "best-first", budget: int = HALF) -> CrawlConfig:
    return CrawlConfig(
        topic=BEGUN,
        seeds=str(find_model("demo") / "seeds.csv"),
        strategy=strategy,
        budget=budget,
        web="demo",
        crawl_dir=str(folder),
    )


@pytest.fixture(scope="module", params=STRATEGIES)
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CrawlConfig:
    """A crawl of 40 fetches, at rest."""
    made = plan(tmp_path_factory.mktemp("begun") / "crawl", request.param)
    replay(open_crawl(made))
    return made


def copied(begun: CrawlConfig, folder: Path) -> CrawlConfig:
    assert begun.crawl_dir is not None
    shutil.copytree(begun.crawl_dir, folder)
    shutil.copytree(str(find_model("demo")), folder / "critic-1")
    return plan(folder, begun.strategy)


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    path = folder / "crawl.db"
    with closing(CrawlStore.open(path, read_only=True)) as store:
        return [tuple(row) for row in store.rows(sql)]


def judged(folder: Path) -> list[list[tuple[Any, ...]]]:
    """All that a judgement decides."""
    return [
        rows(folder, "SELECT seq, relevance, topic FROM page ORDER BY seq"),
        rows(folder, "SELECT id, score FROM link ORDER BY id"),
        rows(folder, "SELECT id, score, state FROM url WHERE state <> 1 ORDER BY id"),
        rows(folder, "SELECT seq, data FROM memo ORDER BY seq"),
    ]


def followed(folder: Path, topic: str) -> str:
    with closing(CrawlStore.open(folder / "crawl.db")) as store:
        return rejudge_crawl(store, folder, "critic-1", topic)[2].describe()


def order(folder: Path) -> list[tuple[Any, ...]]:
    return rows(folder, "SELECT seq, url, relevance FROM pages ORDER BY seq")


def go_on(folder: Path, strategy: str, budget: int) -> None:
    replay(open_crawl(plan(folder, strategy, budget)))


def test_the_same_critic_changes_nothing(begun: CrawlConfig, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    copied(begun, folder)
    before = judged(folder)
    assert parse_moved(followed(folder, BEGUN)) == (0, 0)
    after = judged(folder)
    assert after[0] == before[0]
    if begun.strategy in ("best-first", "hard-focus"):  # lessons come at other fetches
        assert after == before


def test_another_topic_is_followed_the_same_in_one_go_and_in_two(
    begun: CrawlConfig, tmp_path: Path
) -> None:
    folder, again = tmp_path / "crawl", tmp_path / "again"
    copied(begun, folder)
    before = order(folder)
    done = followed(folder, OTHER)
    assert [row[:2] for row in order(folder)] == [row[:2] for row in before]
    critic = load_critic(str(folder / "critic-1"), OTHER)
    assert parse_moved(done) == tuple(
        sum(
            (now[2] > RELEVANT) - (old[2] > RELEVANT) == side
            for now, old in zip(order(folder), before, strict=True)
        )
        for side in (1, -1)
    )
    assert sum(row[2] for row in order(folder)) < 0.5 * sum(row[2] for row in before)
    assert rows(folder, "SELECT value FROM meta WHERE key = 'critic'") == [(critic.fingerprint,)]
    shutil.copytree(folder, again)
    go_on(folder, begun.strategy, WHOLE)
    go_on(again, begun.strategy, HALF + 11)
    go_on(again, begun.strategy, WHOLE)
    assert order(again) == order(folder)
    assert len(order(folder)) == WHOLE
    with closing(open_store(folder)) as store:
        assert store.identity()["begun_topic"] == BEGUN


def test_recall_is_estimated_again_for_the_new_topic(begun: CrawlConfig, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    copied(begun, folder)
    before = read_estimates(folder / ESTIMATES_FILE)
    followed(folder, BEGUN)
    (same,) = read_estimates(folder / ESTIMATES_FILE)
    if begun.strategy == "best-first":  # an apprentice is trained at other fetches
        assert same == before[-1]
    followed(folder, OTHER)
    (now,) = read_estimates(folder / ESTIMATES_FILE)
    with closing(open_store(folder)) as store:
        assert Summary.of(store).completeness == now
    assert now.fetched == HALF
    assert now.relevant < before[-1].relevant
    go_on(folder, begun.strategy, HALF + 20)
    first, *more = read_estimates(folder / ESTIMATES_FILE)
    assert first == now
    assert more


def test_a_running_crawl_follows_as_one_at_rest_does(begun: CrawlConfig, tmp_path: Path) -> None:
    folder, running = tmp_path / "crawl", tmp_path / "running"
    copied(begun, folder)
    copied(begun, running)
    followed(folder, OTHER)
    go_on(folder, begun.strategy, WHOLE)
    crawl = open_crawl(plan(running, begun.strategy, WHOLE))
    request_topic_change(running, "critic-1", OTHER, None)
    replay(crawl)
    assert order(running) == order(folder)
    assert judged(running)[:3] == judged(folder)[:3]
    if begun.strategy == "best-first":  # an apprentice is trained at other fetches
        estimates = read_estimates(folder / ESTIMATES_FILE)
        assert read_estimates(running / ESTIMATES_FILE) == estimates
    assert not (running / REQUEST_FILE).exists()
    ((seq, detail),) = rows(running, f"SELECT seq, detail FROM events WHERE kind = '{REDEFINED}'")
    assert seq == HALF
    assert detail.startswith("critic-1: ")


def test_word_that_is_left_while_another_is_followed_stays(tmp_path: Path) -> None:
    request_topic_change(tmp_path, "critic-1", OTHER, None)
    request = read_request(tmp_path)
    request_topic_change(tmp_path, "critic-2", OTHER, None)
    remove_request(tmp_path, request)
    assert read_request(tmp_path) == ("critic-2", OTHER, None)
    remove_request(tmp_path, read_request(tmp_path))
    assert not [*tmp_path.iterdir()]


def one(tmp_path: Path) -> tuple[Path, Crawl]:
    folder = tmp_path / "crawl"
    crawl = open_crawl(plan(folder))
    return folder, crawl


def test_a_definition_that_cannot_be_followed_is_refused_and_the_crawl_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, crawl = one(tmp_path)
    request_topic_change(folder, "critic-7", OTHER, None)
    replay(crawl)
    assert len(order(folder)) == HALF
    assert not (folder / REQUEST_FILE).exists()
    wanted = json.loads((folder / REQUEST_FILE).with_suffix(".refused").read_text())
    assert wanted["critic"] == "critic-7"
    assert "cannot change the topic definition of the crawl: " in caplog.text


def test_a_web_that_is_another_by_now_is_refused_and_nothing_changes(
    begun: CrawlConfig, tmp_path: Path
) -> None:
    folder = tmp_path / "crawl"
    copied(begun, folder)
    before = judged(folder)
    with closing(CrawlStore.open(folder / "crawl.db")) as store:
        with store.connection() as connection:
            connection.execute("UPDATE meta SET value = 'x' WHERE key = 'web'")
        with pytest.raises(UserError, match=r"has changed since .* crawled"):
            rejudge_crawl(store, folder, "critic-1", OTHER)
        with store.connection() as connection:
            connection.execute("UPDATE meta SET value = 'live' WHERE key = 'web'")
        with pytest.raises(UserError, match="FOCUSCRAWL_WARC=1"):
            rejudge_crawl(store, folder, "critic-1", OTHER)
    assert judged(folder) == before


def test_nothing_is_left_of_the_lessons_before(tmp_path: Path) -> None:
    def threads() -> int:
        return sum(thread.name.startswith("lesson") for thread in threading.enumerate())

    folder, others = tmp_path / "crawl", threads()
    crawl = open_crawl(plan(folder, "apprentice", WHOLE))
    shutil.copytree(str(find_model("demo")), folder / "critic-1")
    request_topic_change(folder, "critic-1", OTHER, None)
    while crawl.critic.fingerprint == load_critic("models/demo", BEGUN).fingerprint:
        crawl.poll(0.0)
        time.sleep(0.001)
    request_topic_change(folder, "critic-1", BEGUN, None)
    replay(crawl)
    assert len(order(folder)) == WHOLE
    assert threads() == others


def test_what_is_told_while_a_crawl_is_taken_up_again_waits(tmp_path: Path) -> None:
    folder, crawl = one(tmp_path)
    crawl.reloading = True
    crawl.record_event("said", "meanwhile")
    crawl.flush()
    assert not rows(folder, "SELECT * FROM events WHERE kind = 'said'")
    crawl.reloading = False
    crawl.flush()
    assert rows(folder, "SELECT detail FROM events WHERE kind = 'said'") == [("meanwhile",)]
    crawl.close("over")
