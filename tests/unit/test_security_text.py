"""What strangers say, and what nobody is told: terminals, spreadsheets, logs, passwords."""

from __future__ import annotations

import csv
import io
import logging
import re
import unicodedata
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from focuscrawl.crawl import CrawlConfig
from focuscrawl.engine.lean_settings import SanitizedRecord
from focuscrawl.errors import UserError
from focuscrawl.exporters import PlainCsvItemExporter, PlainXmlItemExporter
from focuscrawl.foundation.urls import normalize, without_credentials
from focuscrawl.report.plain_text import (
    escape_csv_cell,
    escape_csv_field,
    one_line,
    printable,
    strip_controls,
)

ESCAPE = "\x1b]0;owned\x07"
HIDDEN = "\u202e\u2066\u200b\ufeff\x9b\x00"


SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace() or c < " ")


@given(st.text())
def test_nothing_printed_is_obeyed(text: str) -> None:
    shown = printable(text)
    assert not [c for c in shown if unicodedata.category(c).startswith("C") and c not in "\n\t"]
    assert len(shown) == len(text)
    assert not [c for c in one_line(text) if unicodedata.category(c).startswith("C")]


def test_what_can_be_read_stays() -> None:
    text = "Über 東京 café\n\ttab"
    assert printable(text) == text
    assert printable(f"a{ESCAPE}b{HIDDEN}c").split() == ["a", "]0;owned", "b", "c"]


BEGINNINGS = st.sampled_from([*"=+-@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\u2212"])
BETWEEN = st.sampled_from([*"; \t\r\n\0\"'a", "\xa0", "\u3000", "\u200b", "\ufeff"])


@given(st.lists(st.one_of(BEGINNINGS, BETWEEN, st.text(max_size=3))).map("".join))
@example("a;=1+1")
@example("a; \t \uff1d1+1")
@example("\t=1+1")
@example('a;"=1+1')
def test_no_cell_is_a_formula(text: str) -> None:
    shown = escape_csv_cell(text)
    assert shown.replace("'", "") == strip_controls(text).replace("'", "")
    assert not shown.startswith("\t")
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    for part in re.split("[;\t\r\n]", shown):
        begins = part.lstrip(f'" {HIDDEN}{SPACES}')
        assert unicodedata.normalize("NFKC", begins[:1]) not in {*"=+-@"}


def exported(
    exporter_of: type[PlainCsvItemExporter | PlainXmlItemExporter], item: dict[str, Any]
) -> str:
    file = io.BytesIO()
    exporter = exporter_of(file)
    exporter.start_exporting()
    exporter.export_item(item)
    exporter.finish_exporting()
    return file.getvalue().decode()


def test_items_in_csv_hold_no_formula_and_no_half_a_character() -> None:
    item = {"title": "=1+1", "score": -0.5, "error": None, "name": "half \ud83d of it"}
    assert list(csv.reader(exported(PlainCsvItemExporter, item).splitlines())) == [
        ["title", "score", "error", "name"],
        ["'=1+1", "-0.5", "", "half ? of it"],
    ]


@given(st.lists(st.one_of(BEGINNINGS, BETWEEN, st.text(max_size=3))).map("".join))
def test_a_main_text_in_csv_only_gets_an_apostrophe_in_front(text: str) -> None:
    plain = strip_controls(text)
    first = plain.lstrip(f';\n\t" {HIDDEN}{SPACES}')[:1]
    shown = escape_csv_field("text", text)
    if unicodedata.normalize("NFKC", first) in {*"=+-@"} or plain.startswith("\t"):
        assert shown == f"'{plain}"
    assert shown in (plain, f"'{plain}")
    assert escape_csv_field("title", text) == escape_csv_cell(text)
    assert escape_csv_field("text", 5) == 5


def test_main_texts_of_items_in_csv_are_quoted_and_whole() -> None:
    written = exported(PlainCsvItemExporter, {"text": "a;=1\n-b", "title": "a;=1", "n": 5})
    assert written == '"text","title","n"\r\n"a;=1\n-b","a;\'=1",5\r\n'


@given(st.text(st.characters()), st.lists(st.text(st.characters(categories=["Cc", "Cs", "Lu"]))))
def test_items_in_xml_can_be_read(title: str, found: list[str]) -> None:
    (item,) = ET.fromstring(
        exported(
            PlainXmlItemExporter,
            {"title": title, "found": found, "more": {"title": title}, "n": 5},
        ).encode()
    )
    assert item.findtext("n") == "5"
    assert len(item.findall("found/value")) == len(found)
    for shown in (item.findtext("title"), item.findtext("more/title")):
        assert _readable(shown or "") == _readable(title)


def _readable(text: str) -> list[str]:
    """Return the words of a text, of characters that mean something."""
    return "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text).split()


NAMES = st.text("abcXYZ019-._~%:!$&'()*+,;=@", min_size=1, max_size=12)


@given(NAMES, NAMES)
def test_credentials_come_out_of_urls(user: str, password: str) -> None:
    url = f"http://{user}:{password}@host.example:8080/path?q=a@b"
    assert without_credentials(f"seeds {url},{url}") == "seeds {0},{0}".format(
        "http://host.example:8080/path?q=a@b"
    )
    assert normalize(url) == "http://host.example:8080/path?q=a@b"


def test_text_without_credentials_stays() -> None:
    text = "mail a@b.example, see http://host.example/@user and http://a.example/x?y=c@d"
    assert without_credentials(text) == text


def test_a_plan_is_written_down_without_credentials() -> None:
    plan = CrawlConfig(topic="/good", seeds="http://me:secret@host.example/,https://b.example/")
    assert "http://host.example/,https://b.example/" in plan.describe()
    assert "secret" not in plan.describe()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What a logger with our records says."""
    factory = logging.getLogRecordFactory()
    logging.setLogRecordFactory(SanitizedRecord)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("security")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)
    logging.setLogRecordFactory(factory)


def test_what_the_user_has_to_put_right_has_no_traceback_in_the_log(log: io.StringIO) -> None:
    try:
        raise UserError("the key is not there: set it")
    except UserError:
        logging.getLogger("security").exception("failed")
    assert log.getvalue() == "failed\nthe key is not there: set it\n"


def test_log_lines_are_plain_and_without_credentials(log: io.StringIO) -> None:
    logger = logging.getLogger("security")
    logger.warning("stored in %s: %s", "ftp://me:secret@host.example/f", f"x{ESCAPE}{HIDDEN}")
    try:
        raise ValueError(f"got {ESCAPE} from https://me:secret@host.example/")
    except ValueError:
        logger.exception("failed")
    said = log.getvalue()
    assert "ftp://host.example/f" in said
    assert "ValueError: got" in said
    assert said.count("Traceback") == 1
    assert "secret" not in said
    assert not [c for c in said if c != "\n" and unicodedata.category(c).startswith("C")]
