"""Looks for inputs that cost too much: changes those that cost the most so far."""

from __future__ import annotations

import gzip
import re
import time
from hashlib import blake2b
from pathlib import Path
from random import Random

from . import CORPUS, FOUND, WORK
from .costs import Cost, Scales
from .growth import grown
from .seeds import SEEDS, WORDS
from .targets import COSTS

_KEPT = 16  # the costliest in time, and as many in memory
_SMALL = 1 << 14  # bytes that are added to a length: what every input takes makes none the worst
_SLOW = 5  # times slower than where searches are run, the machine of a test may be
_FRESH = 0.25  # share of tries that begin with a seed


class Search:
    """A search that can be gone on with: what it keeps is in `WORK`.

    Parameters
    ----------
    name : of a target
    random_state : seed of everything random
    """

    def __init__(self, name: str, random_state: int) -> None:
        self.name = name
        self._target, self._limit = COSTS[name]
        self._seeds = SEEDS[name]
        self._scales = Scales(self._target)
        self._rng = Random(random_state)
        self._best: dict[bytes, Cost] = {}
        self._folder = WORK / f"{name}-costs"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.executions = 0
        self.finds: dict[str, bytes] = {}  # by what is wrong

    def run(self, seconds: float) -> str:
        """Search for so long; return what there is to say.

        The first time all that is kept is tried, however long that takes.
        """
        until = time.monotonic() + seconds
        if not self._best:
            for data in [*self._seeds, *read_all(CORPUS / self.name), *read_all(self._folder)]:
                self._try(data)
        while time.monotonic() < until:
            pool = list(self._best)
            fresh = self._rng.random() < _FRESH
            parent = self._rng.choice(self._seeds if fresh else pool)
            self._try(grown(parent, [*pool, *self._seeds], WORDS[self.name], self._rng))
        for path in self._folder.iterdir():
            path.unlink()
        for data in self._best:
            write(self._folder, data)
        time_, memory = (max(self._best.items(), key=key) for key in (_time, _memory))
        return (
            f"{self.name}-costs: {self.executions:,} executions; worst "
            f"{_time(time_) * 1e6:.2f} µs and {_memory(memory):,.0f} bytes of memory a byte "
            f"({time_[1].seconds:.2f} s for {len(time_[0]):,}, "
            f"{memory[1].memory >> 20} MiB for {len(memory[0]):,}); {len(self.finds)} finds"
        )

    def _try(self, data: bytes) -> None:
        cost = self._weigh(data)
        if cost.failure is None and self._limit.excess(data, cost) is not None:
            cost = min(cost, self._weigh(data), self._weigh(data))  # a busy machine
        excess = self._limit.excess(data, cost)
        if excess is not None:
            self._found(data, excess)
            return
        self._best[data] = cost
        if len(self._best) > 4 * _KEPT:
            items = list(self._best.items())
            best = [sorted(items, key=key)[-_KEPT:] for key in (_time, _memory)]
            self._best = dict(best[0] + best[1])

    def _found(self, data: bytes, excess: str) -> None:
        """Keep a find, the smallest of its kind."""
        kind = re.sub(r"[\d.,]+", "0", excess.strip().splitlines()[-1])
        before = self.finds.get(kind)
        if before is not None and len(before) <= len(data):
            return
        self.finds[kind] = data
        folder = FOUND / f"{self.name}-costs"
        if before is not None:
            path_of(folder, before).unlink(missing_ok=True)
        print(f"{self.name}-costs: {write(folder, data)}: {excess}", flush=True)  # noqa: T201

    def _weigh(self, data: bytes) -> Cost:
        self.executions += 1
        return self._scales.weigh(data)


def check_all(name: str) -> str | None:
    """Say what is wrong with the costs of the inputs of a target that are kept; None: nothing."""
    target, limit = COSTS[name]
    limit = limit._replace(microseconds=_SLOW * limit.microseconds)
    scales = Scales(target)
    kept = [*SEEDS[name], *read_all(CORPUS / name), *read_all(FOUND / f"{name}-costs")]
    for data in kept:
        excess = limit.excess(data, min(scales.weigh(data) for _ in range(2)))
        if excess is not None:
            return f"{data[:200]!r}...: {excess}"
    return None


def read_all(folder: Path) -> list[bytes]:
    """Return the inputs that are kept in a folder."""
    return [gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("*.gz"))]


def write(folder: Path, data: bytes) -> Path:
    """Keep an input, packed: most are one thing many times over."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(folder, data)
    path.write_bytes(gzip.compress(data, mtime=0))
    return path


def path_of(folder: Path, data: bytes) -> Path:
    """Return where an input is kept."""
    return folder / f"{blake2b(data, digest_size=8).hexdigest()}.gz"


def _time(item: tuple[bytes, Cost]) -> float:
    return item[1].seconds / (len(item[0]) + _SMALL)


def _memory(item: tuple[bytes, Cost]) -> float:
    return item[1].memory / (len(item[0]) + _SMALL)
