"""Fixtures of unit tests: a cache of their own, word embeddings, webs as archives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from longer import long

from focuscrawl.critic import example_checks, training
from focuscrawl.critic.page_vectors import word_vectors_installed

from .archives import record_demo, tiny_web

if TYPE_CHECKING:
    from focuscrawl.testing import TinyWeb


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a test keep what it unpacks and indexes to itself."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=[True, *long(False)], ids=["embeddings", "words only"])
def embeddings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether critics are trained with word embeddings; with them where they are installed."""
    used = bool(request.param)
    if used and not word_vectors_installed():
        pytest.skip("the extra embeddings is not installed")
    for module in (example_checks, training):
        monkeypatch.setattr(module, "word_vectors_installed", lambda: used)
    return used


@pytest.fixture
def tiny() -> TinyWeb:
    return tiny_web()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record the small synthetic web, with its indices."""
    return record_demo(tmp_path_factory.mktemp("demo"))
