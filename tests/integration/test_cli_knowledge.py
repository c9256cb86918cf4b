"""``focuscrawl knowledge``, ``focuscrawl recrawl`` and crawls that know something."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.errors import UserError
from focuscrawl.knowledge import Knowledge
from focuscrawl.webs import open_web

from . import warm
from .running import TOPIC, Kept, crawl, crawl_until, refused
from .typed import focuscrawl, mistaken

if TYPE_CHECKING:
    from click.testing import Result

BUDGET = 60
NAME = "Sports_Cycling.db"


def learn(crawl_dir: Path, out: Path) -> Result:
    return focuscrawl("knowledge", "learn", crawl_dir, "--topic", TOPIC, "--out", out)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, demo: dict[str, str]) -> Path:
    """Folder of an apprentice's crawl of the first version, and what was learned from it."""
    folder = tmp_path_factory.mktemp("first")
    given = {**demo, "web": "demo@1", "strategy": "apprentice", "budget": str(BUDGET)}
    crawl(folder / "crawl", **given)
    assert f"{BUDGET} fetches" in learn(folder / "crawl", folder / "k.db").output
    return folder


def test_show(first: Path) -> None:
    show = ("knowledge", "show", first / "k.db")
    result = focuscrawl(*show, "--top", "3")
    assert "apprentice saved" in result.output
    assert TOPIC in result.output
    with closing(Knowledge(first / "k.db")) as known:
        seeds, keywords = known.seeds(3), [*known.keywords.weights][:3]
        assert known.queued_urls(10)
    for text in (*seeds, *keywords):
        assert text in result.output
    of_one = focuscrawl(*show, seeds[0], "http://never.example/")
    for text in ("relevance", "ETag", "never fetched"):
        assert text in of_one.output
    mistaken(*show, "nothing")


def test_what_learning_refuses(first: Path, tmp_path: Path) -> None:
    before = (first / "k.db").read_bytes()
    cut = tmp_path / "cut.db"
    cut.write_bytes(before[:5000])
    for crawled, topic, out, named in (
        (first / "crawl", "/Home", tmp_path / "k.db", "not /Home"),
        (first / "crawl", TOPIC, first / "k.db", "already"),
        (tmp_path, TOPIC, first / "k.db", "contains no crawl"),
        (first / "crawl", TOPIC, cut, "truncated"),
    ):
        assert named in mistaken("knowledge", "learn", crawled, "--topic", topic, "--out", out)
    assert (first / "k.db").read_bytes() == before
    assert cut.read_bytes() == before[:5000]


def test_of_several_crawls_those_learned_already_are_passed_over(
    first: Path, tmp_path: Path
) -> None:
    replayed(tmp_path / "second", strategy="best-first", budget=20)
    out = shutil.copy(first / "k.db", tmp_path / "k.db")
    both = (first / "crawl", tmp_path / "second")
    done = focuscrawl("knowledge", "learn", *both, "--topic", TOPIC, "--out", out)
    passed, learned = done.output.strip().splitlines()
    assert "already contains crawl" in passed
    assert "20 fetches" in learned
    with closing(Knowledge(tmp_path / "k.db")) as known:
        assert known.meta["crawls"] == "2"


def replayed(folder: Path, **plan: Any) -> list[tuple[str, float]]:
    """Crawl the first version without Scrapy; return URLs and relevances in their order."""
    given = {"topic": TOPIC, "critic": "models/demo", "web": "demo@1", "budget": BUDGET, **plan}
    replay(open_crawl(CrawlConfig(crawl_dir=str(folder), **given)))
    pages = "SELECT u.url, p.relevance FROM page p JOIN url u ON u.id = p.url ORDER BY p.seq"
    return [(url, relevance) for url, relevance in Kept(folder).query(pages)]


@pytest.mark.parametrize("strategy", ["apprentice", "learnable"])
def test_a_crawl_with_knowledge_finds_more(
    first: Path, tmp_path: Path, strategy: str, demo: dict[str, str]
) -> None:
    """From one start page; and from its own start pages if it is given none."""
    there = open_web("demo@1").resolve(demo["seeds"].split(","))
    given = {"strategy": strategy, "seeds": next(url for url in there if url is not None)}
    known = replayed(tmp_path / "known", knowledge=str(first / "k.db"), **given)
    alone = replayed(tmp_path / "alone", **given)
    assert sum(r for _, r in known) > sum(r for _, r in alone)
    assert known == replayed(tmp_path / "again", knowledge=str(first / "k.db"), **given)
    own = replayed(tmp_path / "own", strategy=strategy, knowledge=str(first / "k.db"), budget=8)
    with closing(Knowledge(first / "k.db")) as knowledge:
        assert [url for url, _ in own] == knowledge.seeds(8)


