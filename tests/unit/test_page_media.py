"""Which answers count as HTML pages."""

from __future__ import annotations

import pytest

from focuscrawl.page import is_html, parse_page, read_content_type


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
    assert is_html("text/html", b"anything that is text")
    assert is_html("text/html", b"")
    assert not is_html("text/plain", page)
    assert is_html(None, page)
    assert not is_html(None, b"%PDF-1.4")


@pytest.mark.parametrize(
    "body", [b"%PDF-1.4 text", b"GIF89a" + b" " * 50, bytes(range(256)) * 4, b"\x01\x02 text" * 9]
)
def test_what_is_no_text_is_no_page_whatever_it_is_called(body: bytes) -> None:
    assert not is_html("text/html", body)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "iso2022_jp", "cp1251", "utf-8-sig"]
)
def test_text_is_text_in_every_encoding(encoding: str) -> None:
    text = "<html><p>\t" + "".join(map(chr, range(0x410, 0x450))) * 9 + "日本" * 9
    assert is_html("text/html", text.encode(encoding, "ignore"))
    assert is_html("text/html", text.encode(encoding, "ignore").replace(b"\n", b"\f"))


@pytest.mark.parametrize(
    ("charset", "found"),
    [
        ("charset*=%00", "\0"),
        ("charset*=%00''x", None),
        ("charset*=utf-8''utf-8", "utf-8"),
        ("charset*=utf-8''%ff", None),
        ("charset*; charset*1; charset", None),
        ("charset*0=utf; charset*1=-8", "utf-8"),
    ],
)
def test_a_charset_that_is_itself_encoded(charset: str, found: str | None) -> None:
    assert read_content_type(f"text/html; {charset}") == ("text/html", found)
    assert parse_page(b"<p>Jazz", "http://a.example/", encoding=found).tokens == ["jazz"]
