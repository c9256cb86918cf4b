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
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Lock
from typing import IO, TYPE_CHECKING, Any, NoReturn

from focuscrawl.errors import UserError, WorkerError
from focuscrawl.foundation.processes import search_path, start_python
from focuscrawl.page.documents import UnreadableError, parse_document
from focuscrawl.page.parse import ParseCost, ParseLimitError, parse_page
from focuscrawl.page.view import pack_view, unpack_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from focuscrawl.page.view import PageView


#: seconds of processor time for a page; the largest harmless one takes a tenth of it
MAX_SECONDS = 10.0

# The code runs as `-c`: the program that asks is not loaded again, whatever it is.
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import serve; serve({arguments})"
_STARTED, _REFUSED = b"started\n", b"refused "
_READABLE, _UNREADABLE = b"readable\n", b"unreadable\n"
_MAX_DOCUMENT_MEMORY = (
    512 * 1024 * 1024
)  # bytes that reading a document may take, where that is known
_MAX_REQUESTS = 100  # pages; after so many a new process starts, with little memory
_ERROR_TAIL_BYTES = 8192  # bytes of the end of its standard error that are looked at


class WorkerProcess:
    """A process that a module's function ``serve`` runs in; it starts with the first request.

    Parameters
    ----------
    module : that has ``serve``, which calls `serve_requests`
    arguments : arguments of ``serve``, as Python
    most : questions; after so many a new process starts, with little memory
    """

    def __init__(self, module: str, arguments: str, max_requests: int) -> None:
        self._module, self._arguments, self._max_requests = module, arguments, max_requests
        self._process: subprocess.Popen[bytes] | None = None
        self._n_requests = 0

    def send(self, request: Mapping[str, object], body: bytes) -> IO[bytes]:
        """Send a request about a page; return the file from which the answer is read.

        Raises
        ------
        UserError, WorkerError
            See `start`.
        OSError
            The process has ended.
        """
        if self._n_requests >= self._max_requests:
            self.stop()
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._n_requests += 1
        head = json.dumps({**request, "size": len(body)}).encode()
        self._process.stdin.write(head + b"\n" + body)
        self._process.stdin.flush()
        return self._process.stdout

    def start(self) -> None:
        """Start the process if there is none.

        Raises
        ------
        UserError
            The process reports what the user has to put right.
        WorkerError
            It cannot start.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()  # somebody may have ended it, between two pages
        program = _PROGRAM.format(
            path=search_path(), module=self._module, arguments=self._arguments
        )
        with TemporaryFile() as errors:
            try:
                self._process = start_python(
                    ["-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
                )
            except OSError as error:
                raise WorkerError(f"{self._name} cannot start: {error.strerror}") from None
            assert self._process.stdout is not None
            answer = self._process.stdout.readline()
            if answer != _STARTED:
                self._raise_start_error(answer, errors)

    def kill(self) -> None:
        """Kill the process, whatever thread waits for it."""
        process = self._process  # another thread may be ending it
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """Kill the process, and wait for its end."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._n_requests = 0

    @property
    def _name(self) -> str:
        return f"the process of {self._module}"

    def _raise_start_error(self, answer: bytes, errors: IO[bytes]) -> NoReturn:
        self.stop()
        if answer.startswith(_REFUSED):
            raise UserError(json.loads(answer.removeprefix(_REFUSED)))
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _ERROR_TAIL_BYTES))
        lines = errors.read().decode(errors="replace").strip().splitlines()
        frames = [number for number, line in enumerate(lines) if line.startswith(" ")]
        cause = " ".join(lines[frames[-1] + 1 if frames else 0 :])
        raise WorkerError(f"{self._name} cannot start: {cause or 'it ended without a word'}")


def serve_requests(
    respond: Callable[[dict[str, Any], bytes], Iterable[bytes]],
    max_seconds: float,
    check_setup: Callable[[], str] = str,
) -> None:
    """Answer the questions of `WorkerProcess.ask`, until they end or a page takes too long.

    The program that asks handles signals; here they would end a page that is nearly done.

    Parameters
    ----------
    answer : returns the lines of an answer to a request
    max_seconds : seconds of processor time for a page; then the process ends
    check_setup : called first; returns what the user has to put right before, or an empty text
    """
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    text = check_setup()
    answers.write(_REFUSED + json.dumps(text).encode() + b"\n" if text else _STARTED)
    answers.flush()
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)  # what libraries print from now on is of no use
    while line := requests.readline():
        request = json.loads(line)
        body = requests.read(request.pop("size"))
        signal.setitimer(
            signal.ITIMER_PROF, max_seconds
        )  # SIGPROF ends the process, wherever it is
        lines = respond(request, body)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        answers.writelines(lines)
        answers.flush()


