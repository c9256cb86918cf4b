"""``focuscrawl plan``, and what the crawl says of the same when nothing relevant comes."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from . import warm
from .recording import record
from .running import DEMO, QUICK, ROOT, as_options, crawl, environment

if TYPE_CHECKING:
    from subprocess import CompletedProcess

HOST = "bluenote-2.demo.example"  # of jazz


def plan(**given: object) -> CompletedProcess[str]:
    line = ["plan", *as_options(given)]
    return warm.run(line, cwd=ROOT, env=environment(), program="focuscrawl")


def test_seeds_of_another_topic_are_told_before_the_crawl_and_by_it(tmp_path: Path) -> None:
    with (ROOT / "models/demo/examples.csv").open(encoding="utf-8") as file:
        jazz = [row["url"] for row in csv.DictReader(file) if row["topic"] == "/Arts/Music/Jazz"]
    given = DEMO | {"seeds": ",".join([url for url in jazz if HOST in url][:10])}
    done = plan(**given)
    assert done.returncode == 0
    assert "10 of 10 fetched, 0 relevant" in done.stdout
    assert "/Arts/Music/Jazz" in done.stdout
    assert "Warning: no start page is relevant" in done.stderr
    begun = crawl(tmp_path / "crawl", **given, budget=10)
    assert "None of the first 10 fetches is relevant" in begun.stderr
    assert f"all start pages are on {HOST}" in begun.stderr


def test_a_plan_judges_the_start_pages_and_says_what_they_cost(tmp_path: Path) -> None:
    done = plan(**DEMO, budget=500, crawl_dir=tmp_path / "c")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "5 of 5 fetched, 5 relevant" in done.stdout
    (words,) = [line for line in done.stdout.splitlines() if line.startswith("words")]
    assert "peloton" in words
    assert "for 500 fetches" in done.stdout
    assert not (tmp_path / "c").exists()


def test_a_plan_obeys_the_robots_txt_of_a_recording(tmp_path: Path) -> None:
    page, hidden = "http://a.example/", "http://a.example/hidden"
    files = [(page, "<p>bicycle"), (hidden, "<p>bicycle, too")]
    web = record(tmp_path / "web.warc.gz", files)
    given = {"web": web, "critic": "server.critic:judge", "topic": "bicycle"}
    given |= {"seeds": f"{page},{hidden}"}
    assert "2 of 2 fetched" in plan(**given).stdout
    web.unlink()
    files.append(("http://a.example/robots.txt", "User-agent: *\nDisallow: /hidden"))
    record(web, files)
    said = plan(**given).stdout
    assert "1 of 2 fetched" in said
    assert "1 start page forbidden" in said


def test_start_pages_that_cannot_be_had_are_no_plan() -> None:
    done = plan(
        **QUICK,
        RETRY_TIMES=0,
        critic="server.critic:judge",
        topic="bicycle",
        seeds="http://127.0.0.1:9/,http://127.0.0.2:9/",  # where nobody answers
    )
    assert done.returncode == 3
    assert "0 of 2 fetched" in done.stdout
    assert "no start page could be fetched" in done.stderr
    wrong = plan(topic="bicycle", stop="recall 2")
    assert wrong.returncode == 2
    assert len(wrong.stderr.splitlines()) == 1
