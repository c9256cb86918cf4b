"""What an input costs, in processor time and memory, and how much it may.

Each is tried in a process of its own, forked from this one: so it can be ended wherever it hangs,
in a library of C as well, and its memory is its own.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import traceback
from collections.abc import Callable
from typing import NamedTuple

DEADLINE = 10.0  # seconds of processor time
_PATIENCE = 20  # times as many seconds of any time, for what waits for ever
_MEMORY = 4 << 30  # bytes of address space beyond what is there
_FREE_SECONDS = 0.5
_FREE_BYTES = 64 << 20


class Cost(NamedTuple):
    """What an input took, beyond what an empty one takes.

    Attributes
    ----------
    seconds : processor time
    memory : bytes, the most that was held at once
    failure : how it went wrong, if it did
    """

    seconds: float
    memory: int
    failure: str | None = None


class Limit(NamedTuple):
    """What a byte of input may cost; half a second and 64 MiB are free.

    Attributes
    ----------
    microseconds : of processor time
    memory : bytes
    """

    microseconds: float
    memory: float

    def excess(self, data: bytes, cost: Cost) -> str | None:
        """Say what is wrong with the cost of an input; None if nothing is."""
        if cost.failure is not None:
            return cost.failure
        if cost.seconds > _FREE_SECONDS + self.microseconds * len(data) / 1e6:
            return f"{cost.seconds:.2f} s for {len(data):,} bytes"
        if cost.memory > _FREE_BYTES + self.memory * len(data):
            return f"{cost.memory >> 20:,} MiB for {len(data):,} bytes"
        return None


class Scales:
    """Measures what inputs cost one function."""

    def __init__(self, target: Callable[[bytes], None]) -> None:
        self._target = target
        self._empty = Cost(0.0, 0)
        tries = [self.weigh(b"") for _ in range(5)]
        self._empty = Cost(min(c.seconds for c in tries), min(c.memory for c in tries))

    def weigh(self, data: bytes) -> Cost:
        """Return what an input costs."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _run(self._target, data, writer)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
            said = pipe.read()
        _, status, usage = os.wait4(pid, 0)
        failure = said or None
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            late = name in {"SIGPROF", "SIGALRM"}
            failure = f"not done after {DEADLINE:.0f} s" if late else f"ended by {name}"
        return Cost(
            usage.ru_utime + usage.ru_stime - self._empty.seconds,
            usage.ru_maxrss * 1024 - self._empty.memory,
            failure,
        )


def _run(target: Callable[[bytes], None], data: bytes, writer: int) -> None:
    """Try an input, in the child; never returns."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process, whatever it does
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, DEADLINE)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE * DEADLINE)
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - as little as can be
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + _MEMORY, -1))
    logging.disable()
    code = 0
    try:
        target(data)
    except BaseException:
        code = 1
        os.write(writer, traceback.format_exc(limit=-4).encode()[-4000:])
    os._exit(code)
