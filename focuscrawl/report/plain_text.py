"""Makes untrusted text safe for terminals, tables and CSV files."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


#: characters that start a formula, with full-width forms and the minus sign
_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212")
#: characters that a spreadsheet ignores at the start of a cell
_IGNORED = re.compile('[;"\\s\0-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*')
#: start of a cell for any separator of a spreadsheet
_CELL_START = re.compile(f"(?:^|[;\t\r\n]){_IGNORED.pattern}")
_MAIN_TEXTS = frozenset({"text", "markdown"})  # columns of exports
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Return `text` with a space for each character that could control a terminal or browser.

    The function replaces control characters (such as the start of an escape sequence), format
    characters (such as those for the direction of writing) and unassigned code points. The
    function does not replace white space.
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or not _is_control(c) else " " for c in text)


def strip_controls(text: str) -> str:
    """Return `text` with a space for each control character except line ends and tabs.

    Unlike `printable`, the function `strip_controls` keeps format characters, which some scripts
    need.
    """
    return _CONTROL.sub(" ", text.replace("\r\n", "\n"))


def one_line(text: str, width: int | None = None) -> str:
    """Return `text` on one line, with single spaces and without control characters.

    Parameters
    ----------
    width : int or None
        Characters at most; a longer text is cut and ends in an ellipsis.
    """
    line = " ".join(printable(text).split())
    if width is not None and len(line) > width:
        return line[: max(width - 1, 0)].rstrip() + "…"
    return line


def escape_csv_cell(text: str) -> str:
    """Return `text` for a CSV file, changed so that no spreadsheet runs the text as a formula.

    The function adds an apostrophe, which spreadsheets do not show, before each possible formula.
    A formula may start at the start of the text or after a semicolon, a tab or a line end. Some
    spreadsheets interpret these characters as the end of a cell. The function replaces control
    characters by spaces, as `strip_controls` does.
    """
    text = strip_controls(text)
    safe = _CELL_START.sub(
        lambda at: f"{at[0]}'" if text[at.end() : at.end() + 1] in _FORMULA else at[0], text
    )
    return f"'{safe}" if safe.startswith("\t") else safe


def escape_csv_field(name: str, value: object) -> object:
    """Return the value of an exported column for a CSV file; only text values change.

    A main text that starts like a formula gets an apostrophe in front. Nothing is inserted inside
    a main text, because the character offsets of text chunks would become invalid. The CSV writer
    must quote all texts, so that a semicolon or a tab in a text does not start a new cell. The
    function escapes columns other than main texts with `escape_csv_cell`.
    """
    if not isinstance(value, str):
        return value
    if name not in _MAIN_TEXTS:
        return escape_csv_cell(value)
    text = strip_controls(value)
    first = _IGNORED.sub("", text, count=1)[:1]
    return f"'{text}" if text.startswith("\t") or first in _FORMULA else text


def shorten_middle(text: str, width: int) -> str:
    """Return `text`, shortened to `width` characters by an ellipsis in the middle."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def pluralize(n: int, thing: str) -> str:
    """Return a number with a noun, such as ``1 page``, ``2 pages`` or ``2 fetches``."""
    plural = "es" if thing.endswith("ch") else "s"
    return f"{n:,} {thing}{'' if n == 1 else plural}"


def _is_control(character: str) -> bool:
    return unicodedata.category(character).startswith("C")


def align_columns(rows: list[list[str]], left: set[int]) -> list[str]:
    """Return rows as lines with aligned columns.

    Parameters
    ----------
    rows : list of list of str
        Rows of equal length, with the heading.
    left : set of int
        Indexes of columns aligned to the left; the others are aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def format_csv(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as the lines of a CSV file, with every text escaped by `escape_csv_cell`."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(
        [escape_csv_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return lines.getvalue()


def escape_csv_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of `table` with every text escaped by `escape_csv_cell`."""
    texts = [str(name) for name in table if table[name].dtype == object]
    safe = table[texts].map(
        lambda value: escape_csv_cell(value) if isinstance(value, str) else value
    )
    return table.assign(**{name: safe[name] for name in texts})
