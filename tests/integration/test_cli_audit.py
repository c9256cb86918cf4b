"""``focuscrawl audit``: the off-topic pages of a recording, as a table and as CSV files."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl_config import CrawlConfig
from focuscrawl.critic.critic_files import default_topic
from focuscrawl.errors import UserError
from focuscrawl.testing import TinyWeb
from focuscrawl.webs import open_web

from .typed import focuscrawl

TOPIC = "/Sports/Cycling"
JUDGE = (
    "def judge(pages):\n    return [0.9 if 'bicycle' in page.tokens else 0.2 for page in pages]\n"
)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def test_pages_and_hosts_are_listed_least_relevant_first(tmp_path: Path) -> None:
    tables = tmp_path / "pages.csv", tmp_path / "hosts.csv"
    given = ("--topic", TOPIC, "--csv", tables[0], "--hosts", tables[1], "--processes", 2)
    output = focuscrawl("audit", "demo:0.2", "--critic", "models/demo", *given).output
    pages, hosts = map(rows, tables)
    relevance = [float(page["relevance"]) for page in pages]
    assert relevance == sorted(relevance)
    off_topic = sum(each < 0.5 for each in relevance)
    assert 0 < off_topic < len(pages)
    assert f"{len(pages):,} pages on {len(hosts)} hosts, of which {off_topic:,}" in output
    assert sum(int(each["off_topic"]) for each in hosts) == off_topic
    assert sum(int(each["pages"]) for each in hosts) == len(pages) > 400  # by two processes
    assert hosts[0]["host"] in output
    assert pages[0]["url"] in output
    alone = tmp_path / "alone.csv"
    focuscrawl(
        "audit", "demo:0.2", "--critic", "models/demo", "--topic", TOPIC, "--csv", alone,
        "--processes", 1,
    )  # fmt: skip
    assert alone.read_bytes() == tables[0].read_bytes()


def test_a_recording_is_judged_by_a_function_and_other_answers_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {
        "http://a.example/": "<title>=1+1</title>a bicycle",
        "http://b.example/": "a cake",
    }
    web = TinyWeb(pages, redirects={"http://b.example/old": "http://b.example/"})
    web.write(tmp_path / "web.warc.gz")
    (tmp_path / "judging_audited.py").write_text(JUDGE)
    monkeypatch.syspath_prepend(tmp_path)
    given = ("--critic", "judging_audited:judge", "--topic", "bicycle")
    out = tmp_path / "pages.csv"
    done = focuscrawl("audit", tmp_path / "web.warc.gz", *given, "--csv", out).output
    assert "2 pages on 2 hosts, of which 1 (50%)" in done
    assert "Not judged: 1 redirects" in done
    assert [page["url"] for page in rows(out)] == ["http://b.example/", "http://a.example/"]
    assert rows(out)[1]["title"] == "'=1+1"
    strict = (*given, "--min-relevance", 0.95)
    assert "of which 2 (100%)" in focuscrawl("audit", tmp_path / "web.warc.gz", *strict).output


def test_the_topic_of_a_critic_from_keywords_need_not_be_named(tmp_path: Path) -> None:
    words = ("--words", "road cycling, bicycle, peloton", "--web", "demo:0.1")
    focuscrawl("critic", "train", *words, "--out", tmp_path / "cycling")
    output = focuscrawl("audit", "demo:0.1", "--critic", tmp_path / "cycling").output
    assert re.search(r"of which \d+ \(\d+%\) are off-topic", output)
    critic, folder = str(tmp_path / "cycling"), str(tmp_path / "crawl")
    start = next(iter(open_web("demo:0.1").urls()))
    crawl = open_crawl(CrawlConfig(critic=critic, web="demo:0.1", seeds=start, crawl_dir=folder))
    assert crawl.config.topics == ("/good",)
    crawl.close("interrupted")
    with pytest.raises(UserError, match="topic may have any name"):
        default_topic("module:judge", "-a topic=")


def test_what_cannot_be_audited_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.wacz").write_bytes(b"PK\x03\x04 and no more")
    critic = ("--critic", "models/demo", "--topic", TOPIC)
    for arguments, said in (
        ((tmp_path / "cut.wacz", *critic), "cut.wacz is truncated or is not a WACZ file"),
        (
            ("demo:0.2", "--critic", "models/demo"),
            "no topic given: add --topic TOPIC; the critic models/demo has",
        ),
        (
            ("demo:0.2", "--critic", "models/none", "--topic", TOPIC),
            "critic models/none not found",
        ),
    ):
        done = focuscrawl("audit", *arguments, "--csv", tmp_path / "p.csv", code=2).output
        assert re.search(rf"^focuscrawl: [^\n]*{re.escape(said)}[^\n]*$", done, re.MULTILINE)
    assert not (tmp_path / "p.csv").exists()
