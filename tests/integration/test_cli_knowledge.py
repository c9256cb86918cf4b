"""``focuscrawl knowledge``, ``focuscrawl recrawl`` and crawls that know something."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlConfig, open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.errors import UserError
from focuscrawl.knowledge import Knowledge
from focuscrawl.lab.results import Results
from focuscrawl.webs import open_web
from studies.figures import FIGURES

from . import warm
from .running import TOPIC, Kept, Run, crawl_until
from .running import crawl as run_crawl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

BUDGET = 60
NAME = "Sports_Cycling.db"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def learn(crawl_dir: Path, out: Path) -> Result:
    return invoke("knowledge", "learn", crawl_dir, "--topic", TOPIC, "--out", out)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, demo: dict[str, str]) -> Path:
    """Folder of an apprentice's crawl of the first version, and what was learned from it."""
    folder = tmp_path_factory.mktemp("first")
    given = {**demo, "web": "demo@1", "strategy": "apprentice", "budget": str(BUDGET)}
    done = run_crawl(folder / "crawl", **given)
    assert done.returncode == 0, done.stderr
    result = learn(folder / "crawl", folder / "k.db")
    assert result.exit_code == 0, result.output
    assert f"{BUDGET} fetches" in result.output
    return folder


def again(folder: Path, known: Path, *options: str, version: int = 2, **more: object) -> Run:
    """Crawl another version with what is known."""
    given = {"topic": TOPIC, "critic": "models/demo", "web": f"demo@{version}", "budget": BUDGET}
    return run_crawl(folder, *options, **{**given, "knowledge": known, **more})


def one_line(stderr: str, *named: str) -> None:
    (line,) = stderr.strip().splitlines()
    for each in named:
        assert each in line


def test_show(first: Path) -> None:
    result = invoke("knowledge", "show", first / "k.db", "--top", "3")
    assert result.exit_code == 0, result.output
    assert "apprentice kept" in result.output
    assert TOPIC in result.output
    with closing(Knowledge(first / "k.db")) as known:
        seeds, keywords = known.seeds(3), [*known.keywords.weights][:3]
        assert known.waiting(10)
    for text in (*seeds, *keywords):
        assert text in result.output
    of_one = invoke("knowledge", "show", first / "k.db", seeds[0], "http://never.example/")
    assert "relevance" in of_one.output
    assert "ETag" in of_one.output
    assert "never fetched" in of_one.output
    assert invoke("knowledge", "show", first / "k.db", "nothing").exit_code == 2


def test_what_learning_refuses(first: Path, tmp_path: Path) -> None:
    before = (first / "k.db").read_bytes()
    other = invoke("knowledge", "learn", first / "crawl", "--topic", "/Home", "--out", tmp_path)
    again_ = learn(first / "crawl", first / "k.db")
    none = learn(tmp_path, first / "k.db")
    cut = tmp_path / "cut.db"
    cut.write_bytes(before[:5000])
    short = learn(first / "crawl", cut)
    for result, named in (
        (other, "not of /Home"),
        (again_, "already"),
        (none, "holds no crawl"),
        (short, "cut short"),
    ):
        assert result.exit_code == 2, result.output
        one_line(result.stderr, named)
    assert (first / "k.db").read_bytes() == before
    assert cut.read_bytes() == before[:5000]


def test_of_several_crawls_those_learned_already_are_passed_over(
    first: Path, tmp_path: Path
) -> None:
    replayed(tmp_path / "second", strategy="best-first", budget=20)
    shutil.copy(first / "k.db", tmp_path / "k.db")
    both = [first / "crawl", tmp_path / "second"]
    done = invoke("knowledge", "learn", *both, "--topic", TOPIC, "--out", tmp_path / "k.db")
    assert done.exit_code == 0, done.output
    passed, learned = done.output.strip().splitlines()
    assert "has crawl" in passed
    assert "20 fetches" in learned
    with closing(Knowledge(tmp_path / "k.db")) as known:
        assert known.about["crawls"] == "2"


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
    revisit = ("-s", "FOCUSCRAWL_REVISIT=1")
    whole = again(tmp_path / "whole", first / "k.db", *revisit, fresh=True)
    assert whole.returncode == 0, whole.stderr
    known = tmp_path / "k.db"
    shutil.copyfile(first / "k.db", known)
    given = {"topic": TOPIC, "critic": "models/demo", "web": "demo@2", "budget": BUDGET}
    killed = crawl_until(
        tmp_path / "crawl", 31, signal.SIGKILL, *revisit, **given, knowledge=known
    )
    assert killed.returncode == -signal.SIGKILL
    known.unlink()  # it goes on with what it began with
    done = run_crawl(tmp_path / "crawl", *revisit, **given)
    assert done.returncode == 0, done.stderr
    assert done.kept.order == whole.kept.order
    assert done.kept.query("SELECT * FROM frontier ORDER BY url") == whole.kept.query(
        "SELECT * FROM frontier ORDER BY url"
    )
    statuses = dict(whole.kept.query("SELECT status, count(*) FROM page GROUP BY status"))
    unchanged = statuses[304]
    fetches = sum(statuses.values())
    assert fetches - int(0.9 * unchanged) == BUDGET
    relevance = whole.kept.query("SELECT min(relevance) FROM page WHERE status = 304")
    assert relevance[0][0] > 0.0  # what is not modified is as relevant as it was
    summary = invoke("report", tmp_path / "whole").output
    assert f"{fetches} fetches, {unchanged} not modified" in summary
    with closing(Knowledge(first / "k.db")) as knowledge:
        for url, status in whole.kept.query("SELECT url, status FROM pages"):
            assert status != 304 or knowledge.page(url) is not None


