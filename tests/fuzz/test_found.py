"""What the fuzzer has found stays mended."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from focuscrawl.page import PageView, parse_page
from focuscrawl.taxonomy import dmoz

from . import FOUND, targets
from .seeds import SEEDS
from .targets import TARGETS

_FILES = sorted(path for name in TARGETS for path in (FOUND / name).glob("*"))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_where_the_search_begins(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)
        for end in range(0, len(seed), max(7, len(seed) // 200)):
            TARGETS[name](seed[:end])


def _try_all(name: str) -> None:
    finds = [path.read_bytes() for path in _FILES if path.parent.name == name]
    for data in SEEDS[name] + finds:
        TARGETS[name](data)


def _no_leaves(body: bytes, url: str, **how: object) -> PageView:
    return replace(parse_page(body, url), n_leaves=0)


@pytest.mark.parametrize(
    ("name", "module", "attribute", "broken"),
    [
        ("page", targets, "parse_page", _no_leaves),
        ("urls", targets, "normalize", str.upper),
        ("warc", targets, "read_record", lambda *_: None),
        ("dmoz", dmoz, "_FORBIDDEN", re.compile("nothing")),
    ],
)
def test_a_fault_is_noticed(
    name: str, module: object, attribute: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, attribute, broken)
    with pytest.raises(AssertionError):
        _try_all(name)
