"""Knowledge of a million URLs: size on disk, memory, look-up time and learning time.

Run: ``python benchmarks/bench_knowledge.py [URLS]`` (a few minutes, 1 GB), or with pytest. The
generated URLs have realistic lengths, validators and three anchors each. A process of its own
opens the knowledge, so that its memory can be measured; times are processor times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from time import process_time

import numpy as np
import psutil

from focuscrawl.knowledge import CrawlRecord, FetchRecord, Knowledge, add_crawl

URLS = 1_000_000
PAGE = 470  # links of a page
PAGES = 50


def url(i: int) -> str:
    return f"https://www.host{i % 20_000}.example/department/people/{i // 97}/page-{i}.html"


def fetches(count: int) -> Iterator[FetchRecord]:
    rng = np.random.default_rng(0)
    relevance = rng.random(count).tolist()
    for i in range(count):
        name = blake2b(str(i).encode(), digest_size=12)
        yield FetchRecord(
            url=url(i),
            status=200,
            relevance=relevance[i],
            content=name.digest(),
            etag=f'"{name.hexdigest()[:16]}"',
            last_modified="Mon, 06 Jan 2025 00:00:00 GMT",
            day=0.0,
            texts=(f"Page {i} of department {i % 1000}", "People and their projects"),
            anchors=(f"page {i % 5000}", "people", f"department {i % 1000}"),
            hub=relevance[i] / 2,
            authority=relevance[i],
        )


def collection(number: int, found: Iterator[FetchRecord]) -> CrawlRecord:
    return CrawlRecord(
        id=f"crawl {number}",
        name=f"crawl {number}",
        topic="/Departments",
        critic="benchmark",
        critic_name="benchmark",
        replay=True,
        learned_at="2026-01-01T00:00:00",
        fetches=found,
    )


def resident() -> float:
    """Return the resident memory of this process in MB."""
    return float(psutil.Process().memory_info().rss) / 1e6


def look_up(path: Path, count: int) -> dict[str, float]:
    """Open the file and look up URLs as crawls do."""
    rng = np.random.default_rng(1)
    before, start = resident(), process_time()
    with closing(Knowledge(path)) as known:
        result = {"open s": process_time() - start, "  memory MB": resident() - before}
        batches = [[url(int(i)) for i in rng.integers(0, 2 * count, PAGE)] for _ in range(PAGES)]
        anchors = [f"page {i}" for i in range(PAGE)]
        start = process_time()
        for batch in batches:
            known.relevance(batch)
        micro = 1e6 / (PAGE * PAGES)
        result["recorded relevance, us a URL"] = micro * (process_time() - start)
        known.predict(batches[0], anchors)
        start = process_time()
        for batch in batches:
            known.predict(batch, anchors)
        result["prediction, half unknown, us a URL"] = micro * (process_time() - start)
        start = process_time()
        for batch in batches:
            for each in batch:
                known.page(each)
        result["all that is known of one, us a URL"] = micro * (process_time() - start)
        start = process_time()
        _ = known.keywords
        result["keywords s"] = process_time() - start
        start = process_time()
        known.visit_values(known.now, 0.1)
        result["values of another visit s"] = process_time() - start
        result["memory MB at the end"] = resident() - before
    return result


def measure(count: int) -> dict[str, float]:
    """Learn twice, and look up."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "knowledge.db"
        start = process_time()
        add_crawl(path, collection(1, fetches(count)))
        result = {"learn the first crawl, URLs/s": count / (process_time() - start)}
        start = process_time()
        add_crawl(path, collection(2, fetches(min(count, 1000))))
        result["learn 1,000 fetches more s"] = process_time() - start
        result["size MB"] = path.stat().st_size / 1e6
        result["  bytes a URL"] = path.stat().st_size / count
        command = [sys.executable, __file__, str(count), str(path)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        asked = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        found: dict[str, float] = json.loads(asked.stdout)
        return result | found


def report(count: int) -> list[str]:
    """Return one line per measure."""
    lines = [f"knowledge of {count:,} URLs"]
    return lines + [f"{name:<40}{value:>12,.2f}" for name, value in measure(count).items()]


def test_knowledge() -> None:
    print("\n" + "\n".join(report(URLS)))


if __name__ == "__main__":
    asked_for = int(sys.argv[1]) if len(sys.argv) > 1 else URLS
    if len(sys.argv) > 2:
        print(json.dumps(look_up(Path(sys.argv[2]), asked_for)))
    else:
        print("\n".join(report(asked_for)))
