"""Texts extracted in processes of their own, each ended when a page takes too long."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import date
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from focuscrawl.errors import UserError, WorkerError
from focuscrawl.page.apart import Server, say_started
from focuscrawl.text.extraction import EXTRACTORS, PageText, extract_text
from focuscrawl.text.pdf import extract_pdf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST = 20.0  #: seconds of processor time for a page
MEMORY = 2 << 30  #: bytes that a process may have
_MOST = 500  # pages; after so many a new process begins, with little memory
_AHEAD = 4  # pages under way or waiting, for each process

_WARMING = b"<p>" + b"What a library loads first is no work of the first page. " * 5


class RawPage(NamedTuple):
    """A page as it came: HTML, with the encoding that its Content-Type has, or PDF."""

    url: str
    body: bytes
    encoding: str | None
    pdf: bool = False


class ExtractorApart:
    """Extracts texts of many pages at once; see `extract_text`.

    Parameters
    ----------
    extractor : one of `EXTRACTORS`
    processes : how many
    longest : seconds of processor time for a page
    memory : bytes that a process may have
    niceness : how far the processes stand back behind others, see nice(1)
    """

    def __init__(
        self,
        extractor: str = EXTRACTORS[0],
        processes: int = 1,
        *,
        longest: float = LONGEST,
        memory: int = MEMORY,
        niceness: int = 0,
    ) -> None:
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        limits = f"longest={longest!r}, memory={memory!r}, niceness={niceness!r}"
        self._workers = [_Worker(extractor, limits) for _ in range(processes)]
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(processes, "text")
        self._ahead = _AHEAD * processes
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start a process, which is done with the first page otherwise; errors as `extract`."""
        worker = self._idle.get()
        try:
            worker.start()
        finally:
            self._idle.put(worker)

    def extract(self, pages: Iterable[RawPage]) -> Iterator[PageText | None]:
        """Yield the texts of pages in their order; None: it took too long, or too much memory.

        Raises
        ------
        UserError
            What extracts texts is not installed.
        WorkerError
            A process cannot start, or lacks something that pages need.
        """
        waiting = []
        for page in pages:
            waiting.append(self._threads.submit(self.extract_page, page))
            if len(waiting) >= self._ahead:
                yield waiting.pop(0).result()
        for each in waiting:
            yield each.result()

    def extract_page(self, page: RawPage) -> PageText | None:
        """Return the text of a page, when a process has time for it; see `extract`.

        Any thread may ask. None, too, if this is closed meanwhile.
        """
        worker = self._idle.get()
        try:
            return None if self._closed else worker.extract(page)
        except WorkerError:
            if self._closed:  # then it was killed
                return None
            raise
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the processes, with whatever they are at."""
        self._closed = True
        for worker in self._workers:
            worker.kill()
        idle = [self._idle.get() for _ in self._workers]  # no thread is at one any more
        for worker in idle:
            worker.end()
            self._idle.put(worker)
        self._threads.shutdown(cancel_futures=True)


class _Worker(Server):
    def __init__(self, extractor: str, limits: str) -> None:
        super().__init__("focuscrawl.text.apart", limits)
        self._extractor = extractor
        self._done = 0

    def extract(self, page: RawPage) -> PageText | None:
        questions, answers = self.start()
        asked = {"url": page.url, "pdf": page.pdf}
        if not page.pdf:
            asked |= {"encoding": page.encoding, "extractor": self._extractor}
        try:
            head = json.dumps({"size": len(page.body), **asked}).encode()
            questions.write(head + b"\n" + page.body)
            questions.flush()
            said = json.loads(answers.readline())
        except (OSError, ValueError):  # it has ended
            self.end()
            return None
        self._done += 1
        if self._done % _MOST == 0:
            self.end()
        if "refused" in said:
            raise UserError(said["refused"])
        if "lacking" in said:
            raise WorkerError(f"no text can be taken: {said['lacking']}")
        return None if said["text"] is None else _unpacked(said["text"])


def serve(*, longest: float, memory: int, niceness: int) -> None:
    """Extract texts of pages from standard input, until it ends or one takes too long.

    Parameters
    ----------
    longest, memory, niceness : see `ExtractorApart`
    """
    os.nice(niceness)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # those who ask see to signals
    resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
    refused = ""
    try:
        extract_text(_WARMING, "http://a.example/")
    except UserError as error:
        refused = str(error)
    say_started(refused)
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := asked.readline():
        page = json.loads(line)
        body = asked.read(page.pop("size"))
        signal.setitimer(signal.ITIMER_PROF, longest)  # SIGPROF ends the process
        said: dict[str, Any] = {"text": None}
        try:
            extract = extract_pdf if page.pop("pdf") else extract_text
            said["text"] = asdict(extract(body, **page))
        except UserError as error:
            said = {"refused": str(error)}
        except ImportError as error:  # no page's fault, whichever it came up with
            said = {"lacking": f"{type(error).__name__}: {error}"}
        except Exception:  # a page that no library can read is a page without text
            said["text"] = None
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        answers.write(json.dumps(said, default=str).encode() + b"\n")
        answers.flush()


def _unpacked(said: dict[str, Any]) -> PageText:
    published = said.pop("date")
    return PageText(**said, date=None if published is None else date.fromisoformat(published))
