"""TOML that people write, and what is wrong with it."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from focuscrawl.foundation.plain_files import read_regular

if TYPE_CHECKING:
    from pathlib import Path

_BESIDE_KEYS = re.compile(r"[^\w \t.\"'-]+")
_DEEPEST = 64  # parts of a dotted key; what reading one takes grows with their square


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises
    ------
    OSError
        It cannot be read.
    UserError
        It is no plain file.
    ValueError
        It is not in UTF-8.
    """
    try:
        return read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        msg = "not UTF-8 text; save it as UTF-8"
        raise ValueError(msg) from None


def read_toml(text: str) -> dict[str, Any]:
    """Read a document.

    Raises
    ------
    ValueError
        It is no TOML, or nested deeper than anything that makes sense; says what is wrong.
    """
    if any(part.count(".") > _DEEPEST for part in _BESIDE_KEYS.split(text)):
        msg = f"a key of more than {_DEEPEST} parts"
        raise ValueError(msg)
    try:
        return tomllib.loads(text)
    except RecursionError:
        msg = "nested too deep"
        raise ValueError(msg) from None
