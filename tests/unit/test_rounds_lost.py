"""Crawls in rounds that lose what does the work: a process, and the disk that it had."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from focuscrawl.errors import UserError
from focuscrawl.rounds import crawl_in_rounds
from focuscrawl.rounds.context import context_of
from focuscrawl.rounds.tasks import Processes

from .rounds import crawl, fetches, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def test_a_process_that_dies_is_one_line_and_its_disk_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, disk = plan("best-first", 40, 10, 2), tmp_path / "disk"
    crawl(given, tmp_path / "whole")
    disk.mkdir()
    monkeypatch.setenv("TMPDIR", str(disk))
    monkeypatch.setattr(tempfile, "tempdir", None)

    @contextmanager
    def watch(what: str, tasks: int) -> Iterator[Callable[[int], object]]:
        if what == "round 3: fetch":
            for process in multiprocessing.active_children():
                process.kill()
        yield lambda done: done

    context_of.cache_clear()
    with (
        closing(Processes(2)) as workers,
        pytest.raises(UserError, match="a process died while it did 'fetch' of round 3"),
    ):
        crawl_in_rounds(given, str(tmp_path / "lost"), workers, lambda _: None, watch=watch)
    shutil.rmtree(disk)
    disk.mkdir()
    last = crawl(given, tmp_path / "lost", workers=2)
    assert last["fetched"] == 40
    found = fetches(tmp_path / "lost", tmp_path / "a")
    assert found == fetches(tmp_path / "whole", tmp_path / "b")
    assert not [*disk.iterdir()]  # nothing is kept there from task to task
