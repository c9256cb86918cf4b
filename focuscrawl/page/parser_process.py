"""Pages parsed in a process of its own, which is killed when a page takes too long."""

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
from tempfile import TemporaryFile
from threading import Event, Lock
from typing import IO, TYPE_CHECKING, BinaryIO, NoReturn

from focuscrawl.errors import UserError, WorkerError
from focuscrawl.foundation.processes import search_path, start_python
from focuscrawl.page.documents import UnreadableError, parse_document
from focuscrawl.page.parse import Effort, TooMuchWorkError, parse_page
from focuscrawl.page.view import pack_view, unpack_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from focuscrawl.page.view import PageView


#: seconds of processor time for a page; the largest harmless one takes a tenth of it
LONGEST = 10.0

# The code runs as `-c`: the program that asks is not loaded again, whatever it is.
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import serve; serve({given})"
_STARTED, _REFUSED = b"started\n", b"refused "
_READABLE, _UNREADABLE = b"readable\n", b"unreadable\n"
_MEMORY = 512 * 1024 * 1024  # bytes that reading a document may take, where that can be told
_MOST = 100  # pages; after so many a new process begins, with little memory
_LAST_WORDS = 8192  # bytes of the end of what a process said


class Server:
    """A process that a module's function ``serve`` runs in; it starts when it is asked first.

    Parameters
    ----------
    module : that has ``serve``, which calls `say_started` when it can take pages
    given : arguments of ``serve``, as Python
    """

    def __init__(self, module: str, given: str) -> None:
        self._module, self._given = module, given
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> tuple[IO[bytes], IO[bytes]]:
        """Return what the process reads and what it writes; start it if there is none.

        Raises
        ------
        UserError
            It has said that something is to be put right.
        WorkerError
            It cannot start.
        """
        if self._process is not None and self._process.poll() is not None:
            self.end()  # somebody has ended it, between two pages
        if self._process is None:
            program = _PROGRAM.format(path=search_path(), module=self._module, given=self._given)
            with TemporaryFile() as said:
                try:
                    self._process = start_python(
                        ["-c", program],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=said,
                    )
                except OSError as error:
                    raise WorkerError(f"{self._name} cannot start: {error.strerror}") from None
                assert self._process.stdout is not None
                answer = self._process.stdout.readline()
                if answer != _STARTED:
                    self._refuse(answer, said)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def kill(self) -> None:
        """Kill the process, whatever thread waits for it."""
        process = self._process  # another thread may be ending it
        if process is not None:
            process.kill()

    def end(self) -> None:
        """End the process, with whatever it is at."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def _name(self) -> str:
        return f"the process of {self._module}"

    def _refuse(self, answer: bytes, said: IO[bytes]) -> NoReturn:
        """Raise the error that says why the process has not started."""
        self.end()
        if answer.startswith(_REFUSED):
            raise UserError(json.loads(answer.removeprefix(_REFUSED)))
        said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST_WORDS))
        lines = said.read().decode(errors="replace").strip().splitlines()
        frames = [number for number, line in enumerate(lines) if line.startswith(" ")]
        cause = " ".join(lines[frames[-1] + 1 if frames else 0 :])
        raise WorkerError(f"{self._name} cannot start: {cause or 'it ended without a word'}")


def say_started(refused: str = "") -> None:
    """Tell who asks that pages can come; called in the process that `Server` started.

    What libraries say from now on is nobody's business.

    Parameters
    ----------
    refused : what the user has to put right before; empty: nothing
    """
    answers = sys.stdout.buffer
    answers.write(_REFUSED + json.dumps(refused).encode() + b"\n" if refused else _STARTED)
    answers.flush()
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)


class ParserApart:
    """Parses pages where they disturb nobody and can be ended.

    The process starts with the first page, and is there until `close`. One page at a time; a
    second one waits. May be used from any thread.

    Parameters
    ----------
    longest : seconds of processor time for a page
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._one = Lock()
        self._server = Server("focuscrawl.page.parser_process", repr(longest))
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
        WorkerError
            The process cannot start.
        """
        asked = {"url": url, "encoding": encoding, "robots": [*robots], "size": len(body)}
        view = self._ask(asked, body)
        assert view is not None
        return view

    def parse_document(self, body: bytes, url: str, kind: str) -> PageView:
        """Do what `focuscrawl.page.documents.parse_document` does; blocks until it is done.

        Raises
        ------
        TooMuchWorkError, WorkerError
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
            questions, answers = self._start()
            try:
                questions.write(json.dumps(asked).encode() + b"\n" + body)
                questions.flush()
                readable = answers.readline()
                view = unpack_view(answers) if readable == _READABLE else None  # type: ignore[arg-type]  # a BufferedReader
                if readable not in (_READABLE, _UNREADABLE):
                    raise EOFError
            except (EOFError, OSError, ValueError):  # it has ended
                self._server.end()
                raise TooMuchWorkError from None
            self._parsed += 1
            if self._parsed % _MOST == 0:
                self._server.end()
            return view

    def close(self) -> None:
        """End the process, with whatever it is at; no other begins."""
        self._closed.set()
        self._server.kill()
        with self._one:
            self._server.end()

    def _start(self) -> tuple[IO[bytes], IO[bytes]]:
        try:
            if not self._closed.is_set():
                pipes = self._server.start()
        except WorkerError:
            if not self._closed.is_set():  # then it was killed
                raise
        if self._closed.is_set():  # in the meantime
            self._server.end()
            raise TooMuchWorkError
        return pipes


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


def serve(longest: float) -> None:
    """Parse pages from standard input, until it ends or one takes too long: then the process does.

    The crawl that asks sees to signals; here they would end a page that is nearly done.

    Parameters
    ----------
    longest : see `ParserApart`
    """
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    say_started()
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := asked.readline():
        _answer(json.loads(line), asked, answers, longest)


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
