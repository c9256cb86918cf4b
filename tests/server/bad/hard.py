"""Pages that are hard to parse, of any size: what takes long, and what only looks so."""

from __future__ import annotations

import random
from collections.abc import Callable

_DEPTH = 2000  # elements that libxml2 nests
_NESTED = b"<a href=x><div>"


def _fill(size: int, unit: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def _numbered(size: int, unit: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """Fill with a unit that has a number in it, so that no two are alike."""
    length = len(unit % 9999)
    made = b"".join([unit % number for number in range(10_000, 10_000 + size // length)])
    return before + made[: size - len(before) - len(after)] + after


def _words(size: int) -> bytes:
    draw = random.Random(size)
    known = [bytes(draw.choices(b"abcdefghijklmnop", k=draw.randint(2, 9))) for _ in range(50_000)]
    return b" ".join(draw.choices(known, k=size // 7))


def _foreign(size: int) -> bytes:
    return b"<p>" + bytes(random.Random(size).choices(range(128, 256), k=size))


#: kind of page: its bytes, given how many there are to be
KINDS: dict[str, Callable[[int], bytes]] = {
    "attributes": lambda n: _numbered(n, b" a%d", b"<p", b">x</p>"),
    "attributes-quoted": lambda n: _numbered(n, b" a%d='>'", b"<p", b">x</p>"),
    "attributes-of-body": lambda n: _numbered(n, b"<body a%d>", b"<html><body>"),
    "attributes-in-many-tags": lambda n: _fill(n, b"<p" + _numbered(2000, b" a%d") + b">"),
    "attribute-long": lambda n: _fill(n, b"word ", b"<p title='", b"'>x</p>"),
    "tags-with-attributes": lambda n: _numbered(n, b"<b id=%d class='a b c'>x</b>"),
    "tags-unclosed": lambda n: _fill(n, b"<a "),
    "tags-empty": lambda n: _fill(n, b"<br>"),
    "tags-unknown": lambda n: _numbered(n, b"<x%d>"),
    "nested": lambda n: _fill(n, b"<b>"),
    "nested-again": lambda n: _fill(n, b"<b>" * _DEPTH + b"</b>" * _DEPTH) + b"<i>",
    "end-tags": lambda n: _fill(n, b"</i>", b"<b>" * _DEPTH),
    "entities": lambda n: _fill(n, b"&amp;&#65;&xyzzy;"),
    "comments": lambda n: _fill(n, b"a<!---->"),
    "comments-unclosed": lambda n: _fill(n, b"<!--"),
    "cdata": lambda n: _fill(n, b"a<![CDATA[x]]>"),
    "instructions": lambda n: _fill(n, b"a<?x?>"),
    "headings": lambda n: _fill(n, b"<h1>word</h1>"),
    "headings-nested": lambda n: _fill(n, b"word ", b"<h1>" * _DEPTH),
    "text": lambda n: b"<p>" + _words(n),
    "text-of-small-words": lambda n: _fill(n, b"a ", b"<p>"),
    "title": lambda n: _fill(n, b"word ", b"<title>"),
    "script": lambda n: _fill(n, b"var a='</b>';", b"<script>"),
    "scripts": lambda n: _fill(n, b"<script>a</script>"),
    "tables": lambda n: _fill(n, b"<table><tr><td>a<td>b"),
    "lists": lambda n: _fill(n, b"<ul><li>a"),
    "links": lambda n: _numbered(n, b"<p>some words <a href='/a/b?c=%d'>more</a>"),
    "links-bare": lambda n: _numbered(n, b"<a href=%d>"),
    "links-to-hosts": lambda n: _numbered(n, b"<a href=//h%d.example/>x</a>"),
    "links-nested": lambda n: _fill(n, _NESTED * 1000 + b"</div></a>" * 1000),
    "links-around-text": lambda n: _fill(n, b"word ", _NESTED * 1000),
    "links-around-leaves": lambda n: _fill(n, b"w<br>", _NESTED * 1000),
    "links-around-alt": lambda n: _fill(n, b"word ", _NESTED * 1000 + b"<img alt='", b"'>"),
    "links-with-rel": lambda n: _fill(n, b"<a href=x rel='" + b"a " * 500 + b"'>y</a>"),
    "base": lambda n: _fill(n, b"<a href=x>y</a>", b"<base href=/%s/>" % (b"b" * (n // 2))),
    "hosts-long": lambda n: _fill(n, b"<a href='http://" + "Öб".encode() * 500 + b"/'>x</a>"),
    "host-long": lambda n: _fill(n, "中文网".encode(), b"<a href='http://", b"/'>x</a>"),
    "canonical": lambda n: _fill(n, b"b", b"<link rel=canonical href=/", b">"),
    "refreshes": lambda n: _fill(n, b"<meta http-equiv=refresh content='5;'>", b"<i>" * _DEPTH),
    "refresh-digits": lambda n: _fill(n, b"1", b"<meta http-equiv=refresh content='", b"x'>"),
    "frames": lambda n: _fill(n, b"<frame src=x>", b"<frameset>"),
    "noframes": lambda n: _fill(n, b"<noframes><a href=x>a</a></noframes>"),
    "after-the-end": lambda n: _fill(n, b"</html><p>", b"<html><body></body></html>"),
    "encoding-unsaid": _foreign,
    "utf-16": lambda n: _fill(n // 2, b"word <b>").decode().encode("utf-16"),
}
#: bytes: the most that is parsed at once, in a thread, and at all
SIZES = {"small": 79_000, "medium": 290_000, "large": 2_090_000}


def page(path: str) -> bytes | None:
    """Return the page of ``/kind/size``; None: there is none."""
    kind, _, size = path.strip("/").partition("/")
    return KINDS[kind](SIZES[size]) if kind in KINDS and size in SIZES else None
