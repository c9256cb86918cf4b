"""Files in folders of strangers: no link is followed, no pipe waited for, no draft foreseen."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from focuscrawl.cli.common_options import write_files
from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.crawl_folder import Command, FileControl
from focuscrawl.crawl.rejudging import REQUEST_FILE, request_topic_change
from focuscrawl.engine.spider_requests import RequestFile
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import (
    as_user_error,
    open_nofollow,
    remove_stale_drafts,
    replace_atomically,
    write_atomically,
)
from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    from scrapy import Spider


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that nobody may touch."""
    path = tmp_path / "outside"
    path.write_text("precious")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "theirs"
    path.mkdir()
    return path


@pytest.mark.parametrize("mode", ["r", "w", "a", "r+"])
def test_a_link_is_not_followed(folder: Path, outside: Path, mode: str) -> None:
    (folder / "file").symlink_to(outside)
    with pytest.raises(UserError, match=f"file is a link to {outside}"):
        open(folder / "file", mode, opener=open_nofollow).close()
    assert outside.read_text() == "precious"


@pytest.mark.parametrize("mode", ["r", "a"])
def test_a_pipe_is_not_waited_for(folder: Path, mode: str) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises((UserError, OSError)):  # nobody reads it: that is another error
        open(folder / "pipe", mode, opener=open_nofollow).close()


def test_a_file_appears_whole_or_not_at_all(folder: Path) -> None:
    write_atomically(folder / "file", "first")
    with suppress(KeyError), replace_atomically(folder / "file") as draft:
        draft.write_text("half of")
        raise KeyError
    assert (folder / "file").read_text() == "first"
    assert [each.name for each in folder.iterdir()] == ["file"]


def test_a_draft_has_another_name_each_time(folder: Path) -> None:
    names = set()
    for _ in range(10):
        with replace_atomically(folder / "file") as draft:
            names.add(draft.name)
            draft.write_text("")
    assert len(names) == 10


def test_a_file_may_be_read_by_others_if_all_files_may(folder: Path) -> None:
    (folder / "like").write_text("")
    write_atomically(folder / "file", "first")
    assert (folder / "file").stat().st_mode == (folder / "like").stat().st_mode


def test_a_link_is_replaced_by_the_file(folder: Path, outside: Path) -> None:
    (folder / "file").symlink_to(outside)
    write_atomically(folder / "file", "ours")
    assert not (folder / "file").is_symlink()
    assert outside.read_text() == "precious"


def test_only_drafts_of_a_file_are_discarded(folder: Path, outside: Path) -> None:
    (folder / ".a.db.12.draft-wal").symlink_to(outside)
    (folder / ".a.db.34.draft").mkdir()
    for name in (".a.db.56.draft", ".b.db.78.draft", "a.db"):
        (folder / name).write_text("")
    remove_stale_drafts(folder / "a.db")
    left = {".a.db.34.draft", ".b.db.78.draft", "a.db"}
    assert {each.name for each in folder.iterdir()} == left
    assert outside.read_text() == "precious"


