"""Which URLs are of one kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.crawl.url_table import url_pattern
from focuscrawl.foundation.urls import normalize


@pytest.mark.parametrize(
    ("url", "of"),
    [
        ("https://a.example/", "a.example/*"),
        ("https://a.example/wiki/Jazz", "a.example/wiki/*"),
        ("https://a.example/wiki/Jazz/", "a.example/wiki/*"),
        ("http://a.example:8080/wiki/", "a.example:8080/*"),
        ("https://a.example/2019/12/31/a-day", "a.example/#/#/#/*"),
        ("https://a.example/s/0f3a99c2d4/page", "a.example/s/#/*"),
        ("https://a.example/facade/page", "a.example/facade/*"),
        ("https://a.example/page;jsessionid=1F", "a.example/*"),
        ("https://a.example/w?b=2&a=1", "a.example/*?a&b"),
        ("https://a.example/w?a=9&b=3&a=7", "a.example/*?a&b"),
        ("https://a.example/w?1234&x=y=z", "a.example/*?#&x"),
        ("https://a.example/w?a&b&c&d&e&f&g", "a.example/*?… (more than 6 arguments)"),
        ("https://a.example/x/a/b/a/b/a/b", "a.example/… (segments that repeat)"),
        ("https://a.example/a/a/a?p=1", "a.example/… (segments that repeat)"),
        ("https://a.example/a/a/b", "a.example/a/a/*"),
        ("https://a.example/1/2/3", "a.example/#/#/*"),
        ("https://a.example/" + "/".join("abcdefghijklm"), "a.example/… (more than 12 levels)"),
    ],
)
def test_patterns(url: str, of: str) -> None:
    assert url_pattern(url) == of


@settings(max_examples=60, deadline=None)
@given(path=st.text(max_size=60), names=st.lists(st.text("abc1", max_size=3), max_size=5))
def test_any_url_has_one_that_depends_on_no_value(path: str, names: list[str]) -> None:
    found = {
        url_pattern(url)
        for value in ("x", "y9")
        for order in (names, names[::-1])
        if (
            url := normalize(
                f"http://a.example/{path.replace('?', '')}?"
                + "&".join(f"{name}={value}" for name in order)
            )
        )
    }
    assert len(found) <= 1
    assert all(each.startswith("a.example/") for each in found)


def test_a_path_made_to_be_slow_is_not() -> None:
    assert url_pattern("https://a.example/" + "a/" * 1000).endswith("repeat)")
    assert url_pattern("https://a.example/" + "ab/ba/" * 340 + "c").endswith("repeat)")
    steps = "/".join(f"a{i}" for i in range(400))
    assert url_pattern(f"https://a.example/{steps}").endswith("levels)")
