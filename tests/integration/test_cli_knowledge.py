"""``focuscrawl knowledge``, ``focuscrawl recrawl`` and crawls that know something."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from focuscrawl.cli.main import main
from focuscrawl.knowledge import Knowledge
from focuscrawl.webs import open_web

from .running import TOPIC, Kept, Run, crawl_until
from .running import crawl as run_crawl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUDGET = 60


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


@pytest.mark.parametrize("strategy", ["apprentice", "learnable"])
def test_a_crawl_with_knowledge_finds_more(
    first: Path, tmp_path: Path, strategy: str, demo: dict[str, str]
) -> None:
    """From one start page; and from its own start pages if it is given none."""
    found_there = open_web("demo@1").resolve(demo["seeds"].split(","))
    seed = next(url for url in found_there if url is not None)
    given = {"strategy": strategy, "seeds": seed, "version": 1}
    known = again(tmp_path / "known", first / "k.db", **given)  # type: ignore[arg-type]
    assert known.returncode == 0, known.stderr
    same = {**demo, "strategy": strategy, "seeds": seed, "web": "demo@1", "budget": str(BUDGET)}
    alone = run_crawl(tmp_path / "alone", **same)
    assert alone.returncode == 0, alone.stderr
    found = "SELECT sum(relevance) FROM page"
    assert known.kept.query(found) > alone.kept.query(found)
    own = again(tmp_path / "own", first / "k.db", strategy=strategy, budget=25)
    assert own.returncode == 0, own.stderr
    with closing(Knowledge(first / "k.db")) as knowledge:
        assert set(own.kept.urls[:5]) <= set(knowledge.seeds())


def test_a_revisit_asks_on_condition_and_resumes_exactly(first: Path, tmp_path: Path) -> None:
    revisit = ("-s", "FOCUSCRAWL_REVISIT=1")
    whole = again(tmp_path / "whole", first / "k.db", *revisit)
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
    newer = tmp_path / "none.db"
    known = first / "k.db"
    for options, given, named in (
        ((), {"knowledge": newer}, "there is no knowledge at"),
        ((), {"topic": "/Home/Cooking"}, "not /Home/Cooking"),
        ((), {"strategy": "best-first"}, "does not use knowledge"),
        (("-s", "FOCUSCRAWL_REVISIT=1"), {"strategy": "learnable"}, "goes with the strategy"),
        (("-s", "FOCUSCRAWL_NOT_MODIFIED_COST=2"), {}, "from 0 to 1"),
    ):
        refused = again(tmp_path / "crawl", known, *options, **given)
        assert refused.returncode == 2, refused.stderr
        one_line(refused.stderr, named)
        assert not (tmp_path / "crawl").exists()


def recrawl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as cron does: in some folder, without a terminal."""
    program = "from focuscrawl.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "recrawl", TOPIC, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_recrawl_is_one_command(tmp_path: Path, demo: dict[str, str]) -> None:
    same = ("--budget", "40", "--seeds", demo["seeds"])
    outputs = []
    for version in (1, 2, 3):
        done = recrawl(tmp_path, *same, "--web", f"demo@{version}")
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines()[-1])
    assert "0 changed, 0 unchanged" in outputs[0]
    assert "0 changed" not in outputs[1]
    with closing(Knowledge(tmp_path / "knowledge" / "Sports_Cycling.db")) as known:
        history = [*known.history()]
        assert [row[0] for row in history] == [1, 2, 3]
        assert known.graduate is not None
        before = known.about["state"]
    refused = recrawl(tmp_path, "--budget", "many", "--web", "demo@4")
    assert refused.returncode == 2
    one_line(refused.stderr, "--budget must be a whole number")
    missing = recrawl(tmp_path, "--budget", "5", "--web", "nothing.warc")
    assert missing.returncode == 2
    with closing(Knowledge(tmp_path / "knowledge" / "Sports_Cycling.db")) as known:
        assert known.about["state"] == before


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
