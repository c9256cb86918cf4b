"""What a user gets wrong: one line, exit code 2, nothing written; seeds that are not there: 3."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .running import BICYCLES, ROOT, Kept, Running, crawl, refused

SEED = "http://velo-59.demo.example/"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param({"topic": None}, ["topic"], id="no-topic"),
        pytest.param({"topic": "/Sports/Cyclin"}, ["Cyclin;", "/Sports/Cycling"], id="topic"),
        pytest.param({"seeds": "{tmp}/none.csv"}, ["none.csv"], id="no-seeds-file"),
        pytest.param({"seeds": "{tmp}"}, ["seeds"], id="unreadable-seeds"),
        pytest.param({"seeds": "{tmp}/empty.txt"}, ["empty.txt"], id="empty-seeds"),
        pytest.param({"seeds": "{tmp}/other.csv"}, ["other.csv", "/Sports/Cycling"], id="no-row"),
        pytest.param({"seeds": "{tmp}/bad.txt"}, ["bad.txt, line 2", "velo"], id="no-url"),
        pytest.param({"seeds": "http://elsewhere.example/"}, ["seeds", "demo"], id="not-there"),
        pytest.param(
            {"web": None, "critic": "server.critic:judge", "seeds": "http://a.example:80/,https://b.TEST/,http://www.example.com./"},
            ["all 3", "http://a.example/", "-a web="],
            id="reserved",
        ),
        pytest.param({"critic": "models/none"}, ["models/none", "demo"], id="critic"),
        pytest.param({"critic": "no_such_module:judge"}, ["no_such_module"], id="callable"),
        pytest.param({"hosts": "https://a.example/"}, ["a.example", "is not a host"], id="hosts"),
        pytest.param({"deny": "/a|/b"}, ["/a|/b", "regular expression"], id="deny"),
        pytest.param({"discover": "rss"}, ["sitemaps, feeds, hreflang"], id="discover"),
        pytest.param({"web": "{tmp}/none.warc"}, ["none.warc"], id="web"),
        pytest.param({"web": "{tmp}/other.csv"}, ["other.csv"], id="no-warc"),
        pytest.param({"budget": "abc"}, ["budget", "abc"], id="budget-word"),
        pytest.param({"budget": "-1"}, ["budget", "-1"], id="budget-negative"),
        pytest.param({"stop": "recall 9"}, ["stop", "recall 0.9", "'recall 9'"], id="stop"),
        pytest.param({"strategy": "bestfirst"}, ["bestfirst", "best-first"], id="strategy"),
        pytest.param({"web": " "}, ["web", "empty"], id="empty-argument"),
        pytest.param({"critic": "c" * 300}, ["ccc", "name too long"], id="name-too-long"),
        pytest.param({"buget": "5"}, ["buget", "budget"], id="argument"),
    ],
)  # fmt: skip
def test_one_line_and_nothing_written(
    wrong: dict[str, str | None], said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    (tmp_path / "other.csv").write_text("topic,url\n/Home/Cooking,http://a.example/\n")
    (tmp_path / "bad.txt").write_text(f"{SEED}\nvelo\n")
    given: dict[str, str | None] = {
        "web": "demo",
        "critic": "models/demo",
        "topic": "/Sports/Cycling",
        "seeds": SEED,
        "budget": "5",
        "strategy": "best-first",
        **wrong,
    }
    arguments = {
        name: value.format(tmp=tmp_path) for name, value in given.items() if value is not None
    }
    folder = tmp_path / "crawls" / "crawl"
    line = refused(folder, **arguments)
    assert all(words in line for words in said)
    assert not folder.parent.exists()


def test_the_critic_of_the_demo_crawls_the_demo(tmp_path: Path) -> None:
    for budget in (5, 10):  # the second goes on with the first
        done = crawl(tmp_path / "crawl", topic="/Sports/Cycling", budget=budget)
    assert "apprentice on the synthetic web demo" in done.stderr
    assert done.kept.query("SELECT count(*) FROM pages WHERE status = 200") == [(10,)]


def test_a_topic_is_enough_to_crawl_the_demo(tmp_path: Path) -> None:
    """In the project, with nothing else on the command line; Ctrl-C ends it."""
    shutil.copy(ROOT / "scrapy.cfg", tmp_path)
    line = [sys.executable, "-m", "scrapy", "crawl", "focused", "-a", "topic=/Sports/Cycling"]
    bare = {k: v for k, v in os.environ.items() if not k.startswith("SCRAPY_")}
    with subprocess.Popen(line, cwd=tmp_path, env=bare, stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None and not list(tmp_path.glob("crawls/*/crawl.db")):
            time.sleep(0.05)
        folder = next(tmp_path.glob("crawls/*/crawl.db")).parent
        Running(run, Kept(folder)).wait_for(20)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
    assert "strategy      apprentice on the synthetic web demo" in said
    pages = Kept(folder).query("SELECT url, status FROM pages")
    assert all(".demo.example/" in url for url, _ in pages)
    assert sum(status == 200 for _, status in pages) >= 10


@pytest.mark.parametrize(("hosts", "opened"), [(12, "127.0.0.0/8"), (2, "127.0.0.2")])
def test_a_crawl_whose_start_pages_cannot_be_had_is_no_success(
    tmp_path: Path, hosts: int, opened: str
) -> None:
    given = BICYCLES | {"RETRY_TIMES": 0, "FOCUSCRAWL_PRIVATE_ADDRESSES": opened}
    seeds = ",".join(f"http://127.0.0.{n}:9/" for n in range(1, hosts + 1))  # nobody answers
    done = crawl(tmp_path / "crawl", code=3, **given, seeds=seeds)
    assert done.kept.stop_reasons == ["seeds_unreachable"]
    assert len(done.kept.urls) == hosts
    assert "on the topic" not in done.stderr  # of pages that were not reached nothing is said
    lines = dict(line.split(maxsplit=1) for line in done.stderr.splitlines() if line)
    assert lines["stopped"].startswith("no start page could be fetched")
    if hosts == 2:
        refusals, others = lines["errors"].split(", ")
        assert refusals == "PrivateAddressError: 1 (see FOCUSCRAWL_PRIVATE_ADDRESSES)"
        assert others == "refused: 1"
