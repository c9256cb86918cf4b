"""By which names a robots.txt may call a crawler, and how its groups are chosen."""

from __future__ import annotations

import pytest
from scrapy.utils.test import get_crawler

from focuscrawl.downloadermiddlewares.robots import RobotRules
from focuscrawl.page.robots_rules import product_token

URL = "http://a.example/page"


def allowed(robots: str, agent: str, url: str = URL) -> bool:
    return RobotRules.from_crawler(get_crawler(), robots.encode()).allowed(url, agent)


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("focuscrawl/0.1.0", "focuscrawl"),
        ("Cycling-Survey (+https://example.org/about)", "cycling-survey"),
        ("Mozilla/5.0 (compatible; Club_Bot/2.1; +https://example.org/)", "club_bot"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "mozilla"),
        ("MJ12bot", "mj12bot"),
        (" barbarbot* ", "barbarbot"),
        (b"focuscrawl/1", "focuscrawl"),
        ("/nobody", ""),
        ("", ""),
    ],
)
def test_the_product_token_comes_first(agent: str | bytes, token: str) -> None:
    assert product_token(agent) == token


@pytest.mark.parametrize("name", ["example", "https", "about", "cycling", "survey", "focus", "/"])
def test_a_group_for_a_part_of_the_agent_is_not_for_it(name: str) -> None:
    robots = f"User-agent: {name}\nAllow: /\n\nUser-agent: *\nDisallow: /\n"
    for agent in ("cycling-survey (+https://example.org/about)", "focuscrawl/0.1.0", ""):
        assert not allowed(robots, agent)


@pytest.mark.parametrize(
    "line",
    [
        "User-agent: barbarbot-prod",
        "USER-AGENT:BarBarBot-Prod/1.0",
        "user-agent: barbarbot-prod 2 # ours",
        "user agent: barbarbot-prod*",
        "\ufeffUserAgent : barbarbot-prod",
        "User-agent barbarbot-prod",
        "User-agent: another\rUser-agent: barbarbot-prod",
    ],
)
def test_a_group_for_the_whole_name_is(line: str) -> None:
    robots = f"{line}\nDisallow: /\n\nUser-agent: *\nAllow: /\n"
    assert not allowed(robots, "barbarbot-prod/3.0 (+https://example.org/)")
    assert allowed(robots, "barbarbot")
    assert allowed(robots, "barbarbot-prod-2")


def test_groups_for_one_agent_are_one() -> None:
    robots = (
        "User-agent: a\nUser-agent: focuscrawl/1\nDisallow: /one\n"
        "User-agent: *\nDisallow: /all\nUser-agent: FocusCrawl\nDisallow: /two\n"
    )
    forbidden = [
        path
        for path in ("one", "two", "all")
        if not allowed(robots, "focuscrawl", f"http://a.example/{path}")
    ]
    assert forbidden == ["one", "two"]


def test_a_delay_is_that_of_the_group() -> None:
    robots = b"User-agent: focus\nCrawl-delay: 9\n\nUser-agent: *\nCrawl-delay: 2\n"
    assert RobotRules.from_crawler(get_crawler(), robots).crawl_delay("focuscrawl") == 2


def test_what_names_no_agent_is_left_as_it_is() -> None:
    assert not allowed(
        "User-agent: *\nDisallow: /user agent: x\n", "a", "http://a.example/user%20agent:%20x"
    )
    assert allowed("User-agent:\nDisallow: /\n", "a")
    assert not allowed("User-agent: * # all\nDisallow: /\n", "a")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("marks", ["\ufeff", "\ufeff\n\ufeff"])
def test_byte_order_marks_do_not_hide_the_first_line(encoding: str, marks: str) -> None:
    robots = f"{marks}User-agent: *\nDisallow: /\n".encode(encoding)
    assert not RobotRules.from_crawler(get_crawler(), robots).allowed(URL, "focuscrawl")
