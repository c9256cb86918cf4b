"""``focuscrawl topic`` and crawls: what follows, live and recorded; when a topic is left."""

from __future__ import annotations

import csv
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.topics import read_definition
from focuscrawl.webs.synthetic import SyntheticWeb

from .impatience import impatient
from .running import TOPIC, Kept, crawl, start
from .topic_commands import refused, topic

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import LocalWeb


def test_answers_in_a_table_are_followed_when_the_crawl_is_resumed(
    demo: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    questions = tmp_path / "questions.csv"
    assert topic("suggest", folder, "--n", "8", "--out", questions).exit_code == 0
    with questions.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    web = SyntheticWeb()
    true = {label.url: label.topic for label in web.labels()}
    for row in rows:
        row["verdict"] = "y" if true.get(row["url"]) == TOPIC else "n"
    rows[0]["verdict"] = "?"
    with questions.open("w") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    done = topic("suggest", folder, "--answers", questions)
    assert done.exit_code == 0, done.output
    assert "60 pages judged anew" in done.output or "59 pages judged anew" in done.output
    kept = read_definition(folder / "topic.toml")
    assert kept.judged == {row["url"] for row in rows[1:]}
    assert kept.topics == (TOPIC,)
    begun = Kept(folder).order
    after = crawl(folder, **demo, budget=90)  # as it was begun
    assert after.returncode == 0, after.stderr
    assert after.kept.order[:60] == begun
    assert len(after.kept.order) == 90
    critic = after.kept.query("SELECT value FROM meta WHERE key = 'critic_name'")
    assert critic == [(str(folder / "critic-1"),)]
    # another topic is still another crawl
    other = crawl(folder, **{**demo, "topic": "/Sports/Running"}, budget=95)
    assert other.returncode == 2
    assert "its topic is" in other.stderr


def test_a_running_crawl_follows_before_its_next_fetch(
    demo: dict[str, str], tmp_path: Path
) -> None:
    folder, path = tmp_path / "crawl", tmp_path / "mine.toml"
    topic("new", path, "--critic", "models/demo", "--topic", "/Sports/Running", "--web", "demo")
    options = ("-s", "DOWNLOAD_DELAY=0.05")  # it would be through before it is told
    with start(folder, *options, **demo, budget=0) as running:
        running.wait_for(15)
        told = topic("apply", folder, path)
        assert told.exit_code == 0, told.output
        assert "the crawl is running" in told.output
        kept, sql = Kept(folder), "SELECT seq FROM events WHERE kind = 'redefined'"
        for _ in range(3000):
            if kept.query(sql):
                break
            time.sleep(0.02)
        ((seq,),) = kept.query(sql)
        running.wait_for(seq + 5)
        run = running.stop(signal.SIGINT)
    assert run.returncode == 0, run.stderr
    assert "following a new definition" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.kept.query("SELECT value FROM meta WHERE key = 'topic'") == [("/Sports/Running",)]
    assert len(run.kept.order) >= seq + 5
    mean = "SELECT avg(relevance) FROM page WHERE topic = '/Sports/Cycling'"
    assert run.kept.query(mean)[0][0] < 0.1


LIVE = {
    "FOCUSCRAWL_PRIVATE_ADDRESSES": "127.0.0.0/8",
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": 0,
    "RETRY_TIMES": 0,
}


def live(web: LocalWeb, **settings: object) -> list[str]:
    """Return the options of a crawl of the test servers."""
    given = {**LIVE, **impatient(1, f"{web.origins['slow']}/", only=True), **settings}
    return [part for name, value in given.items() for part in ("-s", f"{name}={value}")]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_live_crawl_needs_its_recording(
    local_web: LocalWeb, tmp_path: Path, *, recorded: bool
) -> None:
    words, folder, path = tmp_path / "words", tmp_path / "crawl", tmp_path / "mine.toml"
    train = ["critic", "train", "--words", "page, start", "--out", str(words)]
    assert CliRunner().invoke(main, train).exit_code == 0
    options = live(local_web, FOCUSCRAWL_WARC=int(recorded))
    seeds = f"{local_web.origins['a']}/"
    given = {"critic": words, "topic": "/good", "seeds": seeds, "strategy": "best-first"}
    begun = crawl(folder, *options, **given, budget=12)
    assert begun.returncode == 0, begun.stderr
    waiting = Kept(folder).query("SELECT count(*) FROM frontier WHERE state = 'queued'")
    assert topic("new", path, "--words", "knots, reef").exit_code == 0
    if not recorded:
        assert "-s FOCUSCRAWL_WARC=1" in refused("apply", folder, path)
        assert "-s FOCUSCRAWL_WARC=1" in refused("suggest", folder)  # before it asks
        assert "-s FOCUSCRAWL_WARC=1" in refused("suggest", folder, "--web", "demo")
        assert not [*folder.glob("topic.toml")]
        return
    assert re.search(
        r"^recorded +\d+ KB in pages.warc.gz, .*FOCUSCRAWL_WARC=0", begun.stderr, re.M
    )
    asked = topic("suggest", folder, "--n", "2", answers="y\nn\n")
    assert asked.exit_code == 0, asked.output
    assert "judged anew" in asked.output
    done = topic("apply", folder, path)
    assert done.exit_code == 0, done.output
    assert "could not be read" not in done.output
    # links to pages that were not recorded wait as they did
    assert Kept(folder).query("SELECT count(*) FROM frontier WHERE state = 'queued'") == waiting
    again = crawl(folder, *options, **given, budget=15)
    assert again.returncode == 0, again.stderr
    assert len(again.kept.order) == 15


def test_the_examples_of_the_critic_may_be_elsewhere(local_web: LocalWeb, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    options = live(local_web)
    given = {"critic": "models/demo", "topic": TOPIC, "seeds": f"{local_web.origins['a']}/"}
    assert crawl(folder, *options, **given, budget=6).returncode == 0
    line = refused("suggest", folder)  # before it asks
    assert "only 0 of the 799 examples of models/demo can be read" in line
    assert "--web" in line
    done = topic("suggest", folder, "--n", "1", "--web", "demo", answers="n\n")
    assert done.exit_code == 0, done.output
    assert "judged anew" in done.output
    assert read_definition(folder / "topic.toml").web == "demo"


@pytest.mark.long
def test_the_alarm_is_in_the_store_the_summary_and_the_report(
    demo: dict[str, str], tmp_path: Path
) -> None:
    run = crawl(tmp_path / "crawl", **{**demo, "strategy": "breadth-first"}, budget=200)
    alarms = run.kept.query("SELECT seq, detail FROM events WHERE kind = 'alarm' ORDER BY id")
    assert alarms, "a blind crawl leaves its topic"
    assert "goes to /" in alarms[0][1]
    assert alarms[0][1] in run.stderr
    report = CliRunner().invoke(main, ["report", str(tmp_path / "crawl")])
    assert report.exit_code == 0, report.output
    page = (tmp_path / "crawl" / "report" / "report.html").read_text()
    assert "Why the harvest fell" in page
    # a resumed crawl tells what one in one go tells
    halves = tmp_path / "halves"
    given = {**demo, "strategy": "breadth-first"}
    crawl(halves, **given, budget=alarms[0][0] - 20)
    kept = crawl(halves, **given, budget=200).kept
    sql = "SELECT seq, kind, detail FROM events WHERE kind IN ('alarm', 'recovered') ORDER BY id"
    assert kept.query(sql) == run.kept.query(sql)
