"""Fixtures of unit tests: a cache of their own, webs as archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .archives import record_demo, tiny_web

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.testing import TinyWeb


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a test keep what it unpacks and indexes to itself."""
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tiny() -> TinyWeb:
    return tiny_web()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record the small synthetic web, with its indices."""
    return record_demo(tmp_path_factory.mktemp("demo"))
