"""The tables of arguments and settings in ``docs/settings.md``, from `settings_table`.

``python -m focuscrawl.engine.settings_reference docs/settings.md`` writes them anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focuscrawl.engine.settings_table import ARGUMENTS, SETTINGS, Argument, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable


def argument_rows() -> str:
    """Return the rows of the table of arguments."""
    return _rows([[f"`{each.key}`", each.text, _default(each)] for each in ARGUMENTS.values()])


def setting_rows() -> str:
    """Return the rows of the table of settings that are no arguments, by name."""
    settings = [each for each in SETTINGS.values() if not isinstance(each, Argument)]
    return _rows(
        [f"`{each.name}`", each.reader.accepts, each.text, _default(each)] for each in settings
    )


def with_tables(document: str) -> str:
    """Return the text of the reference with the rows as they are to be."""
    for heading, rows in (("`-a`", argument_rows()), ("setting", setting_rows())):
        head = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n", document, re.MULTILINE)
        if head is not None:
            after = re.sub(r"\A(?:\|.*\n)+", "", document[head.end() :])
            document = document[: head.end()] + rows + after
    return document


def _rows(cells: Iterable[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _default(setting: Setting[Any]) -> str:
    if setting.unset:
        return setting.unset
    default = setting.default
    if isinstance(default, str | dict):
        return f"`{default}`"
    return f"{default:g}" if isinstance(default, float) else str(default)


if __name__ == "__main__":
    reference = Path(sys.argv[1])
    text = reference.read_text(encoding="utf-8")
    reference.write_text(with_tables(text), encoding="utf-8")
