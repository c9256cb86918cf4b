"""What the fuzzer has found stays mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import FOUND
from .targets import SEEDS, TARGETS

if TYPE_CHECKING:
    from pathlib import Path

_FILES = sorted(path for path in FOUND.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", _FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_where_the_search_begins(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)
        for end in range(0, len(seed), 7):
            TARGETS[name](seed[:end])
