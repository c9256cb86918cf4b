"""Parse pages in a child process, which is killed if a page takes too long."""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from focuscrawl.page.robots_rules import DEFAULT_AGENT
from focuscrawl.page.view import pack_view, unpack_view

if TYPE_CHECKING:
    from focuscrawl.page.view import PageView


#: seconds of processor time for a page, ten times as much as the largest harmless page takes
MAX_SECONDS = 10.0

# running code by `-c` does not import the main module of the parent process again
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import serve; serve({arguments})"
_STARTED, _REFUSED = b"started\n", b"refused "
_READABLE, _UNREADABLE = b"readable\n", b"unreadable\n"
_MAX_DOCUMENT_MEMORY = 512 * 1024 * 1024  # bytes for parsing a document, on Linux
_MAX_REQUESTS = 100  # pages, after which a new process starts, because memory use grows
_ERROR_TAIL_BYTES = 8192  # last bytes of the standard error that are read for a message


class WorkerProcess:
    """A child process in which the function ``serve`` of a given module answers requests.

    Parameters
    ----------
    module : module with the function ``serve``, which calls `serve_requests`
    arguments : arguments of ``serve``, as Python source
    max_requests : number of requests after which a new process starts, because memory use grows
    """

    def __init__(self, module: str, arguments: str, max_requests: int) -> None:
        self._module, self._arguments, self._max_requests = module, arguments, max_requests
        self._process: subprocess.Popen[bytes] | None = None
        self._n_requests = 0

    def send(self, request: Mapping[str, object], body: bytes) -> IO[bytes]:
        """Send a page to the child process; return the file from which to read the response.

        Raises
        ------
        OSError
            If the process has ended.
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
        """Start the child process if no child process is running.

        Raises
        ------
        UserError
            If the process reports a problem that the user can solve.
        WorkerError
            If the process cannot start.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()  # the process may have been killed from outside
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
        """Kill the child process, even while another thread waits for its response."""
        process = self._process  # another thread may set the attribute to None
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """Kill the child process and wait until the process has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._n_requests = 0

    @property
    def _name(self) -> str:
        return f"the child process of {self._module}"

    def _raise_start_error(self, answer: bytes, errors: IO[bytes]) -> NoReturn:
        self.stop()
        if answer.startswith(_REFUSED):
            raise UserError(json.loads(answer.removeprefix(_REFUSED)))
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _ERROR_TAIL_BYTES))
        lines = errors.read().decode(errors="replace").strip().splitlines()
        frames = [number for number, line in enumerate(lines) if line.startswith(" ")]
        cause = " ".join(lines[frames[-1] + 1 if frames else 0 :])
        raise WorkerError(f"{self._name} cannot start: {cause or 'it ended without a message'}")


def serve_requests(
    respond: Callable[[dict[str, Any], bytes], Iterable[bytes]],
    max_seconds: float,
    check_setup: Callable[[], str] = str,
) -> None:
    """Answer requests in a child process, until the input ends or a page takes too long.

    The child process ignores signals, because the parent process handles signals and ends the
    child process.

    Parameters
    ----------
    respond : returns the lines of the answer to a request
    max_seconds : seconds of processor time for a page, after which the process ends
    check_setup : called at the start; returns a problem that the user can solve, or an empty text
    """
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    text = check_setup()
    answers.write(_REFUSED + json.dumps(text).encode() + b"\n" if text else _STARTED)
    answers.flush()
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)  # discards further warnings of libraries
    while line := requests.readline():
        request = json.loads(line)
        body = requests.read(request.pop("size"))
        signal.setitimer(signal.ITIMER_PROF, max_seconds)  # SIGPROF ends the process
        lines = respond(request, body)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        answers.writelines(lines)
        answers.flush()


class ParserProcess:
    """Parses pages in a child process that starts with the first page and ends at `close`.

    The parser can be used from any thread. Pages are parsed one at a time.

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

    def parse(self, body: bytes, url: str, **known: Any) -> PageView:
        """Parse a page, in the child process if the parse time can be long."""
        with suppress(ParseLimitError):
            return parse_page(body, url, **known, max_cost=ParseCost.LARGE)
        return self.parse_page(body, url, **known)

    def parse_page(
        self,
        body: bytes,
        url: str,
        *,
        encoding: str | None = None,
        robots: Sequence[str] = (),
        references: Sequence[str] = (),
        agent: str = DEFAULT_AGENT,
    ) -> PageView:
        """Run `focuscrawl.page.parse_page` in the child process, and return the parsed page.

        Raises
        ------
        ParseLimitError
            If the page takes too long or too much memory, or `close` was called.
        WorkerError
            If the process cannot start.
        """
        request = {"url": url, "encoding": encoding, "robots": [*robots], "agent": agent}
        view = self._request({**request, "references": [*references]}, body)
        assert view is not None
        return view

    def parse_document(self, body: bytes, url: str, kind: str) -> PageView:
        """Return the result of `focuscrawl.page.documents.parse_document` in the child process.

        Raises
        ------
        UnreadableError
            If the document cannot be parsed.
        """
        view = self._request({"url": url, "kind": kind}, body)
        if view is None:
            raise UnreadableError
        return view

    def close(self) -> None:
        """Kill the child process, even during parsing; after that, no new process is started."""
        self._closed.set()
        self._server.kill()
        with self._lock:
            self._server.stop()

    def _request(self, request: Mapping[str, object], body: bytes) -> PageView | None:
        with self._lock:
            try:
                if not self._closed.is_set():
                    self._server.start()
                if self._closed.is_set():  # `close` may have been called during the start
                    raise EOFError
                answers = self._server.send(request, body)
                readable = answers.readline()
                if readable not in (_READABLE, _UNREADABLE):
                    raise EOFError
                return unpack_view(answers) if readable == _READABLE else None  # type: ignore[arg-type]  # a BufferedReader
            except WorkerError:
                if not self._closed.is_set():  # otherwise `close` killed the process
                    raise
                raise ParseLimitError from None
            except (EOFError, OSError, ValueError):  # the process has ended
                self._server.stop()
                raise ParseLimitError from None


@cache
def shared_parser() -> ParserProcess:
    """Return the parser that all code outside of crawls shares."""
    parser = ParserProcess(MAX_SECONDS)
    atexit.register(_close, parser, os.getpid())
    return parser


os.register_at_fork(
    after_in_child=shared_parser.cache_clear
)  # a forked process needs its own parser


def _close(parser: ParserProcess, owner: int) -> None:
    if os.getpid() == owner:
        parser.close()


def serve(max_seconds: float) -> None:
    """Parse the pages on standard input, in the child process of a `ParserProcess`."""
    serve_requests(_answer, max_seconds)


def _answer(request: dict[str, Any], body: bytes) -> Iterable[bytes]:
    if "kind" not in request:
        return chain([_READABLE], pack_view(parse_page(body, **request)))
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
    """Return the size of the address space of this process in bytes; None if not on Linux."""
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * resource.getpagesize()
    return None
