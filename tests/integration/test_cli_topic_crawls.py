"""``focuscrawl topic`` and crawls: what follows, live and recorded; when a topic is left."""

from __future__ import annotations

import csv
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from focuscrawl.topics import read_definition
from focuscrawl.webs.synthetic import SyntheticWeb

from .impatience import impatient
from .running import QUICK, TOPIC, Kept, crawl, refused, start
from .typed import focuscrawl, mistaken

if TYPE_CHECKING:
    from click.testing import Result

    from .conftest import LocalWeb


def topic(*words: object, answers: str | None = None) -> Result:
    return focuscrawl("topic", *words, answers=answers)


def test_answers_in_a_table_are_followed_when_the_crawl_is_resumed(
    demo: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    questions = tmp_path / "questions.csv"
    topic("suggest", folder, "--n", "8", "--out", questions)
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
    assert "60 pages judged again" in done.output or "59 pages judged again" in done.output
    kept = read_definition(folder / "topic.toml")
    assert kept.judged_urls == {row["url"] for row in rows[1:]}
    assert kept.topics == (TOPIC,)
    begun = Kept(folder).order
    after = crawl(folder, **demo, budget=90)  # as it was begun
    assert after.kept.order[:60] == begun
    assert len(after.kept.order) == 90
    critic = after.kept.query("SELECT value FROM meta WHERE key = 'critic_name'")
    assert critic == [(str(folder / "critic-1"),)]
    # another topic is still another crawl
    other = {**demo, "topic": "/Sports/Running"}
    assert "its topic is" in refused(folder, **other, budget=95)


def test_a_running_crawl_follows_before_its_next_fetch(
    demo: dict[str, str], tmp_path: Path
) -> None:
    folder, path = tmp_path / "crawl", tmp_path / "mine.toml"
    topic("new", path, "--critic", "models/demo", "--topic", "/Sports/Running", "--web", "demo")
    slow = {"DOWNLOAD_DELAY": 0.05}  # it would be through before it is told
    with start(folder, **slow, **demo, budget=0) as running:
        running.wait_for(15)
        told = topic("apply", folder, path)
        assert "The crawl is running" in told.output
        kept, sql = Kept(folder), "SELECT seq FROM events WHERE kind = 'redefined'"
        for _ in range(3000):
            if kept.query(sql):
                break
            time.sleep(0.02)
        ((seq,),) = kept.query(sql)
        running.wait_for(seq + 5)
        run = running.stop(signal.SIGINT)
    assert run.returncode == 0, run.stderr
    assert "uses the new topic definition" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.kept.query("SELECT value FROM meta WHERE key = 'topic'") == [("/Sports/Running",)]
    assert len(run.kept.order) >= seq + 5
    mean = "SELECT avg(relevance) FROM page WHERE topic = '/Sports/Cycling'"
    assert run.kept.query(mean)[0][0] < 0.1


def live(web: LocalWeb) -> dict[str, object]:
    """Return the settings of a crawl of the test servers."""
    return QUICK | {"RETRY_TIMES": 0} | impatient(1, f"{web.origins['slow']}/", only=True)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_live_crawl_needs_its_recording(
    local_web: LocalWeb, tmp_path: Path, *, recorded: bool
) -> None:
    words, folder, path = tmp_path / "words", tmp_path / "crawl", tmp_path / "mine.toml"
    focuscrawl("critic", "train", "--words", "page, start", "--out", words)
    given = live(local_web) | {"FOCUSCRAWL_WARC": int(recorded), "critic": words, "topic": "/good"}
    given |= {"seeds": f"{local_web.origins['a']}/", "strategy": "best-first"}
    begun = crawl(folder, **given, budget=12)
    waiting = Kept(folder).query("SELECT count(*) FROM frontier WHERE state = 'queued'")
    topic("new", path, "--words", "knots, reef")
    if not recorded:
        for command in (("apply", folder, path), ("suggest", folder)):  # before it asks
            assert "-s FOCUSCRAWL_WARC=1" in mistaken("topic", *command)
        assert "-s FOCUSCRAWL_WARC=1" in mistaken("topic", "suggest", folder, "--web", "demo")
        assert not [*folder.glob("topic.toml")]
        return
    assert re.search(
        r"^recorded +\d+ KB in pages.warc.gz, .*FOCUSCRAWL_WARC=0", begun.stderr, re.M
    )
    asked = topic("suggest", folder, "--n", "2", answers="y\nn\n")
    assert "judged again" in asked.output
    assert "could not be read" not in topic("apply", folder, path).output
    # links to pages that were not recorded wait as they did
    assert Kept(folder).query("SELECT count(*) FROM frontier WHERE state = 'queued'") == waiting
    assert len(crawl(folder, **given, budget=15).kept.order) == 15


def test_the_examples_of_the_critic_may_be_elsewhere(local_web: LocalWeb, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    given = {"critic": "models/demo", "topic": TOPIC, "seeds": f"{local_web.origins['a']}/"}
    crawl(folder, **live(local_web), **given, budget=6)
    line = mistaken("topic", "suggest", folder)  # before it asks
    assert "only 0 of the 799 examples of models/demo can be read" in line
    assert "--web" in line
    done = topic("suggest", folder, "--n", "1", "--web", "demo", answers="n\n")
    assert "judged again" in done.output
    assert read_definition(folder / "topic.toml").web == "demo"