def test_a_revisit_asks_on_condition_and_resumes_exactly(first: Path, tmp_path: Path) -> None:
    given = {"topic": TOPIC, "critic": "models/demo", "web": "demo@2", "budget": BUDGET}
    given["FOCUSCRAWL_REVISIT"] = 1
    whole = crawl(tmp_path / "whole", fresh=True, **given, knowledge=first / "k.db").kept
    known = tmp_path / "k.db"
    shutil.copyfile(first / "k.db", known)
    killed = crawl_until(tmp_path / "crawl", 31, signal.SIGKILL, **given, knowledge=known)
    assert killed.returncode == -signal.SIGKILL
    known.unlink()  # it goes on with what it began with
    done = crawl(tmp_path / "crawl", **given).kept
    assert done.order == whole.order
    frontier = "SELECT * FROM frontier ORDER BY url"
    assert done.query(frontier) == whole.query(frontier)
    statuses = dict(whole.query("SELECT status, count(*) FROM page GROUP BY status"))
    unchanged = statuses[304]
    fetches = sum(statuses.values())
    assert fetches - int(0.9 * unchanged) == BUDGET
    relevance = whole.query("SELECT min(relevance) FROM page WHERE status = 304")
    assert relevance[0][0] > 0.0  # what is not modified is as relevant as it was
    summary = focuscrawl("report", tmp_path / "whole").output
    assert f"{fetches} fetches, {unchanged} not modified" in summary
    with closing(Knowledge(first / "k.db")) as knowledge:
        for url, status in whole.query("SELECT url, status FROM pages"):
            assert status != 304 or knowledge.page(url) is not None


def test_what_a_crawl_refuses(first: Path, tmp_path: Path, demo: dict[str, str]) -> None:
    given = {**demo, "strategy": "apprentice", "knowledge": first / "k.db"}
    lost = given | {"knowledge": tmp_path / "none.db"}
    assert "none.db not found" in refused(tmp_path / "crawl", **lost)
    cost = given | {"FOCUSCRAWL_NOT_MODIFIED_COST": 2}
    assert "from 0 to 1" in refused(tmp_path / "crawl", **cost)
    for more, named in (
        ({"topic": "/Home/Cooking"}, "not /Home/Cooking"),
        ({"strategy": "best-first"}, "does not use knowledge"),
        ({"strategy": "learnable", "revisit": True}, "requires the strategy"),
        ({"knowledge": None, "revisit": True}, "add -a knowledge=FILE"),
    ):
        with pytest.raises(UserError, match=named):
            replayed(tmp_path / "crawl", **{"knowledge": str(first / "k.db"), **more})
    assert not (tmp_path / "crawl").exists()


def test_recrawl_is_one_command(
    tmp_path: Path, demo: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It learns from the crawl, also where that is told to end, and is alone with a topic."""
    monkeypatch.chdir(tmp_path)
    same = ("recrawl", TOPIC, "--seeds", demo["seeds"])
    assert "0 changed, 0 unchanged" in ended(*same, "--budget", "30", "--web", "demo@1")
    with (tmp_path / "said").open("w") as said:
        line = [*same, "--budget", "0", "--web", "demo@2", "--crawl-dir", "crawl"]
        process = warm.WarmProcess(
            line, cwd=tmp_path, env=os.environ, stdout=said.fileno(), program="focuscrawl"
        )
        with process:
            while process.poll() is None and stored(tmp_path / "crawl") < 40:
                time.sleep(0.01)
            another = mistaken("recrawl", TOPIC, "--budget", "5")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=600)
    assert "is running" in another
    assert process.wait() == 0, errors
    assert re.search(r"\b[1-9]\d* changed", (tmp_path / "said").read_text().splitlines()[-1])
    with closing(Knowledge(tmp_path / "knowledge" / NAME)) as known:
        assert [row[0] for row in known.history()] == [1, 2]
        assert known.trained_apprentice is not None
        before = known.meta["state"]
    many = mistaken("recrawl", TOPIC, "--budget", "many", "--web", "demo@4")
    assert "--budget must be a whole number" in many
    focuscrawl("recrawl", TOPIC, "--budget", "5", "--web", "nothing.warc", code=2)
    with closing(Knowledge(tmp_path / "knowledge" / NAME)) as known:
        assert known.meta["state"] == before


def ended(*words: str) -> str:
    """Run a command as cron does, without a terminal; return the last line that it prints."""
    done = warm.run([*words], cwd=Path.cwd(), env=os.environ, program="focuscrawl")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def stored(folder: Path) -> int:
    try:
        return int(Kept(folder).query("SELECT count(*) FROM page")[0][0])
    except sqlite3.OperationalError:  # the store is not there yet
        return -1
