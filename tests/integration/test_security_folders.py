"""A stranger's crawl, gone on with: it runs nothing of theirs, and writes nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.critic import load_critic

from . import warm
from .running import ROOT, TOPIC, crawl, words

if TYPE_CHECKING:
    import subprocess

EVIL = "open('marker', 'w').close()\ndef judge(pages):\n    return [0.5] * len(pages)\n"
GIVEN = {"topic": TOPIC, "web": "demo", "strategy": "best-first", "critic": "models/demo"}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of 10 fetches."""
    folder = tmp_path_factory.mktemp("begun") / "crawl"
    crawl(folder, budget=10, **GIVEN)
    return folder


@pytest.fixture
def theirs(begun: Path, tmp_path: Path) -> Path:
    """The folder of that crawl, as a stranger gave it away: with a module in it."""
    folder = tmp_path / "theirs"
    shutil.copytree(begun, folder)
    (folder / "evil.py").write_text(EVIL)
    return folder


def go_on(folder: Path, **given: object) -> subprocess.CompletedProcess[str]:
    """Resume a crawl from within its folder, which modules are imported from."""
    return forked(folder, "scrapy", words(Path(), **GIVEN, **given, budget=15))


def forked(here: Path, program: str, line: list[str]) -> subprocess.CompletedProcess[str]:
    given = os.environ | {
        "PYTHONPATH": str(ROOT),
        "SCRAPY_SETTINGS_MODULE": "focuscrawl.settings",
        "FOCUSCRAWL_CACHE": str(here.parent / "cache"),  # nothing is known of any page
    }
    return warm.run(line, cwd=here, env=given, program=program)


def fetches(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        ((n,),) = database.execute("SELECT count(*) FROM page").fetchall()
    return int(n)


def test_a_program_that_a_folder_asks_to_follow_is_not_run(theirs: Path) -> None:
    wanted = {"critic": "evil:judge", "topic": TOPIC, "web": None}
    (theirs / "follow.json").write_text(json.dumps(wanted))
    done = go_on(theirs)
    assert not (theirs / "marker").exists()
    assert done.returncode == 0, done.stderr
    assert "add -a critic=evil:judge" in done.stderr
    assert fetches(theirs) == 15


@pytest.mark.parametrize("name", ["evil:judge", "elsewhere/evil:judge"])
def test_a_program_that_a_store_names_as_its_critic_is_not_run(theirs: Path, name: str) -> None:
    known = {
        "critic_name": name,
        "begun_critic": load_critic("models/demo", TOPIC).fingerprint,
        "begun_topic": TOPIC,
    }
    with closing(sqlite3.connect(theirs / "crawl.db")) as database, database:
        database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", known.items())
    done = go_on(theirs)
    assert not (theirs / "marker").exists()
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "add -a critic=evil:judge" in line


def test_a_program_is_not_run_to_find_out_how_it_judged(theirs: Path) -> None:
    with closing(sqlite3.connect(theirs / "crawl.db")) as database, database:
        database.execute("UPDATE meta SET value = 'evil:judge' WHERE key = 'critic_name'")
    topic = f'critic = "models/demo"\ntopics = ["{TOPIC}"]\n'
    (theirs / "topic.toml").write_text(topic)
    done = forked(theirs, "focuscrawl", ["topic", "apply", ".", "topic.toml"])
    assert not (theirs / "marker").exists()
    assert done.returncode == 0, done.stderr


# -- files outside of the folder -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("crawl.db", {}),
        ("crawl.lock", {}),
        ("knowledge.db", {}),
        ("log.jsonl", {"FOCUSCRAWL_LOG_JSON": 1}),
    ],
)
def test_no_link_in_a_folder_is_written_through(
    theirs: Path, name: str, given: dict[str, int]
) -> None:
    outside = theirs.parent / "precious"
    if (theirs / name).exists():
        shutil.move(theirs / name, outside)
    else:
        outside.write_text("precious")
    before = outside.read_bytes()
    (theirs / name).symlink_to(outside)
    done = go_on(theirs, **given)
    assert outside.read_bytes() == before
    assert done.returncode == 2, done.stderr
    assert f"{name} is a link to {outside}" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_link_in_a_folder_is_read_as_what_to_follow(theirs: Path) -> None:
    outside = theirs.parent / "precious"
    outside.write_text(json.dumps({"critic": "secret", "topic": TOPIC, "web": None}))
    (theirs / "follow.json").symlink_to(outside)
    done = go_on(theirs)
    assert done.returncode == 0, done.stderr
    assert "follow.json is a link to" in done.stderr
    assert "secret" not in done.stderr
    assert outside.exists()


