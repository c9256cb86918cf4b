"""Reading and pruning a topic tree of the size of Dmoz: 270,000 topics, 1.7 million URLs.

Run ``python benchmarks/bench_taxonomy.py``, or with pytest. The dump is generated from a seed and
kept in the cache folder. A new process reads the dump, so that peak memory is that of the reading.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.foundation.files import cache_dir
from focuscrawl.taxonomy import prune, read_dmoz

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

TOPICS = 270_000
URLS = 1_700_000
SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "la",
    "me",
    "ni",
    "po",
    "ru",
    "sa",
    "te",
    "vi",
    "wo",
    "xu",
]


def name(number: int) -> str:
    """Return a generated word for `number`, distinct for each number."""
    word = ""
    while number or not word:
        number, digit = divmod(number, len(SYLLABLES))
        word += SYLLABLES[digit]
    return word.capitalize()


def topics(rng: np.random.Generator) -> list[str]:
    """Return a tree like that of a directory: new topics are added below random upper ones."""
    tree = ["Top"]
    depths = [0]
    places = rng.random(TOPICS) ** 1.5  # older, that is higher, topics have more children
    for number in range(1, TOPICS):
        above = int(places[number] * number)
        if depths[above] > 12:
            above = 0
        tree.append(f"{tree[above]}/{name(number)}")
        depths.append(depths[above] + 1)
    return tree


def records() -> Iterator[str]:
    rng = np.random.default_rng(0)
    tree = topics(rng)
    weights = rng.pareto(1.2, TOPICS) + 0.05  # most topics have few examples, some thousands
    counts = rng.multinomial(URLS, weights / weights.sum())
    url = 0
    for topic, count in zip(tree, counts.tolist(), strict=True):
        last = topic.rpartition("/")[2]
        urls = [
            f"http://www.{last.lower()}{u}.org/{u % 7919}/index.html"
            for u in range(url, url + count)
        ]
        url += count
        links = "".join(f'  <link r:resource="{u}"></link>\n' for u in urls)
        yield f'<Topic r:id="{topic}">\n  <catid>{url}</catid>\n{links}</Topic>\n'
        for u in urls:
            yield (
                f'<ExternalPage about="{u}">\n  <d:Title>{last} &amp; all of it</d:Title>\n'
                f"  <d:Description>What there is to know of {last}, with lists, a forum and "
                f"pictures of the year.</d:Description>\n  <topic>{topic}</topic>\n"
                "</ExternalPage>\n"
            )


def dump() -> Path:
    """Return the path of the generated ``content.rdf.u8.gz``, written if missing."""
    path = cache_dir() / "bench" / f"content-{TOPICS}-{URLS}.rdf.u8.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with gzip.open(unfinished, "wt", encoding="utf-8", compresslevel=1) as out:
            out.write("<?xml version='1.0' encoding='UTF-8' ?>\n<RDF>\n")
            out.writelines(records())
            out.write("</RDF>\n")
        unfinished.replace(path)
    return path


def measure(path: Path) -> dict[str, float]:
    """Read and prune in this process; return seconds, sizes and peak memory in MB."""
    started = time.perf_counter()
    taxonomy = read_dmoz(path)
    read = time.perf_counter()
    pruned = prune(taxonomy)
    done = time.perf_counter()
    held = sum(len(taxonomy.examples(topic)) for topic in taxonomy.topics)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asked = time.perf_counter()
    taxonomy.nearest(taxonomy.leaves[0] + "x")
    return {
        "read_seconds": read - started,
        "prune_seconds": done - read,
        "nearest_seconds": time.perf_counter() - asked,
        "peak_megabytes": peak / (1 << 20 if sys.platform == "darwin" else 1 << 10),
        "topics": len(taxonomy.topics),
        "examples_held": held,
        "leaves": len(pruned.leaves),
        "leaf_examples": sum(len(pruned.examples(leaf)) for leaf in pruned.leaves),
    }


def in_fresh_process(path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(answer.stdout)
    return result


def report(result: dict[str, float]) -> str:
    seconds = result["read_seconds"] + result["prune_seconds"]
    return (
        f"taxonomy: {result['topics']:,.0f} topics, {URLS:,} URLs read in "
        f"{result['read_seconds']:.1f} s, pruned to {result['leaves']:,.0f} leaves with "
        f"{result['leaf_examples']:,.0f} examples in {result['prune_seconds']:.1f} s: "
        f"{URLS / seconds:,.0f} URLs/s, peak {result['peak_megabytes']:.0f} MB, "
        f"{seconds / 120:.2f} of the 120 s and {result['peak_megabytes'] / 600:.2f} of the 600 MB "
        f"aimed at; nearest name in {result['nearest_seconds']:.1f} s"
    )


def test_dmoz(benchmark: BenchmarkFixture) -> None:
    path = dump()
    result = benchmark.pedantic(  # type: ignore[no-untyped-call]
        in_fresh_process, args=(path,), rounds=1
    )
    print("\n" + report(result))
    assert result["topics"] == TOPICS


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        print(report(in_fresh_process(dump())))
