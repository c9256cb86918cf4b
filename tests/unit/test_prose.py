"""`.ci/prose.py` reads every text that users see; `make lint` runs its checks."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prose", ROOT / ".ci" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kind_of_text_is_read(prose: ModuleType) -> None:
    assert any(source == "focuscrawl crawl --help" for source, _ in prose.of_help())
    assert not any("{%" in text or "{{" in text for _, text in prose.of_studio())
    assert any(source.endswith("check_database_file") for source, _ in prose.of_docstrings())
    assert any("…" in text for _, text in prose.of_messages())


def test_examples_of_docstrings_are_not_sentences(prose: ModuleType) -> None:
    assert not any("\b" in text for _, text in prose.of_docstrings(private=True))


def test_a_draw_is_the_same_for_the_same_seed(prose: ModuleType) -> None:
    drawn = prose.draw(8, seed=3)
    assert drawn == prose.draw(8, seed=3)
    assert drawn != prose.draw(8, seed=4)