def test_a_report_is_written_into_no_link(theirs: Path) -> None:
    outside = theirs.parent / "outside"
    outside.mkdir()
    (theirs / "report").symlink_to(outside)
    done = forked(theirs, "focuscrawl", ["report", "."])
    assert done.returncode == 2
    assert "report is a link to" in done.stderr
    assert not [*outside.iterdir()]
    (theirs / "report").unlink()
    (theirs / "report").mkdir()
    (outside / "precious").write_text("precious")
    for name in ("loss.png", "report.html"):
        (theirs / "report" / name).symlink_to(outside / "precious")
    assert forked(theirs, "focuscrawl", ["report", "."]).returncode == 0
    assert (outside / "precious").read_text() == "precious"
    assert "<html" in (theirs / "report" / "report.html").read_text()


def test_a_pipe_keeps_nobody_waiting(theirs: Path) -> None:
    for name in ("control.json", "follow.json"):
        os.mkfifo(theirs / name)
    done = go_on(theirs)
    assert done.returncode == 0, done.stderr
    assert "follow.json is not a regular file" in done.stderr
    assert fetches(theirs) == 15


# -- what a store and what lies beside it name ----------------------------------------------


def named(folder: Path, web: str) -> None:
    """Have a store say that its crawl was of another web."""
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'web_name'", (web,))


READING = {
    "collect": ["collect", ".", "--out", "../pages.jsonl"],
    "suggest": ["topic", "suggest", ".", "--out", "../questions.csv"],
}


@pytest.mark.parametrize("reading", READING)
def test_no_store_names_whom_to_connect_to(theirs: Path, reading: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        where = f"endpoint_override=127.0.0.1:{listening.getsockname()[1]}&scheme=http"
        named(theirs, f"s3://b/x.cdxj?{where}")
        done = forked(theirs, "focuscrawl", READING[reading])
        assert done.returncode == 2
        assert "which is on another machine: name the web with --web" in done.stderr
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_recording_that_a_store_names_is_a_plain_file(theirs: Path) -> None:
    os.mkfifo(theirs.parent / "pages.warc")
    (theirs.parent / "linked.warc").symlink_to("/dev/zero")
    for name, said in (
        ("../pages.warc", "not a regular file"),
        ("../linked.warc", "is a link to"),
    ):
        named(theirs, name)
        done = forked(theirs, "focuscrawl", READING["collect"])
        assert done.returncode == 2
        assert said in done.stderr


def test_a_pipe_in_place_of_a_recording_keeps_nobody_waiting(theirs: Path) -> None:
    with closing(sqlite3.connect(theirs / "crawl.db")) as database, database:
        database.execute("UPDATE meta SET value = 'live' WHERE key = 'web'")
    os.mkfifo(theirs / "pages.warc.gz")
    done = forked(theirs, "focuscrawl", READING["collect"])
    assert done.returncode == 2
    assert "pages.warc.gz is not a regular file" in done.stderr
    (theirs / "pages.warc.gz").unlink()
    (theirs / "pages.warc.gz").symlink_to("/dev/zero")
    done = forked(theirs, "focuscrawl", READING["collect"])
    assert done.returncode == 2
    assert "pages.warc.gz is a link to /dev/zero" in done.stderr
