"""Processes of Scrapy's and ours that are forked from one which has imported what they need.

A short crawl takes a tenth of a second, and its imports most of a second. Each process here is one
of its own: the command with its reactor, signals, files, environment and exit code. It only
begins where all is imported, and ends, when all threads and all that was to be done at the exit
have, without taking that apart. So does what it starts as ``sys.executable``, such as the crawl of
a command, which parses pages in a third: `forked_python` stands in for Python. Texts have the same
hashes in all that were forked: of two crawls that have to be alike, one is started anew, and so is
whatever is about the beginning itself.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import multiprocessing
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from pkgutil import iter_modules
from subprocess import CompletedProcess
from tempfile import TemporaryFile, mkdtemp
from types import ModuleType
from typing import IO, NamedTuple, Self

from .forked_python import NUMBER, OPTIONS, ask

TESTS = Path(__file__).resolve().parents[1]
LONG = 600.0  # seconds after which a process hangs
_END = 60.0  # seconds in which a server without a request ends
_SETTINGS = "focuscrawl.settings"
_PROGRAMS = {
    "scrapy": ("scrapy.cmdline", "execute"),
    "focuscrawl": ("focuscrawl.cli.main", "main"),
}
#: what is imported beforehand, beside the components of the settings
_MODULES = (
    *("scrapy.cmdline", "scrapy.core.downloader.handlers", "scrapy.statscollectors"),
    "twisted.internet.asyncioreactor",
    *("focuscrawl.commands.crawl", "focuscrawl.scheduler", "focuscrawl.spiders.focused"),
    *("focuscrawl.engine.lean_settings", "focuscrawl.webs.synthetic"),
    *("focuscrawl.strategies.apprentice_strategy", "focuscrawl.downloadhandlers.live"),
    *("focuscrawl.downloadhandlers.replay", "protego", "scrapy.robotstxt"),
)

#: what is imported beforehand for ``focuscrawl``, when it is first asked for
_OWN_MODULES = (
    *("focuscrawl.cli.main", "focuscrawl.cli.critic_commands", "focuscrawl.cli.report_commands"),
    *("focuscrawl.studio.serving", "uvicorn.protocols.http.h11_impl", "uvicorn.lifespan.on"),
    *("focuscrawl.commands.corpus_command", "pyarrow.parquet", "trafilatura"),
    *("sklearn.linear_model", "sklearn.feature_extraction.text", "sklearn.isotonic"),
    *("sklearn.cluster", "sklearn.decomposition", "sklearn.model_selection", "tokenizers"),
    *("focuscrawl.cli.topic_commands", "focuscrawl.topics.topic_training"),
)


class WarmProcess:
    """A process of ``scrapy`` or ``focuscrawl``, with what is used of `subprocess.Popen`.

    Parameters
    ----------
    words : what is typed after the name of the program
    cwd, env : folder and environment
    stdout, stderr : descriptors that it writes to; stderr: None: `stderr` reads what it says
    forks : what it starts is forked, too, and not started anew
    """

    def __init__(
        self,
        words: list[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: int,
        stderr: int | None = None,
        program: str = "scrapy",
        forks: bool = True,
    ) -> None:
        self.returncode: int | None = None
        self.stderr: IO[str] | None = None
        said = stderr
        if said is None:
            reading, said = os.pipe()
            self.stderr = os.fdopen(reading, encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDONLY)
        request = {"words": [program, *words], "cwd": str(cwd), "env": dict(env), "forks": forks}
        try:
            self._told = ask(_server().path, request, [nothing, stdout, said])
        finally:
            for mine in {nothing, said} - {stderr}:
                os.close(mine)
        self.pid = self._hear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.stderr is not None:
            self.stderr.close()
        self.wait()

    def poll(self) -> int | None:
        """Return the exit code, minus the number of a signal, None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("scrapy", timeout or 0.0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float) -> tuple[None, str]:
        """Read what is said until the end; what hangs is killed."""
        assert self.stderr is not None
        hanging = threading.Timer(timeout, self.kill)
        hanging.daemon = True
        hanging.start()
        try:
            return None, self.stderr.read()
        finally:
            hanging.cancel()
            self.wait(timeout)

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and is about to be said to have
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        self.returncode = self._hear()
        self._told.close()

    def _hear(self) -> int:
        told = self._told.recv(NUMBER.size)
        if not told:
            raise RuntimeError("the process that crawls are forked from has ended")
        return int(NUMBER.unpack(told)[0])


