"""Converts tables in main texts: layout tables to paragraphs, and data tables to lines of cells.

The library Trafilatura writes every table as Markdown with one line per row, even in plain text.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_ROW_GROUPS = ("thead", "tbody", "tfoot")
_CELLS = ("td", "th")
_OF_DATA = ("caption", "thead", "tfoot")
_BLOCKS = (
    *("p", "div", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote"),
    *("article", "section", "form", "hr"),
)
# in a cell of a layout table: data cells often contain one block, and seldom a long text
_MIN_BLOCKS, _MIN_CHARACTERS = 2, 500


def unwrap_layout_tables(tree: Any) -> None:
    """Replace layout tables (tables that only arrange text) in an lxml tree by block elements.

    A table is a layout table if its role is ``presentation``, or if the table has a single row or
    column. A table is also a layout table if a cell contains several blocks, another table or a
    long text. A table with headings or a caption is never a layout table.
    """
    for table in list(tree.iter("table")):
        groups = [table, *(each for each in table if each.tag in _ROW_GROUPS)]
        rows = [each for group in groups for each in group if each.tag == "tr"]
        cells = [[each for each in row if each.tag in _CELLS] for row in rows]
        if _is_layout(table, cells):
            for each in [*groups, *rows]:
                each.tag = "div"
            for each in (cell for row in cells for cell in row):
                each.tag = (
                    "p" if next(each.iterdescendants("table", *_BLOCKS), None) is None else "div"
                )


def _is_layout(table: Any, rows: list[list[Any]]) -> bool:
    if (table.get("role") or "").strip().lower() in {"presentation", "none"}:
        return True
    if any(each.tag in _OF_DATA for each in table):
        return False
    cells = [cell for row in rows for cell in row]
    if any(cell.tag == "th" for cell in cells):
        return False
    return (
        len(rows) <= 1
        or max(map(len, rows)) <= 1
        or any(next(cell.iterdescendants("table"), None) is not None for cell in cells)
        or any(len([*islice(cell.iter(*_BLOCKS), _MIN_BLOCKS)]) == _MIN_BLOCKS for cell in cells)
        or any(sum(map(len, cell.itertext())) >= _MIN_CHARACTERS for cell in cells)
    )


def flatten_tables(body: Any, to_text: Callable[[Any], str]) -> None:
    """Replace Markdown tables in an extracted text by one line per row, with tabs between cells.

    Parameters
    ----------
    body : lxml element
        Main text in the format of trafilatura.
    to_text : callable
        Returns the text of a cell, with the escapes and separators of a Markdown table.
    """
    for table in list(body.iter("table")):
        for row in list(table.iter("row")):
            cells = [_read_cell(to_text(cell)) for cell in row.iter("cell")]
            row.clear()
            row.tag, row.text = "p", "\t".join(cells).rstrip()
        table.tag = "div"


def _read_cell(text: str) -> str:
    plain = text.strip().removeprefix("|").removesuffix("|")
    return " ".join(plain.split()).replace("\\|", "|")