def test_what_a_crawl_refuses(first: Path, tmp_path: Path) -> None:
    refused = again(tmp_path / "crawl", tmp_path / "none.db")
    assert refused.returncode == 2, refused.stderr
    one_line(refused.stderr, "there is no knowledge at")
    cost = again(tmp_path / "crawl", first / "k.db", "-s", "FOCUSCRAWL_NOT_MODIFIED_COST=2")
    assert cost.returncode == 2
    one_line(cost.stderr, "from 0 to 1")
    for given, named in (
        ({"topic": "/Home/Cooking"}, "not /Home/Cooking"),
        ({"strategy": "best-first"}, "does not use knowledge"),
        ({"strategy": "learnable", "revisit": True}, "goes with the strategy"),
        ({"knowledge": None, "revisit": True}, "add -a knowledge=FILE"),
    ):
        with pytest.raises(UserError, match=named):
            replayed(tmp_path / "crawl", **{"knowledge": str(first / "k.db"), **given})
    assert not (tmp_path / "crawl").exists()


def recrawl(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Run the command as cron does: in some folder, without a terminal."""
    line = ["recrawl", TOPIC, *arguments]
    return warm.run(line, cwd=folder, env=os.environ, program="focuscrawl")


def test_recrawl_is_one_command(tmp_path: Path, demo: dict[str, str]) -> None:
    same = ("--budget", "40", "--seeds", demo["seeds"])
    outputs = []
    for version in (1, 2):
        done = recrawl(tmp_path, *same, "--web", f"demo@{version}")
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines()[-1])
    assert "0 changed, 0 unchanged" in outputs[0]
    assert "0 changed" not in outputs[1]
    with closing(Knowledge(tmp_path / "knowledge" / NAME)) as known:
        history = [*known.history()]
        assert [row[0] for row in history] == [1, 2]
        assert known.graduate is not None
        before = known.about["state"]
    refused = invoke("recrawl", TOPIC, "--budget", "many", "--web", "demo@4")
    assert refused.exit_code == 2
    one_line(refused.stderr, "--budget must be a whole number")
    missing = recrawl(tmp_path, "--budget", "5", "--web", "nothing.warc")
    assert missing.returncode == 2
    with closing(Knowledge(tmp_path / "knowledge" / NAME)) as known:
        assert known.about["state"] == before


def test_a_recrawl_told_to_end_learns_what_it_has(tmp_path: Path) -> None:
    program = "from focuscrawl.cli.main import main; main()"
    arguments = ["recrawl", TOPIC, "--budget", "0", "--web", "demo", "--crawl-dir", "crawl"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        while process.poll() is None and stored(tmp_path / "crawl") < 20:
            time.sleep(0.01)
        refused = invoke(
            "recrawl", TOPIC, "--budget", "5", "--knowledge", tmp_path / "knowledge" / NAME
        )
        process.terminate()
        output, _ = process.communicate(timeout=600)
    assert refused.exit_code == 2
    one_line(refused.stderr, "is running")
    assert process.returncode == 0
    assert "fetches" in output
    with closing(Knowledge(tmp_path / "knowledge" / NAME)) as known:
        assert len(known) >= 20


def stored(folder: Path) -> int:
    try:
        return int(Kept(folder).query("SELECT count(*) FROM page")[0][0])
    except sqlite3.OperationalError:  # the store is not there yet
        return -1


STUDY = f"""
draws = 1
budget = 12
baseline = "one"
[[webs]]
name = "demo"
recording = "demo"
labels = "models/demo/examples.csv"
seeds = "models/demo/seeds.csv"
critic = "models/demo"
topics = ["{TOPIC}"]
[[strategies]]
label = "one"
strategy = "learnable"
[[strategies]]
label = "two"
strategy = "learnable"
knows = "one"
seeds = 1
[[strategies]]
label = "two, alone"
strategy = "learnable"
seeds = 1
"""


@pytest.mark.long
def test_crawls_of_a_study_learn_from_each_other(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    done = invoke("lab", "run", tmp_path / "study.toml", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "demo: learning from crawl to crawl" in done.output
    results = Results.open(tmp_path / "out")
    assert (results.knows, results.alone) == ({"two": "one"}, {"two": "two, alone"})
    starts = {
        label: set(results.fetches(["url"], strategy=label)["url"][:5])
        for label in results.strategies
    }
    assert starts["two"] == starts["two, alone"]
    assert not starts["one"] & starts["two"]
    assert not [*(tmp_path / "out").glob("runs/**/knowledge.db")]
    tables = (tmp_path / "out" / "tables.md").read_text()
    assert "| two |" in tables.partition("learning from crawl to crawl")[2]
    drawn = FIGURES["l-learning-learnable"].of(results)
    assert drawn is not None


class _Site(BaseHTTPRequestHandler):
    """Two pages with validators, one of which is edited between two crawls."""

    edited = False
    asked: list[tuple[str, str | None, str | None, int]] = []  # noqa: RUF012 - shared on purpose

    def do_GET(self) -> None:
        text = "bicycle " * 40 + ("with news " if self.path == "/a" and _Site.edited else "")
        etag = f'"{len(text)}"'
        known = self.headers.get("If-None-Match")
        page = self.path in ("/", "/a", "/b")
        status = 404 if not page else 304 if known == etag else 200
        links = "".join(f'<a href="{path}">bicycle</a>' for path in ("/", "/a", "/b"))
        body = f"<title>bicycle</title><p>{text}{self.path}{links}".encode()
        if self.path != "/robots.txt":
            _Site.asked.append((self.path, known, self.headers.get("If-Modified-Since"), status))
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        if page:
            self.send_header("ETag", etag)
            self.send_header("Last-Modified", "Mon, 06 Jan 2025 00:00:00 GMT")
        self.send_header("Content-Length", "0" if status == 304 else str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    _Site.edited, _Site.asked = False, []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.long
def test_a_live_server_is_asked_on_condition(site: str, tmp_path: Path) -> None:
    critic = tmp_path / "words"
    trained = invoke("critic", "train", "--words", "bicycle", "--out", critic)
    assert trained.exit_code == 0, trained.output
    loopback = "FOCUSCRAWL_PRIVATE_ADDRESSES=127.0.0.0/8"
    settings = ("-s", loopback, "-s", "DOWNLOAD_DELAY=0", "-s", "AUTOTHROTTLE_ENABLED=0")
    given = {"topic": "/good", "critic": critic, "budget": 10}
    done = run_crawl(tmp_path / "one", *settings, **given, seeds=site)
    assert done.returncode == 0, done.stderr
    result = invoke(
        "knowledge", "learn", tmp_path / "one", "--topic", "/good", "--out", tmp_path / "k.db"
    )
    assert "3 new pages" in result.output
    _backdate(tmp_path / "k.db", 2.0)
    _Site.edited, _Site.asked = True, []
    revisit = (*settings, "-s", "FOCUSCRAWL_REVISIT=1")
    done = run_crawl(tmp_path / "two", *revisit, **given, knowledge=tmp_path / "k.db")
    assert done.returncode == 0, done.stderr
    statuses = {path: status for path, _, _, status in _Site.asked}
    assert statuses == {"/": 304, "/a": 200, "/b": 304}
    assert all(etag and date for _, etag, date, _ in _Site.asked)
    kept = Kept(tmp_path / "two")
    assert len(kept.urls) == 3
    result = invoke(
        "knowledge", "learn", tmp_path / "two", "--topic", "/good", "--out", tmp_path / "k.db"
    )
    assert "0 new pages, 1 changed, 2 unchanged, 0 failed" in result.output, result.output
    start = kept.query("SELECT value FROM meta WHERE key = 'now'")
    assert json.loads(start[0][0]) > 20_000.0  # days since 1970


def _backdate(path: Path, days: float) -> None:
    """Make as if the crawl had been some days ago."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE page SET visited = visited - ?", (days,))
