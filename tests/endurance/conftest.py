"""The crawl that nobody disturbs, to which all others are compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.running import DEMO, Kept, Run, crawl

from .lasting import LONG


@dataclass(frozen=True)
class Undisturbed:
    """Arguments of a crawl, and what it keeps if nothing happens to it."""

    arguments: dict[str, object]
    kept: Kept

    @property
    def budget(self) -> int:
        return int(str(self.arguments["budget"]))

    def resume(self, folder: Path) -> Run:
        return crawl(folder, **self.arguments)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """An apprentice on the synthetic web, with its calendars, sessions and copies."""
    arguments: dict[str, object] = DEMO | {
        "strategy": "apprentice",
        "budget": 1000 if LONG else 100,
    }
    done = crawl(tmp_path_factory.mktemp("undisturbed") / "crawl", fresh=True, **arguments)
    return Undisturbed(arguments, done.kept)
