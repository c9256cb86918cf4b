"""Splits the Markdown of a datasheet into blocks, which a page of the studio shows.

The blocks contain plain text. The file may be from somebody else, so HTML in the file is shown as
plain text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADING = re.compile(r"(#{1,6}) +(.*)")
_ITEM = re.compile(r"( *)[-*] +(.*)")
_RULE = re.compile(r"\|[-:| ]+\|")  # below the heading of a table
_CELL = re.compile(r"(?<!\\)\|")
_ESCAPED = re.compile(r"\\([\\`*_\[\]<>|#])")


def markdown_blocks(text: str) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a text in Markdown, in order.

    Parameters
    ----------
    text : str
        Headings, paragraphs, lists and tables, as `focuscrawl.collection.datasheet` writes them.

    Yields
    ------
    dict
        ``kind`` and its values: ``heading`` with ``level`` and ``text``, ``paragraph`` with
        ``text``, ``list`` with ``items`` (``depth``, ``text``), or ``table`` with ``rows`` (the
        first row is the heading).
    """
    block: dict[str, Any] = {}
    for line in [*text.splitlines(), ""]:
        kind, values = _parse_line(line)
        if block and (kind != block["kind"] or kind == "heading"):
            yield block
            block = {}
        if kind == "heading":
            block = {"kind": kind, **values}
        elif kind == "paragraph" and block:
            block["text"] += f" {values['text']}"
        elif kind == "paragraph":
            block = {"kind": kind, **values}
        elif kind:
            name = "items" if kind == "list" else "rows"
            block = block or {"kind": kind, name: []}
            if values:
                block[name].append(values["cells"] if kind == "table" else values)


def markdown_sections(text: str) -> Iterator[dict[str, Any]]:
    """Yield the sections of a text: ``title`` (a heading) and ``blocks`` (see `markdown_blocks`).

    Blocks before the first heading are in a section with an empty title.
    """
    section: dict[str, Any] = {"title": "", "blocks": []}
    for block in markdown_blocks(text):
        if block["kind"] == "heading":
            if section["title"] or section["blocks"]:
                yield section
            section = {"title": block["text"], "blocks": []}
        else:
            section["blocks"].append(block)
    yield section


def _parse_line(line: str) -> tuple[str, dict[str, Any]]:
    """Return the kind of a line, which is empty for an empty line, and its values."""
    if found := _HEADING.fullmatch(line):
        return "heading", {"level": len(found[1]), "text": _plain(found[2])}
    if found := _ITEM.fullmatch(line):
        return "list", {"depth": len(found[1]) // 2, "text": _plain(found[2])}
    bare = line.strip()
    if _RULE.fullmatch(bare):
        return "table", {}
    if bare.startswith("|") and bare.endswith("|") and len(bare) > 1:
        return "table", {"cells": [_plain(each) for each in _CELL.split(bare)[1:-1]]}
    return ("paragraph", {"text": _plain(bare)}) if bare else ("", {})


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.strip()).replace("`", "")
