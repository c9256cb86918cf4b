"""What costs much is measured, and what was found stays mended."""

from __future__ import annotations

import subprocess
import sys

import pytest
from longer import long

from . import CORPUS, FOUND, ROOT
from .targets import COSTS


@pytest.mark.parametrize("name", ["page", *long(*(name for name in COSTS if name != "page"))])
def test_what_cost_the_most_is_within_the_limits(name: str) -> None:
    code = "import sys; from fuzz.searching import check_all; sys.exit(check_all(sys.argv[1]))"
    done = subprocess.run(  # which has no threads yet, since it forks
        [sys.executable, "-c", code, name],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_corpus_is_small() -> None:
    files = [path for folder in (CORPUS, FOUND) for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
