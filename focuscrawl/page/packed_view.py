"""A `PageView` as lines of JSON, and back: what passes between two processes.

A line a column, so that no single call has much to do: others want the interpreter meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from focuscrawl.page.view import Links, PageView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: the columns, and what those are that are arrays
_OF_LINKS = dict.fromkeys(field.name for field in fields(Links)) | {
    "left": np.int32,
    "right": np.int32,
    "nofollow": np.bool_,
}
_OF_PAGE = dict.fromkeys(
    field.name for field in fields(PageView) if field.init and field.name != "links"
) | {
    "token_leaf": np.int32,
    "heading_leaf": np.int32,
}


def pack_view(view: PageView) -> Iterator[bytes]:
    """Iterate over the lines that stand for a page."""
    for owner, columns in ((view.links, _OF_LINKS), (view, _OF_PAGE)):
        for name, kind in columns.items():
            value = getattr(owner, name)
            yield json.dumps(value if kind is None else value.tolist()).encode() + b"\n"


def unpack_view(lines: BinaryIO) -> PageView:
    """Read what `pack_view` has packed; ValueError if it ends before."""
    links = Links(**_columns(lines, _OF_LINKS))
    return PageView(links=links, **_columns(lines, _OF_PAGE))


def _columns(lines: BinaryIO, columns: Mapping[str, Any]) -> dict[str, Any]:
    read = {name: json.loads(lines.readline()) for name in columns}
    return {
        name: value if columns[name] is None else np.array(value, columns[name])
        for name, value in read.items()
    }
