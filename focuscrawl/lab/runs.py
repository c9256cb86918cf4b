"""The runs of a study: each one crawl in a process of its own, or kept from an earlier call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focuscrawl.report.measures import load_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from focuscrawl.lab.study import Contender


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
    def done(self) -> bool:
        """True if an earlier call finished it."""
        return self.fetches.exists()

    def crawl(self) -> None:
        """Crawl, and keep one row a fetch.

        Raises
        ------
        RunError
            A process ended with another exit code than 0.
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
        pages = load_pages(self.folder / "crawl").reset_index()
        unfinished = self.fetches.with_suffix(".part")
        pages.to_parquet(unfinished)
        unfinished.replace(self.fetches)


class RunError(Exception):
    """A run ended badly; the message is the last of what its process said."""


def crawl_all(
    runs: Sequence[Run], processes: int, *, keep: bool = False
) -> Iterator[tuple[Run, RunError | None]]:
    """Crawl what is not done yet, `processes` at a time; yield each run as it ends.

    Of a crawl that is done only its fetches are kept, unless `keep`.
    """
    with ThreadPoolExecutor(processes) as pool:
        under_way = {pool.submit(run.crawl): run for run in runs if not run.done}
        for ended in as_completed(under_way):
            run, error = under_way[ended], ended.exception()
            if error is not None and not isinstance(error, RunError):
                raise error
            if error is None and not keep:
                shutil.rmtree(run.folder / "crawl")
            yield run, error


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
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RunError(said[-1] if said else f"exit code {done.returncode}")
