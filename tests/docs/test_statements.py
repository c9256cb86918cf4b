"""The table of statements names code and tests that exist, and gives each a verdict."""

from __future__ import annotations

import re

import pytest

from .printed_commands import ROOT

PAGE = (ROOT / "docs" / "research" / "statements.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in row.strip("|").split(" | ")]
    for row in re.findall(r"^\| [A-Z]\d+ \|.*\|$", PAGE, re.MULTILINE)
]
VERDICTS = ("faithful", "deviates", "not done, because")


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_statement_has_code_a_test_and_a_verdict(row: list[str]) -> None:
    _, statement, code, test, verdict = row
    assert statement
    assert verdict.startswith(VERDICTS)
    assert verdict == "faithful" or ":" in verdict or ";" in verdict or "because" in verdict
    named = re.findall(r"`([^`]+)`", code)
    assert named or verdict.startswith("not done")
    for reference in named:
        path, _, name = reference.partition(":")
        assert (ROOT / path).exists(), path
        if name:  # the last part of Class.method
            word = re.escape(name.rpartition(".")[2])
            assert re.search(rf"(?<!\w){word}(?!\w)", (ROOT / path).read_text("utf-8")), reference
    for reference in re.findall(r"`([^`]+)`", test):
        path, _, name = reference.partition("::")
        assert re.search(rf"def {name}\(", (ROOT / path).read_text("utf-8")), reference


def test_the_numbers_of_verdicts_are_right() -> None:
    assert f"lists {len(ROWS)} statements" in PAGE
    for verdict in VERDICTS:
        count = sum(row[4].startswith(verdict) for row in ROWS)
        assert f"({count} rows)" in PAGE
    assert [row[0] for row in ROWS] == [
        f"{letter}{n:02}" for letter in "DFALC" for n in range(1, _rows_of(letter) + 1)
    ]


def _rows_of(letter: str) -> int:
    return sum(row[0].startswith(letter) for row in ROWS)
