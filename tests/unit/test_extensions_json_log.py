"""Log records as lines of JSON."""

from __future__ import annotations

import json
import logging
import sys
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.settings import Settings

from focuscrawl.engine.config_from_settings import read_config
from focuscrawl.extensions.progress import JsonFormatter


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("a.b", logging.INFO, __file__, 1, message, None, None)


@given(st.text())
@settings(max_examples=100)
def test_every_record_is_one_line_that_a_program_can_read(text: str) -> None:
    line = JsonFormatter("crawls/a").format(record(text))
    assert len(line.splitlines()) == 1
    read = json.loads(line)
    assert read["level"] == "INFO"
    assert (read["logger"], read["crawl"]) == ("a.b", "crawls/a")
    assert not [c for c in read["message"] if category(c)[0] == "C" and c not in "\n\t"]
    if text.isprintable() and "@" not in text:
        assert read["message"] == text


def test_a_traceback_is_in_the_line_and_passwords_are_not() -> None:
    try:
        raise ValueError("http://me:secret@a.example/")
    except ValueError:
        made = logging.LogRecord(
            "a",
            logging.ERROR,
            __file__,
            1,
            "at %s",
            ("http://me:secret@a.example/",),
            sys.exc_info(),
        )
    line = JsonFormatter("c").format(made)
    read = json.loads(line)
    assert "secret" not in line
    assert read["message"] == "at http://a.example/"
    assert read["exception"].endswith("ValueError: http://a.example/")
    assert read["at"].endswith("+00:00")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, None),
        ("0", None),
        (False, None),
        ("1", "log.jsonl"),
        (True, "log.jsonl"),
        ("-", "-"),
    ],
)
def test_names(value: object, name: str | None) -> None:
    assert read_config(Settings({"FOCUSCRAWL_LOG_JSON": value})).log_json == name