def run(
    words: list[str], *, cwd: Path, env: Mapping[str, str], program: str = "scrapy"
) -> CompletedProcess[str]:
    """Run a program to its end; return what it has said."""
    with TemporaryFile("w+", encoding="utf-8") as out:
        with WarmProcess(words, cwd=cwd, env=env, stdout=out.fileno(), program=program) as process:
            said = process.communicate(LONG)[1]
        out.seek(0)
        return CompletedProcess(words, process.wait(), out.read(), said)


@contextmanager
def forking() -> Iterator[None]:
    """Have what this process starts in the block as ``sys.executable`` forked, too."""
    before = sys.executable
    _use(_server().python)
    try:
        yield
    finally:
        _use(before)


def _use(python: str) -> None:
    sys.executable = python
    multiprocessing.set_executable(python)


class _Server:
    """The process that others are forked from; it ends with this one."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="warm-"))
        self.path = str(self._folder / "socket")
        self.python = _write_python(self._folder)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.path)
            listening.listen(64)
            serve = f"from integration.warm import serve; serve({listening.fileno()})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", serve],
                cwd=TESTS.parent,
                env=os.environ | {"PYTHONPATH": str(TESTS)},
                stdin=subprocess.PIPE,
                pass_fds=[listening.fileno()],
            )

    def close(self) -> None:
        """Have it end, and what it has forked counted among what this process has started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder)


def _write_python(folder: Path) -> str:
    """Write the program that stands in for Python in what is forked."""
    program, asking = folder / "python", TESTS / "integration" / "forked_python.py"
    words = f'"{sys.executable}" -IS "{asking}" "{folder / "socket"}" "$@"'
    program.write_text(f"#!/bin/sh\nexec {words}\n")
    program.chmod(0o700)
    return str(program)


@cache
def _server() -> _Server:
    return _Server()


def close() -> None:
    """End the process that others are forked from, if there is one."""
    if _server.cache_info().currsize:
        _server().close()
        _server.cache_clear()


# in the process that others are forked from --------------------------------------------------


_exit_codes: list[int] = []  # of this process, when it is to end


class _Request(NamedTuple):
    words: list[str]
    cwd: str
    env: dict[str, str]
    files: Sequence[int] = (0, 1, 2)  # numbers of the given files
    session: bool = False  # it leads one
    forks: bool = True


def serve(descriptor: int) -> None:
    """Fork a process for each request; return when nobody is left to ask."""
    atexit.register(_end_at_once)  # the first is called last
    installed = sys.path[1 + len(os.environ["PYTHONPATH"].split(os.pathsep)) :]
    _import_what_crawls_need()
    assert threading.active_count() == 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for those who use it
    with socket.socket(fileno=descriptor) as listening:
        forked_python = str(Path(listening.getsockname()).with_name("python"))
        while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
            channel = listening.accept()[0]
            with channel:
                received = _receive(channel)
                if received is None:
                    continue
                request, files = received
                if request.words[0] != "scrapy":
                    _import_what_commands_need()
                if os.fork() == 0:
                    listening.close()
                    if request.forks:
                        _use(forked_python)
                    _mind(request, files, channel, installed)
                for file in files:
                    os.close(file)
            _count_who_has_ended(os.WNOHANG)
    _count_who_has_ended(0)


def _receive(channel: socket.socket) -> tuple[_Request, list[int]] | None:
    head, files, _, _ = socket.recv_fds(channel, NUMBER.size, 64)
    if not head:
        return None
    with channel.makefile("rb", buffering=0) as file:
        left, text = NUMBER.unpack(head)[0], b""
        while left > len(text):
            text += file.read(left - len(text)) or b""
    return _Request(**json.loads(text)), files


