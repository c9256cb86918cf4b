"""Pages parsed in a process of their own, which is ended when one of them takes too long."""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, BinaryIO

from focuscrawl.foundation.python_processes import search_path, start_python
from focuscrawl.page.documents import UnreadableError, parse_document
from focuscrawl.page.effort import Effort
from focuscrawl.page.packed_view import pack_view, unpack_view
from focuscrawl.page.parse import TooMuchWorkError, parse_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.page.view import PageView

#: seconds of processor time for a page; the largest harmless one takes a tenth of it
LONGEST = 10.0

# The code runs as `-c`: the program that crawls is not loaded again, whatever it is.
_PROGRAM = "import sys; sys.path[:] = {path!r}; from focuscrawl.page.apart import serve; serve()"
_READABLE, _UNREADABLE = b"readable\n", b"unreadable\n"
_MEMORY = 512 * 1024 * 1024  # bytes that reading a document may take, where that can be told
_MOST = 100  # pages; after so many a new process begins, with little memory


class ParserApart:
    """Parses pages where they disturb nobody and can be ended.

    The process starts with the first page, and is there until `close`. One page at a time; a
    second one waits. May be used from any thread.

    Parameters
    ----------
    longest : seconds of processor time for a page
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._one = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._parsed = 0
        self._closed = Event()

    def parse(
        self, body: bytes, url: str, *, encoding: str | None = None, robots: Sequence[str] = ()
    ) -> PageView:
        """Do what `parse_page` does, and here if that is sure to end soon: most pages are.

        Raises
        ------
        TooMuchWorkError
            See `parse_page`.
        """
        with suppress(TooMuchWorkError):
            return parse_page(body, url, encoding=encoding, robots=robots, most=Effort.LARGE)
        return self.parse_page(body, url, encoding=encoding, robots=robots)

    def parse_page(
        self, body: bytes, url: str, *, encoding: str | None = None, robots: Sequence[str] = ()
    ) -> PageView:
        """Do what `focuscrawl.page.parse_page` does; blocks until it is done.

        Raises
        ------
        TooMuchWorkError
            The page took too long, or too much memory, or was given up by `close`.
        """
        asked = {"url": url, "encoding": encoding, "robots": [*robots], "size": len(body)}
        view = self._ask(asked, body)
        assert view is not None
        return view

    def parse_document(self, body: bytes, url: str, kind: str) -> PageView:
        """Do what `focuscrawl.page.documents.parse_document` does; blocks until it is done.

        Raises
        ------
        TooMuchWorkError
            See `parse_page`.
        UnreadableError
            It cannot be read.
        """
        view = self._ask({"url": url, "kind": kind, "size": len(body)}, body)
        if view is None:
            raise UnreadableError
        return view

    def _ask(self, asked: Mapping[str, object], body: bytes) -> PageView | None:
        with self._one:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(asked).encode() + b"\n" + body)
                process.stdin.flush()
                readable = process.stdout.readline()
                view = unpack_view(process.stdout) if readable == _READABLE else None  # type: ignore[arg-type]  # a BufferedReader
                if readable not in (_READABLE, _UNREADABLE):
                    raise EOFError
            except (EOFError, OSError, ValueError):  # it has ended
                self._end()
                raise TooMuchWorkError from None
            self._parsed += 1
            if self._parsed % _MOST == 0:
                self._end()
            return view

    def close(self) -> None:
        """End the process, with whatever it is at; no other begins."""
        self._closed.set()
        process = self._process
        if process is not None:
            process.kill()
        with self._one:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed.is_set():
            raise TooMuchWorkError
        if self._process is None:
            program = _PROGRAM.format(path=search_path())
            self._process = start_python(
                ["-c", program, str(self._longest)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        if self._closed.is_set():  # in the meantime
            self._end()
            raise TooMuchWorkError
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@cache
def shared_parser() -> ParserApart:
    """Return the parser of this process, for all who read pages outside of a crawl."""
    parser = ParserApart(LONGEST)
    atexit.register(_close, parser, os.getpid())
    return parser


os.register_at_fork(after_in_child=shared_parser.cache_clear)  # one process, one parser


def _close(parser: ParserApart, owner: int) -> None:
    if os.getpid() == owner:
        parser.close()


def serve() -> None:
    """Parse pages from standard input, until it ends or one takes too long: then the process does.

    The crawl that asks sees to signals; here they would end a page that is nearly done.
    """
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := asked.readline():
        _answer(json.loads(line), asked, answers, float(sys.argv[1]))


def _answer(page: dict[str, object], asked: BinaryIO, answers: BinaryIO, longest: float) -> None:
    body = asked.read(page.pop("size"))  # type: ignore[arg-type]
    signal.setitimer(signal.ITIMER_PROF, longest)  # SIGPROF ends the process, wherever it is
    view = _document(body, **page) if "kind" in page else parse_page(body, **page)  # type: ignore[arg-type]
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    if view is None:
        answers.write(_UNREADABLE)
    else:
        answers.write(_READABLE)
        answers.writelines(pack_view(view))
    answers.flush()


def _document(body: bytes, url: str, kind: str) -> PageView | None:
    """Read a document, with so much memory more; None if it cannot be."""
    used = _address_space()
    before = resource.getrlimit(resource.RLIMIT_AS)
    if used is not None and before[1] == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, before[1]))
    try:
        return parse_document(body, url, kind)
    except UnreadableError:
        return None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int | None:
    """Return the bytes that this process has asked for; None where there is no telling."""
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * resource.getpagesize()
    return None
