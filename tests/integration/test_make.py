"""``make crawl``, the first that many see of focuscrawl."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .running import ROOT, environment

BUDGET = 60


def test_make_crawl_shows_what_focus_brings(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    given = (f"BIN={Path(sys.executable).parent}", f"BUDGET={BUDGET}", f"CRAWL_DIR={folder}")
    done = subprocess.run(
        # what is installed is taken as it is
        ["make", "--no-print-directory", "-o", ".venv/.installed", "crawl", *given],
        cwd=ROOT,
        env=environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"the budget of {BUDGET} fetches is spent" in done.stderr
    *_, said, where = done.stdout.splitlines()
    both = re.fullmatch(
        rf"relevant pages in {BUDGET} fetches each: "
        r"(\d+) with breadth-first, (\d+) with apprentice",
        said,
    )
    assert both
    assert int(both[2]) > 2 * int(both[1])
    picture = Path(where.partition(": ")[2])
    assert picture.is_relative_to(folder)
    assert picture.read_bytes().startswith(b"\x89PNG")
