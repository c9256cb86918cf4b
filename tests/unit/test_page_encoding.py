"""Which encoding a page is read in."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

from collections.abc import Callable

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
    ("label", "text", "codec"),
    [
        ("x-cp1250", "příliš žluťoučký", "cp1250"),
        ("X-CP1251", "расписание", "cp1251"),
        ("x-cp1256", "كتاب", "cp1256"),
        ("x-euc-jp", "計算機科学", "euc_jp"),
        ("windows-949", "똠방각하", "cp949"),
        ("ks_c_5601-1989", "한국어", "cp949"),
        ("x-gbk", "自行車", "gb18030"),
        ("gb_2312", "自行车", "gb18030"),
        ("cn-big5", "腳踏車", "big5hkscs"),
        ("koi8", "велосипед", "koi8-r"),
        ("koi8-ru", "їжак", "koi8-u"),
        ("dos-874", "จักรยาน", "cp874"),
        ("x-mac-cyrillic", "велосипед", "mac-cyrillic"),
        ("x-mac-roman", "été", "mac-roman"),
        ("iso88592", "łódź", "iso8859-2"),
        ("iso88595", "велосипед", "iso8859-5"),
        ("iso885915", "œuvre", "iso8859-15"),
        ("iso88591", "été", "cp1252"),
        ("iso88599", "ışık", "cp1254"),
        ("sun_eu_greek", "ποδήλατο", "iso8859-7"),
        ("visual", "שלום", "iso8859-8"),
        ("logical", "שלום", "iso8859-8"),
        ("iso-8859-6-e", "كتاب", "iso8859-6"),
        ("unicode-1-1-utf-8", "été", "utf-8"),
        ("x-user-defined", "été", "cp1252"),
    ],
)
def test_labels_of_the_encoding_standard(label: str, text: str, codec: str) -> None:
    body = text.encode(codec)
    page = f"<p>{text}".encode()
    assert to_utf8(b"<p>" + body, label) == (page, codec)
    for declaration in (f"<meta charset={label}>", f'<?xml version="1.0" encoding="{label}"?>'):
        found, encoding = to_utf8(declaration.encode() + b"<p>" + body)
        assert (found.endswith(page), encoding) == (True, codec)
    content = f'<meta http-equiv=content-type content="text/html; charset={label}">'.encode()
    assert to_utf8(content + body)[1] == codec


@pytest.mark.parametrize("label", ["unicode", "UCS-2", "unicodefffe", "utf-16be"])
def test_a_readable_declaration_of_utf_16_means_utf_8(label: str) -> None:
    body = f"<meta charset={label}><p>é".encode()
    assert to_utf8(body) == (body, "utf-8")
    assert to_utf8("<p>é".encode("utf-16-be"), "unicodefffe") == ("<p>é".encode(), "utf-16-be")
    assert to_utf8("<p>é".encode("utf-16-le"), "ucs-2") == ("<p>é".encode(), "utf-16-le")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text[:-1], id="cut inside the last character"),
        pytest.param(lambda text: text[1:], id="cut inside the first character"),
        pytest.param(lambda text: text + b" \xff", id="a byte that no encoding has"),
        pytest.param(lambda text: b"caf\xe9 " + text, id="a letter of windows-1252"),
        pytest.param(lambda text: text[:7] + b"\x80" + text[7:], id="a byte within"),
        pytest.param(lambda text: text + b"\xed\xa0\x80", id="half of a surrogate pair"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "élève à l'été",
        RUSSIAN,
        JAPANESE,
        "ภาษาไทย",
        "שלום עולם",
        "한국어 위키백과",
        "😀😀 smile 😀😀",
    ],
)
@pytest.mark.parametrize("times", [1, 300])
def test_damaged_utf_8_stays_utf_8(
    damage: Callable[[bytes], bytes], text: str, times: int
) -> None:
    body = damage((f"<p>{text}" * times).encode().removeprefix(b"<p>"))
    assert to_utf8(body) == (body.decode("utf-8", "replace").encode(), "utf-8")


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [
        ("caf\xe9", "cp1252", "cp1252"),
        ("l'\xe9t\xe9 \xe0 No\xebl", "cp1252", "cp1252"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        (JAPANESE, "euc_jp", "euc_jp"),
        ("电子计算机科学与技术专业的课程安排以及研究方向介绍" * 2, "gb18030", "gb18030"),
    ],
)
def test_other_encodings_are_not_damaged_utf_8(text: str, codec: str, encoding: str) -> None:
    assert to_utf8(text.encode(codec)) == (text.encode(), encoding)


@pytest.mark.parametrize(
    "label", ["hex", "rot13", "idna", "undefined", "unicode_escape", "utf-7", "x", "", "é", "a\0b"]
)
def test_labels_that_name_no_encoding_of_the_web_are_ignored(label: str) -> None:
    body = f"<meta charset='{label}'>".encode() + b"caf\xe9 and th\xe9, mostly plain"
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
