"""Sites without an end: a crawl of them ends with its budget, and reaches what else there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from .badweb import BadWeb, Measured, explore, good_pages
from .badweb_expected import TRAPS

BUDGET = 240


@pytest.fixture(scope="module")
def trapped(bad_web: BadWeb, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("traps") / "crawl"
    return explore(folder, bad_web.seeds(*TRAPS, "good"), budget=BUDGET)


def test_the_budget_is_kept_to_the_fetch(trapped: Measured, bad_web: BadWeb) -> None:
    assert trapped.returncode == 0
    assert trapped.kept.stop_reasons == ["budget"]
    assert [seq for seq, _ in trapped.kept.order] == list(range(1, BUDGET + 1))


def test_what_is_no_trap_is_reached(trapped: Measured, bad_web: BadWeb) -> None:
    assert good_pages(trapped, bad_web) == 9


def test_no_trap_takes_more_than_its_share(trapped: Measured, bad_web: BadWeb) -> None:
    pages = trapped.pages(bad_web)
    for case in TRAPS:
        own = [name for name in pages if name.startswith(f"{case}/")]
        assert 10 <= len(own) <= BUDGET // 2  # hosts take turns where all score the same


def test_memory_is_bounded(trapped: Measured, tmp_path: Path) -> None:
    assert trapped.peak < 200_000_000
