"""Whole crawls of hosts that answer anything: a state machine of servers and of a crawl's folder.

Each host but the last says what was drawn for it, another thing each time it is asked; the last
one is as it should be. The crawl is a real one, of Scrapy, in a process of its own, stopped by its
budget and resumed.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)
from integration.badweb import Measured, explore
from integration.impatience import impatient

from . import WORK
from .answers import answers
from .raw_server import NOTHING, Answer, RawServer, page

N_BAD = 8  # hosts
GOOD = N_BAD  # number of the one that is as it should be
N_GOOD = 6  # pages, each of which leads to the next
_STEP = 8  # fetches until a crawl is stopped
_ALL = 400
_MEMORY = 600 << 20  # bytes; a crawl of the good host alone holds 123 MB
_PATIENCE = {
    "RETRY_TIMES": 1,
    "FOCUSCRAWL_BACKOFF": 0.05,
    "FOCUSCRAWL_BACKOFF_MAX": 0.1,
    "CONCURRENT_REQUESTS": 32,
}


@dataclass
class Tally:
    """How many crawls there were, and the most memory that one held, in bytes."""

    crawls: int = 0
    peak: int = 0


TALLY = Tally()


class AnyAnswer(RuleBasedStateMachine):
    """Answers to a crawl."""

    def __init__(self) -> None:
        super().__init__()
        self._planned: dict[tuple[int, str], list[Answer]] = {}
        self._resources = ExitStack()
        self._server = self._resources.enter_context(RawServer(self._answer, N_BAD + 1))
        folder = self._resources.enter_context(tempfile.TemporaryDirectory())
        self._folder = Path(folder) / "crawl"
        self._order: list[tuple[int, str]] = []
        self._said = False

    def _answer(self, host: int, path: str, before: int) -> Answer:
        if host == GOOD:
            number = int(path[2:]) if path.startswith("/g") else None
            return NOTHING if number is None else page(f"good {number}", f"/g{number + 1}")
        planned = self._planned.get((host, "/" if path != "/robots.txt" else path))
        if planned:
            return planned[before % len(planned)]
        return NOTHING if path == "/robots.txt" else page(f"{host} {path}", "/a", "/b")

    @rule(data=st.data(), hosts=st.sets(st.integers(0, N_BAD - 1), min_size=1))
    def say(self, data: st.DataObject, hosts: set[int]) -> None:
        """Hosts have something to say from now on; at each request the next of it."""
        for host in sorted(hosts):
            path = data.draw(st.sampled_from(["/"] * 5 + ["/robots.txt"]))
            self._planned[host, path] = data.draw(st.lists(answers(), min_size=1, max_size=3))
        self._said = True

    @precondition(lambda self: self._said)
    @rule()
    def crawls_on(self) -> None:
        """Begin the crawl, or go on with it, until a few more pages are fetched."""
        self._said = False
        self._crawl(len(self._order) + _STEP)

    def teardown(self) -> None:
        """Crawl to the end: nothing that was said may have kept the crawl from the good pages."""
        with self._resources:
            self._crawl(_ALL)
            good = [url for _, url in self._order if url.startswith(self._server.origins[GOOD])]
            wanted = {f"{self._server.origins[GOOD]}/g{n}" for n in range(N_GOOD)}
            assert wanted <= set(good), f"not fetched: {sorted(wanted - set(good))}"

    def _crawl(self, budget: int) -> None:
        origins = self._server.origins
        seeds = [f"{origin}/" for origin in origins[:N_BAD]] + [f"{origins[GOOD]}/g0"]
        patience = _PATIENCE | impatient(3, *(f"{origin}/" for origin in origins[:N_BAD]))
        run = explore(self._folder, ",".join(seeds), budget=budget, **patience)
        TALLY.crawls += 1
        TALLY.peak = max(TALLY.peak, run.peak)
        self._check(run, budget)

    def _check(self, run: Measured, budget: int) -> None:
        """Assert that the process lived, and that its store is whole and has what it had."""
        assert run.returncode == 0, run.stderr[-3000:]
        assert "Traceback" not in run.stderr, run.stderr[-5000:]
        assert run.peak < _MEMORY, f"{run.peak >> 20} MiB"
        with closing(sqlite3.connect(self._folder / "crawl.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        order = run.kept.order
        assert [seq for seq, _ in order] == list(range(1, len(order) + 1)), "gaps"
        assert order[: len(self._order)] == self._order, "what was fetched before has changed"
        assert len(order) <= budget, f"{len(order)} fetches of {budget}"
        odd = "SELECT status FROM pages WHERE status <> 0 AND status NOT BETWEEN 100 AND 599"
        assert not run.kept.query(odd), f"statuses {run.kept.query(odd)}"
        self._order = order


def run(machine: type[AnyAnswer], examples: int, steps: int, **more: object) -> None:
    """Run a machine a number of times."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            **more,  # type: ignore[arg-type]
        ),
    )


def main(seconds: float) -> int:
    """Search for so long, or until something is found; what was found is tried first."""
    until = time.monotonic() + seconds
    database = DirectoryBasedExampleDatabase(WORK / "live")
    finds = 0
    try:
        while time.monotonic() < until and not finds:
            run(AnyAnswer, 3, 20, database=database, print_blob=True)
    except Exception as error:
        finds = 1
        print("".join(getattr(error, "__notes__", [])))  # noqa: T201
        print(f"live: {type(error).__name__}: {error}")  # noqa: T201
    held = f"at most {TALLY.peak >> 20} MiB held"
    print(f"live: {TALLY.crawls:,} executions; {held}; {finds} finds")  # noqa: T201
    return finds