class ParserProcess:
    """Parses pages in a process that can be killed, beside other work.

    The process starts with the first page, and is there until `close`. One page at a time; a
    second one waits. May be used from any thread.

    Parameters
    ----------
    max_seconds : seconds of processor time for a page
    """

    def __init__(self, max_seconds: float = MAX_SECONDS) -> None:
        self._lock = Lock()
        self._server = WorkerProcess(
            "focuscrawl.page.parser_process", repr(max_seconds), _MAX_REQUESTS
        )
        self._closed = Event()

    def parse(
        self, body: bytes, url: str, *, encoding: str | None = None, robots: Sequence[str] = ()
    ) -> PageView:
        """Do what `parse_page` does, and here if that is sure to end soon: most pages are.

        Raises
        ------
        ParseLimitError
            See `parse_page`.
        """
        with suppress(ParseLimitError):
            return parse_page(
                body, url, encoding=encoding, robots=robots, max_cost=ParseCost.LARGE
            )
        return self.parse_page(body, url, encoding=encoding, robots=robots)

    def parse_page(
        self, body: bytes, url: str, *, encoding: str | None = None, robots: Sequence[str] = ()
    ) -> PageView:
        """Do what `focuscrawl.page.parse_page` does; blocks until it is done.

        Raises
        ------
        ParseLimitError
            The page took too long, or too much memory, or was given up by `close`.
        WorkerError
            The process cannot start.
        """
        view = self._request({"url": url, "encoding": encoding, "robots": [*robots]}, body)
        assert view is not None
        return view

    def parse_document(self, body: bytes, url: str, kind: str) -> PageView:
        """Do what `focuscrawl.page.documents.parse_document` does; blocks until it is done.

        Raises
        ------
        ParseLimitError, WorkerError
            See `parse_page`.
        UnreadableError
            It cannot be read.
        """
        view = self._request({"url": url, "kind": kind}, body)
        if view is None:
            raise UnreadableError
        return view

    def close(self) -> None:
        """End the process, with the page it is parsing; no other starts."""
        self._closed.set()
        self._server.kill()
        with self._lock:
            self._server.stop()

    def _request(self, request: Mapping[str, object], body: bytes) -> PageView | None:
        with self._lock:
            try:
                if not self._closed.is_set():
                    self._server.start()
                if self._closed.is_set():  # perhaps in the meantime
                    raise EOFError
                answers = self._server.send(request, body)
                readable = answers.readline()
                if readable not in (_READABLE, _UNREADABLE):
                    raise EOFError
                return unpack_view(answers) if readable == _READABLE else None  # type: ignore[arg-type]  # a BufferedReader
            except WorkerError:
                if not self._closed.is_set():  # otherwise it was killed
                    raise
                raise ParseLimitError from None
            except (EOFError, OSError, ValueError):  # it has ended
                self._server.stop()
                raise ParseLimitError from None


@cache
def shared_parser() -> ParserProcess:
    """Return the parser of this process, for all who read pages outside of a crawl."""
    parser = ParserProcess(MAX_SECONDS)
    atexit.register(_close, parser, os.getpid())
    return parser


os.register_at_fork(after_in_child=shared_parser.cache_clear)  # one process, one parser


def _close(parser: ParserProcess, owner: int) -> None:
    if os.getpid() == owner:
        parser.close()


def serve(max_seconds: float) -> None:
    """Parse pages from standard input; see `ParserProcess`."""
    serve_requests(_answer, max_seconds)


def _answer(request: dict[str, Any], body: bytes) -> Iterable[bytes]:
    if "kind" not in request:
        return chain([_READABLE], pack_view(parse_page(body, **request)))
    # a document may take so much memory more
    used = _address_space()
    before = resource.getrlimit(resource.RLIMIT_AS)
    if used is not None and before[1] == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (used + _MAX_DOCUMENT_MEMORY, before[1]))
    try:
        return chain([_READABLE], pack_view(parse_document(body, **request)))
    except UnreadableError:
        return [_UNREADABLE]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int | None:
    """Return the bytes that this process has asked for; None where there is no telling."""
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * resource.getpagesize()
    return None
