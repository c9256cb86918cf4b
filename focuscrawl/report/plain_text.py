"""Text of strangers made fit for a line or a table."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


#: what a formula begins with, in full width and as a minus sign, too
_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212")
#: where a cell may begin, whatever a spreadsheet takes for what is between two; what it skips
_CELL_START = re.compile(
    '(?:^|[;\t\r\n])[;"\\s\0-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*'
)
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Return `text` with a space for everything that a terminal or a browser would obey.

    Control characters (escape sequences of terminals begin with one), format characters (which
    can turn the direction of writing) and code points without meaning go; line ends, tabs and
    other white space stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or not _is_control(c) else " " for c in text)


def strip_controls(text: str) -> str:
    """Return `text` with a space for every control character but line ends and tabs.

    For files: unlike `printable` it leaves format characters, which some scripts need.
    """
    return _CONTROL.sub(" ", text.replace("\r\n", "\n"))


def one_line(text: str, width: int | None = None) -> str:
    """Return `text` on one line, without anything that a terminal or a browser would obey.

    As `printable`, but white space, line ends included, becomes one space.

    Parameters
    ----------
    width : characters at most; what is longer ends in an ellipsis
    """
    line = " ".join(printable(text).split())
    if width is not None and len(line) > width:
        return line[: max(width - 1, 0)].rstrip() + "…"
    return line


def escape_csv_cell(text: str) -> str:
    """Return `text` for a CSV file: spreadsheets compute what begins like a formula.

    An apostrophe before it, which they do not show, makes it a text. Some take a semicolon, a tab
    or a line end within a text for the end of a cell. Control characters, which terminals obey,
    become spaces (`strip_controls`).
    """
    text = strip_controls(text)
    safe = _CELL_START.sub(
        lambda at: f"{at[0]}'" if text[at.end() : at.end() + 1] in _FORMULA else at[0], text
    )
    return f"'{safe}" if safe.startswith("\t") else safe


def shorten_middle(text: str, width: int) -> str:
    """Return `text` in at most `width` characters: an ellipsis in the middle of what is longer."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def pluralize(n: int, thing: str) -> str:
    """Return ``1 page``, ``2 pages``, ``2 fetches``."""
    plural = "es" if thing.endswith("ch") else "s"
    return f"{n:,} {thing}{'' if n == 1 else plural}"


def _is_control(character: str) -> bool:
    return unicodedata.category(character).startswith("C")


def align_columns(rows: list[list[str]], left: set[int]) -> list[str]:
    """Align columns.

    Parameters
    ----------
    rows : of equal length, the heading included
    left : columns aligned to the left; the others, numbers, to the right
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def escape_csv_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of `table` with every text escaped by `escape_csv_cell`."""
    texts = [str(name) for name in table if table[name].dtype == object]
    safe = table[texts].map(
        lambda value: escape_csv_cell(value) if isinstance(value, str) else value
    )
    return table.assign(**{name: safe[name] for name in texts})
