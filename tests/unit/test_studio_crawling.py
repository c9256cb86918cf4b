"""Crawls from the studio: what a form may say, and what is shown of a crawl that goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.errors import UserError
from focuscrawl.studio.crawling.beginning import choice, estimate, go_on, read_crawl
from focuscrawl.studio.crawling.curve import Curve
from focuscrawl.studio.desk import Desk
from focuscrawl.studio.folder import StudioFolder
from focuscrawl.studio.jobs import Jobs

if TYPE_CHECKING:
    from pathlib import Path

DEMO = {"name": "first", "of": choice("models/demo", "/Sports/Cycling"), "budget": "20"}


@pytest.fixture
def folder(tmp_path: Path) -> StudioFolder:
    """An empty folder."""
    return StudioFolder(tmp_path)


def test_a_form_becomes_the_command_that_people_would_type(folder: StudioFolder) -> None:
    made = read_crawl(folder, {**DEMO, "web": "demo", "delay": "0.5", "seeds": "http://a.example"})
    assert made.name == "crawls/first"
    assert made.seeds == ["http://a.example/"]
    assert not made.live
    assert " ".join(made.arguments) == (
        "crawl -a critic=models/demo -a topic=/Sports/Cycling -a seeds=./crawls/first/seeds.txt "
        "-a web=demo -a strategy=apprentice -a budget=20 -a crawl_dir=./crawls/first "
        "-s DOWNLOAD_DELAY=0.5"
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"of": ""}, "train a critic"),
        ({"critic": "evil:judge", "topic": "/x"}, "no critic"),
        ({"critic": "../elsewhere", "topic": "/x"}, "no critic"),
        ({"name": "../x"}, "no name"),
        ({"name": "-s"}, "no name"),
        ({"budget": "many"}, "a number of fetches"),
        ({"budget": "-1"}, "a number of fetches"),
        ({"seeds": "file:///etc/passwd"}, "no http"),
        ({"web": "/etc/passwd"}, "no recording"),
        ({"web": "-x"}, "no recording"),
        ({"strategy": "evil"}, "no strategy"),
        ({"delay": "1 -s X=1"}, "no number"),
        ({"definition": "missing.toml"}, "no topic"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    folder: StudioFolder, said: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why) as refused:
        read_crawl(folder, {**DEMO, **said})
    assert "\n" not in str(refused.value)
    assert not [*folder.root.iterdir()]


def test_an_estimate_knows_the_hosts_it_begins_at(folder: StudioFolder) -> None:
    one = read_crawl(folder, {**DEMO, "budget": "7200", "seeds": "http://a.example"})
    assert "2 hours if all pages are on one host;" in estimate(folder, one)
    two = read_crawl(
        folder, {**DEMO, "budget": "7200", "seeds": "http://a.example\nhttp://b.example"}
    )
    assert "60 minutes on the 2 you start from" in estimate(folder, two)


@pytest.mark.parametrize(
    "arguments",
    [
        ["crawl", "-a", "critic=evil:judge", "-a", "topic=/x"],
        ["crawl", "-s", "SPIDER_MIDDLEWARES=x"],
        ["crawl", "-s", "DOWNLOAD_DELAY=1 "],
        ["crawl", "-a", "seeds=../secret"],
        ["crawl", "-a", "crawl_dir=/elsewhere"],
        ["crawl", "-a", "knowledge=x"],
        ["crawl", "-a", "budget=5", "-a"],
        ["topic", "mark"],
    ],
)
def test_a_job_of_a_strangers_folder_is_not_gone_on_with(
    folder: StudioFolder, arguments: list[str]
) -> None:
    crawl = folder.root / "crawls" / "x"
    crawl.mkdir(parents=True)
    (crawl / "crawl.db").touch()
    job = folder.root / ".studio" / "jobs" / "1"
    job.mkdir(parents=True)
    order = {"kind": "crawl", "subject": "crawls/x", "arguments": arguments, "begun": "2026"}
    (job / "order.json").write_text(json.dumps(order))
    desk = Desk(folder, Jobs(folder.root), read_only=False)
    with pytest.raises(UserError):
        go_on(desk, "crawls/x")
    assert len(desk.jobs.all()) == 1


def test_a_curve_keeps_few_points_and_the_last_fetch() -> None:
    curve = Curve()
    for number in range(10_000):
        curve.add(1.0 if number < 5_000 else 0.0)
    shown = curve.plain()
    assert len(shown["fetches"]) <= 501
    assert shown["fetches"][-1] == 10_000
    assert shown["loss"][-1] == 0.5
    assert shown["harvest"][-1] == 0.0
    at = shown["fetches"].index(max(n for n in shown["fetches"] if n <= 5_050))
    assert shown["harvest"][at] == pytest.approx(1 - (shown["fetches"][at] - 5_000) / 100)
