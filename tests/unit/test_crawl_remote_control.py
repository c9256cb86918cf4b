"""What is asked of a crawl: a file that changes as a whole and that nobody need understand."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.cli.main import main
from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.crawl_folder import Command, FileControl
from focuscrawl.errors import UserError


def test_a_crawl_runs_until_something_else_is_asked(tmp_path: Path) -> None:
    ours, theirs = FileControl(tmp_path), FileControl(tmp_path)
    assert theirs.command is Command.RUN
    for wanted in (Command.PAUSE, Command.STOP, Command.PAUSE, Command.RUN, Command.RUN):
        ours.send(wanted)
        assert theirs.command is wanted
    assert not [*tmp_path.iterdir()]


def test_a_stop_is_for_one_run_and_a_pause_for_all(tmp_path: Path) -> None:
    control = FileControl(tmp_path)
    control.send(Command.STOP)
    control.clear_command(Command.STOP)
    assert FileControl(tmp_path).command is Command.RUN
    control.send(Command.PAUSE)
    control.clear_command(Command.STOP)  # asked for a pause since: that holds
    control.clear_command(Command.PAUSE)
    assert control.command is Command.PAUSE


def test_a_budget_and_a_pause_do_not_undo_each_other(tmp_path: Path) -> None:
    control = FileControl(tmp_path)
    control.set_budget(30)
    control.send(Command.PAUSE)
    assert (control.command, control.budget) == (Command.PAUSE, 30)
    control.clear_budget(20)  # 30 was asked for since
    assert control.budget == 30
    control.clear_budget(30)
    assert [control.command, control.budget] == [Command.PAUSE, None]
    control.set_budget(0)
    control.send(Command.RUN)
    assert (control.command, control.budget) == (Command.RUN, 0)
    control.clear_budget(0)
    assert not [*tmp_path.iterdir()]


def test_what_two_programs_ask_at_once_is_all_kept(tmp_path: Path) -> None:
    ours, theirs = FileControl(tmp_path), FileControl(tmp_path)

    def budgets() -> None:
        for budget in range(60):
            ours.set_budget(budget)
            ours.clear_budget(budget)

    with ThreadPoolExecutor(1) as other:
        done = other.submit(budgets)
        while not done.done():
            for wanted in (Command.PAUSE, Command.RUN):
                theirs.send(wanted)
                assert theirs.command is wanted
        done.result()
    assert not [*tmp_path.iterdir()]


@given(
    st.binary(max_size=60)
    | st.sampled_from([b'{"wanted": "fly"}', b"[]", b'"stop"', b'{"budget": true}'])
)
@settings(max_examples=50, deadline=None)
def test_a_file_that_says_nothing_asks_for_nothing(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        Path(folder, FileControl.FILE).write_bytes(content)
        control = FileControl(Path(folder))
        assert (control.command, control.budget) == (Command.RUN, None)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="as the user who runs the crawl"):
        FileControl(tmp_path / "missing").send(Command.PAUSE)


def test_looking_at_a_folder_does_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "crawl"
    crawling = CrawlFolder(path)
    assert not crawling.in_use
    store = crawling.open_store({"topic": "/A"}, {})
    store.close()
    assert CrawlFolder(path).in_use
    with pytest.raises(UserError, match="by another process"):
        CrawlFolder(path).open_store({"topic": "/A"}, {})
    crawling.release()
    assert not CrawlFolder(path).in_use
    again = CrawlFolder(path)
    again.open_store({"topic": "/A"}, {}).close()
    again.release()


def test_many_who_look_do_not_take_each_other_for_the_crawl(tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path)
    folder.create_and_acquire()
    folder.release()
    with ThreadPoolExecutor(8) as several:
        seen = several.map(lambda _: CrawlFolder(tmp_path).in_use, range(400))
    assert not any(seen)


def test_a_killed_crawl_keeps_nobody_out(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from focuscrawl.crawl import CrawlFolder\n"
        "folder = CrawlFolder(Path(sys.argv[1])); folder.create_and_acquire()\n"
        "print('mine', flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True
    ) as crawling:
        assert crawling.stdout is not None
        assert crawling.stdout.readline() == "mine\n"
        assert CrawlFolder(tmp_path).in_use
        with pytest.raises(UserError, match="by another process"):
            CrawlFolder(tmp_path).acquire()
        crawling.kill()
        crawling.wait()
    assert not CrawlFolder(tmp_path).in_use
    CrawlFolder(tmp_path).acquire()


def test_a_second_recrawl_of_a_topic_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["recrawl", "/Boats", "--budget", "1", "--knowledge", "known.db"]
    with FileLock(tmp_path / ".known.db.recrawl.lock"):
        refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 2
    assert "another recrawl with known.db is running" in refused.output


def test_a_recrawl_that_is_refused_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["recrawl", "/Nowhere", "--budget", "1", "--web", "demo"]
    assert CliRunner().invoke(main, command).exit_code == 2
    assert not [*tmp_path.iterdir()]
