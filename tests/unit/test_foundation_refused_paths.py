"""What the file system refuses is one line for the user; what is no matter of files is none."""

from __future__ import annotations

import errno
import os

import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.foundation.files import as_user_error


@pytest.mark.parametrize("arguments", [["status"], ["lab", "report"], ["new"], ["web", "info"]])
def test_a_name_that_cannot_be_is_one_line(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, [*arguments, "n" * 300])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("focuscrawl: nnn")
    assert "name too long: name another path" in line


def refused(code: int, *path: str) -> str | None:
    error = as_user_error(OSError(code, os.strerror(code), *path))
    return None if error is None else str(error)


def test_who_may_not_use_a_folder_is_told_so() -> None:
    said = refused(errno.EACCES, "/data/crawl.db")
    assert said is not None
    assert said.startswith("/data/crawl.db: permission denied: name another path")


def test_a_full_disk_is_told() -> None:
    assert refused(errno.ENOSPC) == "the disk is full: make room"


@pytest.mark.parametrize("code", [errno.ECONNREFUSED, errno.EMFILE, errno.EPIPE, errno.EACCES])
def test_what_is_of_no_path_stays_what_it_is(code: int) -> None:
    assert refused(code) is None
