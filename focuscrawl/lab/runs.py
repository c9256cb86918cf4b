"""The runs of a study: each one crawl in a process of its own, or kept from an earlier call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focuscrawl import __version__
from focuscrawl.report.measures import load_pages
from focuscrawl.report.opening import open_crawl
from focuscrawl.report.stopping import stop_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from focuscrawl.lab.study import Contender

_TERMS = "run.json"


@dataclass(frozen=True)
class Run:
    """One crawl of a study.

    Attributes
    ----------
    web, recording, critic, topic, draw, budget, contender : what is crawled and how
    seeds : start URLs
    folder : where it is kept: ``fetches.parquet`` once it is done, the crawl itself in ``crawl/``
    """

    web: str
    recording: str
    critic: str
    topic: str
    draw: int
    budget: int
    seeds: tuple[str, ...]
    contender: Contender
    folder: Path

    @property
    def name(self) -> str:
        """How the run is named in messages."""
        return f"{self.web} {self.topic}, draw {self.draw}, {self.contender.label}"

    @property
    def fetches(self) -> Path:
        """Where its result is."""
        return self.folder / "fetches.parquet"

    @property
    def terms(self) -> dict[str, Any]:
        """What its result depends on; a result under other terms is none."""
        return {
            "recording": self.recording,
            "critic": self.critic,
            "topic": self.topic,
            "seeds": list(self.seeds),
            "budget": self.budget,
            "random_state": self.draw,
            "strategy": self.contender.strategy,
            "options": self.contender.options,
            "focuscrawl": __version__,
        }

    @property
    def done(self) -> bool:
        """True if an earlier call finished it, under the same terms."""
        try:
            kept = json.loads((self.folder / _TERMS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return self.fetches.exists() and kept == self.terms

    def crawl(self) -> None:
        """Crawl, and keep one row a fetch.

        Raises
        ------
        RunError
            The process ended with another exit code than 0, or before the crawl was over.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        seeds = self.folder / "seeds.txt"
        seeds.write_text("\n".join(self.seeds), encoding="utf-8")
        arguments = {
            "topic": self.topic,
            "seeds": seeds,
            "critic": self.critic,
            "strategy": self.contender.strategy,
            "budget": self.budget,
            "web": self.recording,
            "crawl_dir": self.folder / "crawl",
            "random_state": self.draw,
        }
        options = json.dumps(self.contender.options)
        _scrapy(
            "crawl",
            "focused",
            *(part for key, value in arguments.items() for part in ("-a", f"{key}={value}")),
            "-s",
            f"FOCUSCRAWL_STRATEGY_OPTIONS={options}",
            "-s",
            "FOCUSCRAWL_PROGRESS=0",
        )
        with closing(open_crawl(self.folder / "crawl")) as store:
            reason = stop_reason(store)
            pages = load_pages(store).reset_index()
        if reason not in ("budget", "frontier_empty"):
            raise RunError(f"the crawl ended early: {reason}")
        pages.to_parquet(self.fetches)
        (self.folder / _TERMS).write_text(json.dumps(self.terms), encoding="utf-8")


class RunError(Exception):
    """A run ended badly; the message is the last of what its process said."""


def crawl_all(
    runs: Sequence[Run], processes: int, *, keep: bool = False
) -> Iterator[tuple[Run, RunError | None]]:
    """Crawl what is not done yet, `processes` at a time; yield each run as it ends.

    Of a crawl that is done only its fetches are kept, unless `keep`.
    """
    pool = ThreadPoolExecutor(processes)
    try:
        under_way = {pool.submit(run.crawl): run for run in runs if not run.done}
        for ended in as_completed(under_way):
            run, error = under_way[ended], ended.exception()
            if error is not None and not isinstance(error, RunError):
                raise error
            if error is None and not keep:
                shutil.rmtree(run.folder / "crawl")
            yield run, error
    finally:
        pool.shutdown(cancel_futures=True)  # interrupted, nothing more is begun


def _scrapy(*arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"SCRAPY_SETTINGS_MODULE": "focuscrawl.settings"},
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
        errors = [line for line in said if " ERROR " in line]
        raise RunError((errors or said)[-1])
