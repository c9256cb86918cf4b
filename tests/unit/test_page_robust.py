"""`parse_page` swallows everything: any bytes, any nesting, whatever the recorded webs hold."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.page import PageView, parse_page
from focuscrawl.webs import RecordedWeb

URL = "http://site.example/"
DEPTH = 50_000

FRAGMENTS = [
    *(b"\0", b"\x01\x0b\x1b", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xfe\xff", b"\xef\xbb\xbf"),
    *(b"<?xml version='1.0' encoding='utf-16'?>", b"<?xml ", b"<!DOCTYPE", b"<![CDATA[", b"]]>"),
    *(b"<meta charset=", b"hex", b"utf-16", b"gb18030", b"<meta http-equiv=refresh content="),
    *(b"<a href=", b"<a ", b"</a>", b"//[", b"http:", b"<base href=", b"<area href=x>"),
    b"<frame ",
    *(b"<iframe src=x>", b"<noframes>", b"<NoFrames>", b"</noframes>", b"<title>", b"</title>"),
    *(b"<script>", b"</script", b"<template>", b"<style>", b"<table>", b"<td>", b"<p>", b"<b>"),
    *(b"<svg:a xlink:href=x>", b"<a:b:c>", b"<body>", b"</html>", b"<html>", b"<frameset>"),
    *(b"&#0;", b"&#1;", b"&#xD800;", b"&#x110000;", b"&nosuch;", b"<!--", b"-->", b"<", b">"),
    *(b'"', b"'", b"=", b" ", b"\n", b"word ", b"url=", b"rel=nofollow ", b"<img alt="),
]
LABELS = [None, "", "utf-8", "latin1", "utf-16", "utf-7", "hex", "idna", "iso-2022-jp", "\0", "é"]


def check(page: PageView) -> None:
    """Assert what holds for every page."""
    links, n = page.links, len(page.links)
    assert len(links.urls) == len(links.anchors) == n
    assert links.left.shape == links.right.shape == links.nofollow.shape == (n,)
    assert links.left.dtype == links.right.dtype == page.token_leaf.dtype == np.int32
    assert links.nofollow.dtype == np.bool_
    assert (links.left <= links.right).all()
    assert (np.diff(links.left) >= 0).all()
    assert ((links.left >= 0) & (links.right < page.n_leaves)).all()
    assert page.token_leaf.shape == (len(page.tokens),)
    assert (np.diff(page.token_leaf) >= 0).all()
    assert ((page.token_leaf >= 0) & (page.token_leaf < page.n_leaves)).all()
    assert all(0 < len(token) <= 40 and token.isprintable() for token in page.tokens)
    targets = [*links.urls, page.canonical, page.refresh]
    assert all(t is None or (t.startswith("http") and "#" not in t) for t in targets)
    assert all(anchor == " ".join(anchor.split()) for anchor in (*links.anchors, page.title))


@settings(max_examples=300)
@given(
    st.one_of(st.binary(), st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join)),
    st.sampled_from(LABELS),
)
def test_any_bytes(body: bytes, label: str | None) -> None:
    check(parse_page(body, URL, encoding=label))


@pytest.mark.parametrize("url", ["", "page.html", "ftp://site.example/", "http://[", "\ud800"])
def test_any_url(url: str) -> None:
    page = parse_page(b"<a href=x>relative</a><a href=http://other.example>whole</a>", url)
    assert page.links.urls[-1] == "http://other.example/"


@pytest.mark.parametrize(
    "tag",
    ["div", "font", "b", "p", "li", "table><tr><td", "svg", "no-such", "template", "frameset"],
)
def test_nothing_is_lost_under_deep_nesting(tag: str) -> None:
    page = parse_page(f"<{tag}>".encode() * DEPTH + b"text<a href=end>last</a>", URL)
    check(page)
    assert page.links.urls == [f"{URL}end"]
    assert page.links.anchors == ["last"]
    assert page.tokens == ["text", "last"]
    assert page.token_leaf[1] == page.links.left[0] == page.links.right[0]


def test_nested_markup_within_the_depth_that_can_be_read_keeps_its_leaves() -> None:
    page = parse_page(b"<div>" * 1500 + b"<span></span>text", URL)
    assert (page.n_leaves, page.token_leaf.tolist()) == (2, [1])


@pytest.mark.parametrize(
    "markup",
    ["<a href=x>", "<a href=x><div>", "<noframes>", "<iframe src=x>", "<title>", "<!--", "<"],
)
def test_long_runs_of_one_tag(markup: str) -> None:
    check(parse_page(markup.encode() * DEPTH, URL))


@pytest.mark.webs
@pytest.mark.parametrize(("name", "pages"), [("uci", 100), ("webkb", 100), ("wikipedia", 30)])
def test_recorded_pages(name: str, pages: int, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(f"{name}_warc")
    web = RecordedWeb(path)
    links = tokens = 0
    for url in islice(web.urls(), 0, None, len(web) // pages):
        answer = web.fetch(url)
        assert answer is not None
        page = parse_page(answer.body, answer.url)
        check(page)
        links += len(page.links)
        tokens += len(page.tokens)
    assert links > 5 * pages
    assert tokens > 100 * pages
