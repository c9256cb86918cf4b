"""Which answers count as HTML pages."""

from __future__ import annotations

import pytest

from focuscrawl.page import is_html, read_content_type


@pytest.mark.parametrize(
    ("header", "media_type", "charset"),
    [
        ("text/html", "text/html", None),
        ("Text/HTML; charset=UTF-8", "text/html", "utf-8"),
        ('application/xhtml+xml;charset="iso-8859-1"', "application/xhtml+xml", "iso-8859-1"),
        ("  ; charset=utf-8", None, "utf-8"),
        ("", None, None),
        (None, None, None),
        ("text/html\r\n ;charset=koi8-r", "text/html", "koi8-r"),
    ],
)
def test_content_type(header: str | None, media_type: str | None, charset: str | None) -> None:
    assert read_content_type(header) == (media_type, charset)


def test_the_server_decides_and_the_body_only_without_it() -> None:
    page = b"\n<!-- x --><HTML><body>"
    assert is_html("text/html", b"%PDF-1.4")
    assert not is_html("text/plain", page)
    assert is_html(None, page)
    assert not is_html(None, b"%PDF-1.4")
