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
        ("  ; charset=utf-8", None, None),
        ("", None, None),
        (None, None, None),
        ("text/html\r\n ;charset=koi8-r", "text/html", "koi8-r"),
        # several values, from one field or from several
        ("text/html, text/html", "text/html", None),
        ("text/html,", "text/html", None),
        (",text/plain,text/html;charset=gbk", "text/html", "gbk"),
        ("text/html;charset=gbk, text/plain", "text/plain", None),
        ("text/html;charset=gbk, text/html", "text/html", "gbk"),
        ("text/html;charset=gbk,text/html;charset=utf-8", "text/html", "utf-8"),
        ("text/html;charset=gbk,text/plain,text/html", "text/html", None),
        ("text/html;charset=gbk,*/*", "text/html", "gbk"),
        ('text/html;title="a,b\\",c";charset=gbk', "text/html", "gbk"),
        # no valid media type
        ("text/html charset=utf-8", None, None),
        ("*/*", None, None),
        ("html", None, None),
        ("text/", None, None),
        ("/html", None, None),
        ('"text/html"', None, None),
        ("text/html/x", None, None),
        ("text /html", None, None),
        ("text/h\xe9", None, None),
        ("unknown/unknown", None, None),
        ("Application/Unknown; charset=utf-8", None, "utf-8"),
        # parameters
        ("text/html;;charset=utf-8", "text/html", "utf-8"),
        ("text/html;charset;charset=utf-8", "text/html", "utf-8"),
        ("text/html;charset=;charset=utf-8", "text/html", "utf-8"),
        ("text/html;charset=utf-8;charset=gbk", "text/html", "utf-8"),
        ("text/html;charset= utf-8 ;x", "text/html", "utf-8"),
        ("text/html;charset =utf-8", "text/html", None),
        ('text/html;charset="u\\tf-8', "text/html", "utf-8"),
        ('text/html;charset="utf-8"x;y', "text/html", "utf-8"),
        ('text/html;x="charset=gbk"', "text/html", None),
    ],
)
def test_content_type(header: str | None, media_type: str | None, charset: str | None) -> None:
    assert read_content_type(header) == (media_type, charset)


@pytest.mark.parametrize(
    "header",
    ['text/html;"""""', "text/html;x=", "text/html,", ";=", '"\\', '\\"'],
)
def test_hostile_content_types_take_no_time(header: str) -> None:
    assert not read_content_type(header * 9999)[1]


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        ("text/html", b"anything that is text", True),
        ("text/html", b"", True),
        ("text/plain", b"<!doctype html><html>", False),
        ("image/svg+xml", b"<html>", False),
        # without a media type
        (None, b"\n<!-- x --><HTML><body>", True),
        (None, b"\xef\xbb\xbf<!doctype html>", True),
        (None, "<!doctype html><p>x".encode("utf-16"), True),
        (None, "<html>".encode("utf-16-be"), True),
        (None, b"<br />\n<b>Warning</b>: x <html>", True),
        (None, b"<p>jazz", True),
        (None, b"<div\nclass=x>", True),
        (None, b"<meta charset=utf-8><title>", True),
        (None, b"<?xml version='1.0'?><!DOCTYPE html PUBLIC 'x' 'y'><html>", True),
        (None, b"<?xml version='1.0'?><rss><channel><title>x", False),
        (None, b"<svg><title>x</title>", False),
        (None, b"<pre>", False),
        (None, b'{"html": "<html><body>"}', False),
        (None, b"%PDF-1.4 <html>", False),
        (None, b"<html>" + bytes(range(1, 20)) * 9, False),
        (None, b"", False),
        # XML is a page if it is XHTML
        ("application/xml", b"<?xml version='1.0'?>\n<html xmlns='x'>", True),
        ("text/xml", b"<!DOCTYPE html PUBLIC 'x' 'y'><!-- x --><html>", True),
        ("text/xml", b"<!--" + b"x" * 5000 + b"--><html>", True),
        ("text/xml", b"<rss><html>", False),
        ("application/xml", b"<!-- <html> --><urlset>", False),
        ("application/xml", b"<p>x", False),
        ("application/xml", b"", False),
    ],
)
def test_the_start_decides_where_the_media_type_does_not(
    media_type: str | None, body: bytes, expected: bool
) -> None:
    assert is_html(media_type, body) == expected


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
        ("charset*=%00", None),
        ("charset*=utf-8''utf-8", None),
        ("charset*; charset*1; charset", None),
        ("charset*0=utf; charset*1=-8", None),
        ("charset=%00", "%00"),
        ("charset=\0", "\0"),
    ],
)
def test_encoded_parameters_are_no_charset(charset: str, found: str | None) -> None:
    assert read_content_type(f"text/html; {charset}") == ("text/html", found)
    assert parse_page(b"<p>Jazz", "http://a.example/", encoding=found).tokens == ["jazz"]