def _count_who_has_ended(options: int) -> None:
    try:
        while os.waitpid(-1, options) != (0, 0):
            pass
    except ChildProcessError:
        pass


def _mind(
    request: _Request, files: list[int], channel: socket.socket, installed: list[str]
) -> None:
    """Fork the process itself, tell its number and in the end its exit code."""
    pid = os.fork()
    if pid == 0:
        channel.close()
        _become(request, files, installed)
    try:
        for file in files:
            os.close(file)
        channel.sendall(NUMBER.pack(pid))
        threading.Thread(target=_pass_on, args=(channel, pid, request), daemon=True).start()
        _, status = os.waitpid(pid, 0)
        channel.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
    finally:
        os._exit(0)


def _pass_on(channel: socket.socket, pid: int, request: _Request) -> None:
    """Send the process the signals that are told, and kill it when nobody is left to tell."""
    told = b"more"
    while told:
        told = channel.recv(NUMBER.size)
        number = NUMBER.unpack(told)[0] if told else signal.SIGKILL
        with suppress(ProcessLookupError):
            (os.killpg if request.session else os.kill)(pid, number)


def _become(request: _Request, files: list[int], installed: list[str]) -> None:
    """Go on as if ``python -m scrapy``, ``focuscrawl`` or ``python`` had been typed."""
    if request.session:
        os.setsid()
    beyond = 1 + max(request.files)
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, beyond) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(aside, request.files, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    own = request.env.get("PYTHONPATH", "").split(os.pathsep)
    current = [request.cwd] if request.words[0] == "scrapy" else []  # no console command has it
    sys.path[:] = [*current, *filter(None, own), *installed]
    sys.argv = request.words
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if request.words[0] == "python":
            _interpret(request.words[1:])
        else:
            module, name = _PROGRAMS[request.words[0]]
            getattr(import_module(module), name)()
        sys.exit()
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        _exit_codes.append(code if isinstance(code, int) else 1)
        raise


def _interpret(words: list[str]) -> None:
    """Do what ``python WORDS`` does; see `forked_python` for words there may be."""
    options = [*takewhile(OPTIONS.__contains__, words)]
    if "-P" not in options and "PYTHONSAFEPATH" not in os.environ:
        sys.path.insert(0, str(Path.cwd()))
    kind, code, *arguments = words[len(options) :]
    sys.argv = [kind, *arguments]
    if kind == "-m":
        runpy.run_module(code, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)


def _end_at_once() -> None:
    """Leave what is imported as it is: to take it apart means to copy it, which costs most."""
    if _exit_codes:
        for file in (sys.stdout, sys.stderr):
            if not file.closed:
                file.flush()
        os._exit(_exit_codes[0])


@cache
def _import_what_commands_need() -> None:
    for module in _OWN_MODULES:
        import_module(module)
    languages = import_module("focuscrawl.critic.languages")
    languages.everyday_words(languages.ENGLISH)  # reads the frequencies of words
    _ = import_module("focuscrawl.critic.page_vectors").load_word_vectors()._tokenizer
    gc.collect()
    gc.freeze()


def _import_what_crawls_need() -> None:
    for module in _MODULES:
        import_module(module)
    for package in map(import_module, ("scrapy.commands", "focuscrawl.commands")):  # all are read
        for found in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(found.name)
    defaults, ours = import_module("scrapy.settings.default_settings"), import_module(_SETTINGS)
    for kind in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS", "ITEM_PIPELINES"):
        for path in (*getattr(defaults, f"{kind}_BASE"), *getattr(ours, kind, ())):
            if "remote_control.RemoteControl" not in path or path.startswith("focuscrawl."):
                import_module(path.rpartition(".")[0])
    import_module("focuscrawl.page.words").tokenize(["é"])  # makes its table of all letters
    assert "twisted.internet.reactor" not in sys.modules, "each process chooses its own"
    gc.collect()
    gc.freeze()  # nor does a collection copy it
