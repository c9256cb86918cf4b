"""Watch a crawl from outside: memory, descriptors, pages, as it goes on."""

from __future__ import annotations

import csv
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from integration.running import ROOT, Kept, command, environment, waiting
from tqdm import tqdm


class Sample(NamedTuple):
    """One look at the process and its store."""

    seconds: float
    cpu_seconds: float
    pages: int
    urls: int
    resident_mb: float
    descriptors: int
    threads: int


def soak(folder: Path, budget: int, every: float, **arguments: object) -> list[Sample]:
    """Crawl to the end; return what it looked like every so many seconds.

    The samples are also in ``soak.csv`` beside the folder, as soon as they are taken. After three
    tenths of its pages it waits until it was looked at.
    """
    go_on = folder.with_name("go-on")
    samples: list[Sample] = []
    log = folder.with_suffix(".log")
    given = {"FOCUSCRAWL_PROGRESS": 0, **waiting(go_on, 3 * budget // 10), **arguments}
    crawl = command(folder, **given, budget=budget)
    with (
        log.open("wb") as said,
        subprocess.Popen(
            crawl, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said
        ) as process,
        folder.with_name("soak.csv").open("w", newline="", encoding="utf-8") as file,
        tqdm(total=budget, unit=" pages", smoothing=0.05) as bar,
    ):
        rows = csv.writer(file)
        rows.writerow(Sample._fields)
        watched = psutil.Process(process.pid)
        began = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(every)
                sample = _look(watched, Kept(folder), time.monotonic() - began)
                if sample is not None:
                    samples.append(sample)
                    rows.writerow(sample)
                    file.flush()
                    bar.update(sample.pages - bar.n)
                    if sample.pages > budget / 4:
                        go_on.touch()
        finally:
            process.kill()
    assert process.returncode == 0, log.read_text(errors="replace")[-3000:]
    return samples


def _look(watched: psutil.Process, kept: Kept, seconds: float) -> Sample | None:
    if not (kept.folder / "crawl.db").exists():
        return None
    ((pages,),) = kept.query("SELECT coalesce(max(seq), 0) FROM page")
    ((urls,),) = kept.query("SELECT coalesce(max(id), 0) FROM url")
    try:
        with watched.oneshot():
            if not watched.memory_info().rss:  # its memory is gone, it is not yet
                return None
            used = watched.cpu_times()
            return Sample(
                seconds,
                used.user + used.system,
                pages,
                urls,
                watched.memory_info().rss / 1e6,
                watched.num_fds(),
                watched.num_threads(),
            )
    except psutil.Error:  # it has just ended
        return None


def between(samples: list[Sample], begin: float, end: float) -> list[Sample]:
    """Return the samples taken between two shares of the last one's pages."""
    last = samples[-1].pages
    return [each for each in samples if begin * last <= each.pages <= end * last]


def pages_a_second(samples: list[Sample], *, of_processor: bool) -> float:
    """Return the pages a second from the first sample to the last."""
    first, last = samples[0], samples[-1]
    if of_processor:
        return (last.pages - first.pages) / (last.cpu_seconds - first.cpu_seconds)
    return (last.pages - first.pages) / (last.seconds - first.seconds)
