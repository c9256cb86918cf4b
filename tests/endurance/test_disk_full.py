"""A disk that fills up ends the crawl with its reason; with room again it goes on."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from integration.running import ROOT, Kept, command, environment

from .lasting import LONG, assert_alike, assert_sound

if TYPE_CHECKING:
    from .conftest import Undisturbed


def starved(folder: Path, undisturbed: Undisturbed, limit: int | None) -> tuple[int, str]:
    """Crawl with files that may not grow beyond `limit` bytes; return exit code and output."""

    def confine() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        command(folder, **undisturbed.arguments),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=confine,
    )
    return done.returncode, done.stderr


def assert_says_why(code: int, said: str) -> None:
    assert code == 1
    assert "The crawl database cannot be written" in said
    assert "Traceback" not in said


def test_a_file_that_may_not_grow(tmp_path: Path, undisturbed: Undisturbed) -> None:
    folder = tmp_path / "crawl"
    pages = []
    size = (undisturbed.kept.folder / "crawl.db").stat().st_size
    for share in (0.3, 0.6) if LONG else (0.5,):
        assert_says_why(*starved(folder, undisturbed, int(share * size)))
        pages.append(assert_sound(Kept(folder)))
    assert 0 < pages[0] <= pages[-1] < undisturbed.budget
    assert_alike(undisturbed.resume(folder).kept, undisturbed.kept)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "focuscrawl", str(mounted)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


@pytest.mark.skipif(not LONG, reason="make endurance")
def test_a_full_disk(tmp_path: Path, small_disk: Path, undisturbed: Undisturbed) -> None:
    folder = small_disk / "crawl"
    assert_says_why(*starved(folder, undisturbed, None))
    assert_says_why(*starved(folder, undisturbed, None))  # still full
    roomier = tmp_path / "crawl"
    shutil.copytree(folder, roomier)
    assert 0 < assert_sound(Kept(roomier)) < undisturbed.budget
    assert_alike(undisturbed.resume(roomier).kept, undisturbed.kept)
