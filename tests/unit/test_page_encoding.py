"""Which encoding a page is read in."""

from __future__ import annotations

import pytest

from focuscrawl.page import parse_page
from focuscrawl.page.encoding import to_utf8

RUSSIAN = "Кафедра вычислительной техники: расписание занятий и список преподавателей. "
JAPANESE = "計算機科学科のホームページへようこそ。授業の案内や研究室の紹介を掲載しています。"


@pytest.mark.parametrize(
    ("body", "header", "words", "encoding"),
    [
        (b"\xef\xbb\xbf<meta charset=koi8-r>\xc3\xa9", "latin1", ["é"], "utf-8"),
        ("\ufeffé".encode("utf-16-le"), "utf-8", ["é"], "utf-16-le"),
        ("\ufeffé".encode("utf-16-be"), None, ["é"], "utf-16-be"),
        (b"<meta charset=utf-8>\xe9t\xe9", "ISO-8859-1", ["été"], "cp1252"),
        (b"<meta charset=latin1>\xe9 \x93q\x94 \x8a", None, ["é", "q", "š"], "cp1252"),
        (b"\xe9", ' "us-ascii" ', ["é"], "cp1252"),
        (
            b"<meta http-equiv=Content-Type content='x; charset=koi8-r'>\xd0\xd2\xc9\xd7\xc5\xd4",
            None,
            ["привет"],
            "koi8-r",
        ),
        (b"<?xml version='1.0' encoding='iso-8859-2'?><p>\xb1", None, ["ą"], "iso8859-2"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=utf8>\xc3\xa9", None, ["é"], "utf-8"),
        (b"<meta charset=utf-16>\xc3\xa9", None, ["é"], "utf-8"),
        (b"\xc3\xa9", None, ["é"], "utf-8"),
        (b"na\xefve words, and many more of them", None, None, "cp1252"),
        (b"a\xff b", "utf-8", ["a", "b"], "utf-8"),
        (b"\xf9", "iso-8859-8-i", ["ש"], "iso8859-8"),
    ],
)
def test_order_of_evidence(
    body: bytes, header: str | None, words: list[str] | None, encoding: str
) -> None:
    page = parse_page(body, "http://site.example/", encoding=header)
    assert page.encoding == encoding
    assert words is None or page.tokens == words


@pytest.mark.parametrize(
    "label", ["hex", "rot13", "idna", "undefined", "unicode_escape", "utf-7", "x", "", "é", "a\0b"]
)
def test_labels_that_name_no_encoding_of_the_web_are_ignored(label: str) -> None:
    body = f"<meta charset='{label}'>".encode() + b"caf\xe9 and so on, mostly plain"
    assert to_utf8(body, label)[1] == "cp1252"


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [
        (RUSSIAN, "koi8-r", "koi8-r"),
        (RUSSIAN, "cp1251", "cp1251"),
        (JAPANESE, "shift_jis", "cp932"),
        (JAPANESE, "euc_jp", "euc_jp"),
    ],
)
@pytest.mark.parametrize("times", [3, 300])
def test_what_nobody_declares_is_guessed(text: str, codec: str, encoding: str, times: int) -> None:
    page = f"<p>{text}</p>" * times
    assert to_utf8(page.encode(codec)) == (page.encode(), encoding)


def test_control_characters_and_nuls() -> None:
    assert to_utf8(b"a\x01b\0c\x7f\x0c\td\x1be") == (b"a bc  \td e", "utf-8")
    assert to_utf8("<p>é".encode("utf-16-le"), "utf-16le")[0] == "<p>é".encode()


def test_queries_of_links_are_in_the_encoding_of_the_page() -> None:
    html = """<meta charset=windows-1251><base href="/каталог/"><a href="/s?q=велосипед">x</a>
        <a href="?стр=2">x</a><iframe src="путь?я"></iframe>
        <link rel=canonical href="/?я"><meta http-equiv=refresh content="30; url=/?ю">
        <link rel=alternate hreflang=ru href="/ru?я">
        <link rel=alternate type=application/rss+xml href="/rss?я">"""
    page = parse_page(html.encode("cp1251"), "http://site.example/")
    folder = "http://site.example/%D0%BA%D0%B0%D1%82%D0%B0%D0%BB%D0%BE%D0%B3/"
    assert page.links.urls[:3] == [
        "http://site.example/s?q=%E2%E5%EB%EE%F1%E8%EF%E5%E4",
        f"{folder}?%F1%F2%F0=2",
        f"{folder}%D0%BF%D1%83%D1%82%D1%8C?%FF",
    ]
    assert (page.canonical, page.refresh) == (
        "http://site.example/?%FF",
        "http://site.example/?%FE",
    )
    assert page.translations == ["http://site.example/ru?%FF"]
    assert page.feeds == ["http://site.example/rss?%FF"]