_KILLED = """
import os, pathlib, signal, sys
from focuscrawl.foundation.files import replace_atomically

path, pages = map(pathlib.Path, sys.argv[1:])
with replace_atomically(path) as draft, replace_atomically(pages, folder=True) as folder:
    draft.write_text("half of")
    pathlib.Path(f"{draft}-journal").write_text("what it was")
    (folder / "page.md").write_text("half of")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_draft_of_one_that_was_killed_is_removed_and_no_other(folder: Path) -> None:
    path, pages = folder / "pages.parquet", folder / "pages"
    with replace_atomically(path) as file, replace_atomically(pages, folder=True) as also:
        done = subprocess.run([sys.executable, "-c", _KILLED, path, pages], check=False)
        assert done.returncode == -signal.SIGKILL
        assert len([*folder.iterdir()]) == 5
        for each, is_folder in ((path, False), (pages, True)):
            with suppress(KeyError), replace_atomically(each, folder=is_folder):
                raise KeyError
        assert {*folder.iterdir()} == {file, also}
    assert {*folder.iterdir()} == {path, pages}


def lock(folder: Path) -> None:
    CrawlFolder(folder).create_and_acquire()


def look_at_lock(folder: Path) -> None:
    assert CrawlFolder(folder).in_use


def record(folder: Path) -> None:
    WarcRecorder(folder / "pages.warc.gz").close()


def keep(folder: Path) -> None:
    spider: Spider = None  # type: ignore[assignment]  # which no request of theirs is asked of
    RequestFile(folder, spider).mark_fetched("http://host.example/")


def take_up(folder: Path) -> None:
    spider: Spider = None  # type: ignore[assignment]
    RequestFile(folder, spider).load(lambda _: True)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        (CrawlFolder.LOCK, lock),
        (CrawlFolder.LOCK, look_at_lock),
        ("pages.warc.gz", record),
        (RequestFile.NAME, keep),
        (RequestFile.NAME, take_up),
    ],
)
def test_no_file_of_a_crawl_is_a_link(
    folder: Path, outside: Path, name: str, use: Callable[[Path], None]
) -> None:
    (folder / name).symlink_to(outside)
    with pytest.raises(UserError, match=f"{name} is a link to"):
        use(folder)
    assert outside.read_text() == "precious"


def stop(folder: Path) -> None:
    FileControl(folder).send(Command.STOP)


def follow(folder: Path) -> None:
    request_topic_change(folder, "critic-1", "/A", None)


def report(folder: Path) -> None:
    write_files(folder, {"report.html": b"ours"})


@pytest.mark.parametrize(
    ("name", "use"), [(FileControl.FILE, stop), (REQUEST_FILE, follow), ("report.html", report)]
)
def test_what_is_written_whole_takes_the_place_of_a_link(
    folder: Path, outside: Path, name: str, use: Callable[[Path], None]
) -> None:
    (folder / name).symlink_to(outside)
    for draft in (f"{name}.new", f".{name}.new", f".{name}.draft"):
        (folder / draft).symlink_to(outside)
    use(folder)
    assert not (folder / name).is_symlink()
    assert outside.read_text() == "precious"


def test_what_is_asked_through_a_link_is_nothing(folder: Path, outside: Path) -> None:
    outside.write_text(json.dumps({"wanted": "stop"}))
    (folder / FileControl.FILE).symlink_to(outside)
    assert FileControl(folder).command is Command.RUN


def test_lines_of_a_request_file_that_make_no_sense_are_left_out(folder: Path) -> None:
    url = "http://host.example/"
    lines = ["7", "[7, 8]", "[{}, null]", f'["{url}", 7]', "[" * 100_000, "[1, 2, 3]", "null"]
    lines.append(json.dumps([url, None]))
    (folder / RequestFile.NAME).write_text("\n".join(lines))
    spider: Spider = None  # type: ignore[assignment]
    file = RequestFile(folder, spider)
    assert file.load(lambda _: False) == []
    assert file.fetched == {url}


@pytest.mark.parametrize("arguments", [["status"], ["lab", "report"], ["new"], ["web", "info"]])
def test_a_name_that_cannot_be_is_one_line(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, [*arguments, "n" * 300])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("focuscrawl: nnn")
    assert "name too long: name another path" in line


@pytest.mark.parametrize(
    ("code", "path", "said"),
    [
        (
            errno.EACCES,
            ("/data/crawl.db",),
            "/data/crawl.db: permission denied: name another path",
        ),
        (errno.ENOSPC, (), "the disk is full: free some space"),
        *((code, (), None) for code in (errno.ECONNREFUSED, errno.EMFILE, errno.EPIPE)),
        (errno.EACCES, (), None),
    ],
)
def test_what_a_user_can_put_right_is_said(
    code: int, path: tuple[str, ...], said: str | None
) -> None:
    error = as_user_error(OSError(code, os.strerror(code), *path))
    assert (error is None) == (said is None)
    assert str(error).startswith(str(said))
