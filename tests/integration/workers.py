"""Several workers on one crawl, as processes, and what must be true of what they leave."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any, Self

import psycopg

from .running import ROOT, environment, waiting, words
from .warm import WarmProcess

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Workers:
    """Processes of ``scrapy crawl focused`` on one crawl; killed at the end of the block.

    Parameters
    ----------
    url : of the crawl
    folder : for the workers' own folders and their output
    arguments : given with ``-a``
    options : further ones
    up_to : pages, excluded ones among them, after which each of them waits until `go_on`; the
        others may have to wait for what it has then; None: it does not
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        arguments: Mapping[str, object],
        *options: str,
        up_to: int | None = None,
    ) -> None:
        self.url = url
        self.folder = folder
        self.arguments = {**arguments, "store": url}
        self._go_on = folder / "go-on"
        held = () if up_to is None else waiting(self._go_on, up_to)
        self.options = (*options, *held)
        self.processes: list[WarmProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def start(self, *options: str, **changed: object) -> WarmProcess:
        """Start a worker, with more options or other arguments than the others."""
        number = len(self.processes)
        given = {**self.arguments, **changed}
        with (self.folder / f"{number}.log").open("wb") as log:
            line = words(self.folder / f"worker-{number}", *self.options, *options, **given)
            told = log.fileno()
            process = WarmProcess(line, cwd=ROOT, env=environment(), stdout=told, stderr=told)
        self.processes.append(process)
        return process

    def go_on(self) -> None:
        """Let all of them fetch more than `up_to`."""
        self._go_on.touch()

    def log(self, number: int) -> str:
        """Return what a worker has said."""
        return (self.folder / f"{number}.log").read_text(encoding="utf-8")

    def wait(self, timeout: float) -> list[int]:
        """Wait for all to end; return their exit codes."""
        until = time.monotonic() + timeout
        return [each.wait(max(0.1, until - time.monotonic())) for each in self.processes]

    def wait_for(self, pages: int, timeout: float = 600.0) -> int:
        """Wait until so many pages are recorded, or nobody works; return how many there are."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            try:
                fetched: int = self.query("SELECT fetched FROM crawl")[0][0]
            except (psycopg.Error, IndexError):
                fetched = 0
            if fetched >= pages or all(each.poll() is not None for each in self.processes):
                return fetched
            time.sleep(0.1)
        raise TimeoutError(f"{fetched} of {pages} pages")

    def wait_until(self, sql: str, found: object, timeout: float = 600.0) -> None:
        """Wait until the store answers a question as expected, or nobody works."""
        until = time.monotonic() + timeout
        while self.query(sql) != [(found,)] and any(
            each.poll() is None for each in self.processes
        ):
            if time.monotonic() > until:
                raise TimeoutError(sql)
            time.sleep(0.1)

    def wait_until_said(self, number: int, words: str, timeout: float) -> None:
        """Wait until a worker has said something, or has ended."""
        until = time.monotonic() + timeout
        while words not in self.log(number) and self.processes[number].poll() is None:
            if time.monotonic() > until:
                raise TimeoutError(words)
            time.sleep(0.1)

    def kill(self, number: int) -> None:
        """End a worker at once, as a power cut would."""
        self.processes[number].send_signal(signal.SIGKILL)
        self.processes[number].wait()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the store."""
        return query(self.url, sql)


def query(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Ask the store of a crawl, or change it and return what ``RETURNING`` says."""
    bare, _, name = url.partition("?crawl=")
    options = f"-csearch_path={name or 'public'}"
    with psycopg.connect(bare, options=options, connect_timeout=60) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def assert_whole(url: str, budget: int) -> None:
    """Check that the budget was kept, nothing was fetched twice or lost, and by the right one."""
    ((pages, urls, first, last),) = query(
        url, "SELECT count(*), count(DISTINCT url), min(seq), max(seq) FROM page"
    )
    assert (pages, urls, first, last) == (budget, budget, 1, budget)
    ((fetched, granted),) = query(url, "SELECT fetched, granted FROM crawl")
    assert (fetched, granted) == (budget, budget)
    assert query(url, "SELECT id FROM url WHERE state = 1 EXCEPT SELECT url FROM page") == []
    assert query(url, "SELECT url FROM page EXCEPT SELECT id FROM url WHERE state = 1") == []
    # every link leads to a URL that is known, and is evidence on that URL's shard
    unknown = "NOT EXISTS (SELECT FROM url WHERE id = target)"
    assert query(url, f"SELECT count(*) FROM link WHERE {unknown}") == [(0,)]
    assert lost_links(url) == 0
    assert strangers(url) == []


def lost_links(url: str) -> int:
    """Return how many links are not among the evidence, or the other way round."""
    ((links,),) = query(url, "SELECT count(*) FROM link")
    ((evidence,),) = query(  # but for URLs that come first wherever they are
        url,
        "SELECT coalesce(sum(length(targets) / 8), 0) FROM evidence "
        "WHERE scores <> '\\x000000000000f07f'::bytea",
    )
    return abs(int(links) - int(evidence))


def strangers(url: str) -> list[tuple[Any, ...]]:
    """Return the fetches by a worker that did not hold the lease of the host's shard then."""
    return query(
        url,
        """
        SELECT p.seq, p.worker, p.fetched_at FROM page p
        JOIN url u ON u.id = p.url
        WHERE NOT EXISTS (
            SELECT 1 FROM lease l WHERE l.worker = p.worker
            AND l.shard = u.host % (SELECT value::int FROM meta WHERE key = 'shards')
            AND p.fetched_at::timestamptz >= l.taken_at
            AND (l.released_at IS NULL OR p.fetched_at::timestamptz <= l.released_at))""",
    )
