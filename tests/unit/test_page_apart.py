"""Pages parsed in a process of their own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from server.bad.hard import KINDS

from focuscrawl.errors import WorkerError
from focuscrawl.page import PageView, ParseLimitError, ParserProcess, parse_page

URL = "http://a.example/dir/"
ENDLESS = KINDS["attributes"](2_000_000)
PAGES = {
    "ordinary": (
        "<title>Jazz &amp; more</title><base href=/b/><link rel=canonical href=/c>"
        "<meta name=robots content=noindex,nofollow><h1>Ein Straßenfest</h1>"
        "<meta http-equiv=refresh content='3; url=/d'>"
        "<p>日本語 <a href=x rel=nofollow>Link</a> \U0001f600 <a href='mailto:x'>m</a>"
    ).encode(),
    "empty": b"",
    "no text": b"\xff\xfe\0\0",
    "latin-1": "<p>Straße <a href=ü>ü</a>".encode("latin-1"),
}


@pytest.fixture
def apart() -> Iterator[ParserProcess]:
    """A parser that is patient enough for a busy machine."""
    parser = ParserProcess(max_seconds=2.0)
    yield parser
    parser.close()


def plain(view: PageView) -> dict[str, object]:
    """Return a page with lists for arrays, and the kinds of these."""
    columns = dataclasses.asdict(view)
    columns |= {f"link {name}": value for name, value in columns.pop("links").items()}
    return {
        name: (value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value
        for name, value in columns.items()
    }


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_it_would_be_here(apart: ParserProcess, page: str) -> None:
    given: dict[str, object] = {
        "encoding": "utf-8" if page == "ordinary" else None,
        "robots": ["noindex"],
        "references": ["http://a.example/next"],
    }
    there = apart.parse_page(PAGES[page], URL, **given)  # type: ignore[arg-type]
    assert plain(there) == plain(parse_page(PAGES[page], URL, **given))  # type: ignore[arg-type]


def test_a_page_that_takes_too_long_is_ended_and_the_next_one_is_parsed(
    apart: ParserProcess,
) -> None:
    with pytest.raises(ParseLimitError):
        apart.parse_page(ENDLESS, URL)
    assert apart.parse_page(b"<title>Next</title>", URL).title == "Next"


def test_what_is_under_way_is_given_up_at_the_end() -> None:
    parser, before = ParserProcess(max_seconds=600.0), children()
    ended = threading.Event()

    def parse() -> None:
        with pytest.raises(ParseLimitError):
            parser.parse_page(ENDLESS, URL)
        ended.set()

    thread = threading.Thread(target=parse)
    thread.start()
    (child,) = wait_for_child(before)
    parser.close()
    thread.join(600)
    assert ended.is_set()
    assert not child.is_running()
    with pytest.raises(ParseLimitError):
        parser.parse_page(b"<p>too late", URL)


def wait_for_child(before: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that this one has started since `before`, once there are any."""
    while not (found := [each for each in children() if each not in before]):
        os.sched_yield()
    return found


def children() -> list[psutil.Process]:
    """Return the processes that parse for this one, which may have begun others, too."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("focuscrawl.page.parser_process" in part for part in child.cmdline()):
                found.append(child)
    return found


def test_signals_are_the_crawls_business(apart: ParserProcess) -> None:
    apart.parse_page(b"", URL)
    parsers = children()  # that of other tests may be there, too
    assert parsers
    for child in parsers:
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            child.send_signal(each)
    assert apart.parse_page(b"<title>There</title>", URL).title == "There"
    assert all(child.is_running() for child in parsers)


def test_the_process_ends_with_the_crawl_and_runs_nothing_of_it(tmp_path: Path) -> None:
    """A program without a guard around what it does, that is killed."""
    program = tmp_path / "program.py"
    program.write_text(
        "print('begun', flush=True)\n"
        "import os, psutil, signal\n"
        "from focuscrawl.page import ParserProcess\n"
        "print(ParserProcess().parse_page(b'<title>x</title>', 'http://a/').title)\n"
        "print(psutil.Process().children()[0].pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    begun, title, pid = done.stdout.split()
    assert (begun, title) == ("begun", "x")
    with contextlib.suppress(psutil.NoSuchProcess):  # it may end at any moment
        psutil.Process(int(pid)).wait(600)
    assert not psutil.pid_exists(int(pid))


def test_a_process_that_cannot_start_is_no_fault_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lxml.py").write_text("raise ImportError('half of lxml\\nis missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    parser = ParserProcess()
    for _ in range(2):
        with pytest.raises(WorkerError, match="cannot start: ImportError: half of lxml is mis"):
            parser.parse_page(b"<p>a page", URL)
    (tmp_path / "lxml.py").unlink()
    assert parser.parse_page(b"<title>There</title>", URL).title == "There"
    parser.close()
