"""What is said of the start pages of a crawl, and what may be wrong with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from focuscrawl.errors import UserError
from focuscrawl.report.crawl_plan import (
    CrawlPlan,
    StartPage,
    format_start_pages,
    plan_warnings,
    start_pages,
)

from .small_crawl import being_written

GOOD = [StartPage(f"http://{name}.example/", "page", 0.9) for name in "ab"]
DULL = [StartPage(f"http://a.example/{i}", "page", 0.1 * i) for i in range(3)]
LOST = StartPage("http://lost.example/", "HTTP 404")


def test_start_pages_are_those_that_redirects_lead_to(tmp_path: Path) -> None:
    with being_written(tmp_path / "crawl") as crawl:
        crawl.fetch("http://hive.example/", 0.9)
        crawl.fetch("http://hive.example/old", status=301)
        crawl.url("http://hive.example/new", 0, "http://hive.example/old")
        crawl.fetch("http://hive.example/new", 0.3)
        crawl.fetch("http://hive.example/gone", status=404)
        crawl.url("http://hive.example/link", 1, "http://hive.example/")
        crawl.fetch("http://hive.example/link", 0.9)
        crawl.event("excluded", "http://hive.example/secret: Forbidden by robots.txt")
        found = start_pages(crawl.written())
    assert [(page.url.rpartition("/")[2], page.outcome, page.relevance) for page in found] == [
        ("", "page", 0.9),
        ("new", "page", 0.3),
        ("gone", "HTTP 404", None),
        ("secret", "robots.txt", None),
    ]
    lines = "\n".join(format_start_pages(found))
    assert "2 of 4 fetched, 1 relevant" in lines
    assert "1 start page forbidden" in lines


def test_what_would_bring_nothing_is_warned_of() -> None:
    assert not [*plan_warnings([*GOOD, LOST], ["http://else.example/"])]
    (nothing,) = plan_warnings([LOST], [])
    assert "exit code 3" in nothing
    off_topic, one_host = plan_warnings(DULL, [])
    assert "highest relevance 0.20" in off_topic
    assert "all start pages are on a.example" in one_host
    (lone,) = plan_warnings(GOOD[:1], [])
    assert "the only start page is on a.example" in lone
    (learned,) = plan_warnings(GOOD, ["http://a.example/", "http://b.example/"])
    assert "was trained on these start pages" in learned


def test_an_outlook_says_what_a_budget_takes() -> None:
    outlook = CrawlPlan((*GOOD, LOST), 9, 3, None, 2_000.0, True, 2.0, 4, ())
    time, disk = outlook.cost_facts(3_600)
    assert time[1].startswith(
        "at least 1:00:00 for 3,600 fetches on these hosts, with 2 s between"
    )
    assert "0:30:00 on many" in time[1]
    assert disk == ("disk", "at most about 7 MB for 3,600 fetches")
    ((_, nothing),) = replace(outlook, pages=(LOST,)).cost_facts(3_600)
    assert "no start page was fetched" in nothing
    assert outlook.cost_facts(0) == [("budget", "unlimited, so time and disk cannot be estimated")]
    assert "             not all of 9 seeds: --most 9 fetches all" in outlook.format_lines(100)
    assert CrawlPlan.from_dict(json.loads(json.dumps(outlook.to_dict()))) == outlook
    with pytest.raises(UserError):
        CrawlPlan.from_dict({"pages": [{"what": 1}], "warnings": []})
