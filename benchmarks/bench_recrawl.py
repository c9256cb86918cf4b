"""Re-crawls of a changing web: new and changed relevant pages per fetch.

Run: ``python benchmarks/bench_recrawl.py [WEB CRITIC TOPIC SEEDS BUDGET]`` (some minutes); by
default with the synthetic web at scale 3 and 600 fetches. Version 1 is crawled and learned.
Versions 2 to 5 are then crawled with the same budget in four ways, and learned each time:

- recrawl: with the knowledge of earlier crawls, as ``focuscrawl recrawl`` does;
- full price: the same, but "not modified" costs a whole fetch of the budget;
- afresh: a crawl like the first, from the same start URLs;
- everything: conditional requests for all known pages, most relevant first; the remaining budget
  is used as in a recrawl.

A page counts if it is relevant and its text differs from the text that earlier crawls of the same
way found at the URL. One column counts "not modified" as a whole fetch, the other as a tenth, its
default cost.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from focuscrawl.knowledge import Knowledge

VERSIONS = (2, 3, 4, 5)
WAYS = ("recrawl", "full price", "afresh", "everything")
DEMO = ("demo:3", "models/demo", "/Sports/Cycling", "models/demo/seeds.csv", "600")
CHEAP = 0.1


class Way:
    """A way of crawling again, with the pages that its crawls have seen."""

    def __init__(self, folder: Path, name: str, arguments: tuple[str, ...]) -> None:
        self.folder = folder / name
        self.name = name
        self.web, self.critic, self.topic, self.seeds, self.budget = arguments
        self.known = self.folder / "knowledge.db"
        self.seen: dict[str, bytes] = {}
        self.folder.mkdir()

    def crawl(self, version: int) -> tuple[int, float, int, int]:
        """Crawl a version and learn from the crawl.

        Returns fetches, fetches with "not modified" as `CHEAP`, and new and changed pages.
        """
        crawl_dir = self.folder / str(version)
        given = {
            "topic": self.topic,
            "critic": self.critic,
            "web": f"{self.web}@{version}",
            "budget": self.budget,
            "crawl_dir": str(crawl_dir),
            "seeds": self.seeds,
        }
        options: list[str] = []
        if version > 1 and self.name != "afresh":
            given["knowledge"] = str(self.known)
            del given["seeds"]
            options = ["-s", "FOCUSCRAWL_REVISIT=1"]
        if version > 1 and self.name == "full price":
            options += ["-s", "FOCUSCRAWL_NOT_MODIFIED_COST=1"]
        if version > 1 and self.name == "everything":
            given["seeds"] = str(self._all_known())
        command = [sys.executable, "-m", "scrapy", "crawl", "focused", *options]
        command += [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
        command += ["-s", "FOCUSCRAWL_PROGRESS=0", "-L", "WARNING"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        learned = ["knowledge", "learn", str(crawl_dir), "--topic", self.topic]
        program = "from focuscrawl.cli.main import main; main()"
        subprocess.run(
            [sys.executable, "-c", program, *learned, "--out", str(self.known)],
            check=True,
            capture_output=True,
        )
        return self._found(crawl_dir)

    def _all_known(self) -> Path:
        path = self.folder / "seeds.txt"
        with closing(sqlite3.connect(self.known)) as file:
            pages = "SELECT url FROM page WHERE content IS NOT NULL ORDER BY relevance DESC, key"
            path.write_text("\n".join(url for (url,) in file.execute(pages)))
        return path

    def _found(self, crawl_dir: Path) -> tuple[int, float, int, int]:
        fetches, cost, new, changed = 0, 0.0, 0, 0
        with closing(sqlite3.connect(crawl_dir / "crawl.db")) as store:
            rows = store.execute(
                "SELECT u.url, p.status, p.relevance, a.content FROM page p "
                "JOIN url u ON u.id = p.url LEFT JOIN answer a ON a.seq = p.seq"
            )
            for url, status, relevance, content in rows:
                fetches += 1
                cost += CHEAP if status == 304 else 1.0
                if content is None:
                    continue
                if relevance > 0.5:
                    new += url not in self.seen
                    changed += self.seen.get(url, content) != content
                self.seen[url] = content
        return fetches, cost, new, changed


def report(arguments: tuple[str, ...]) -> list[str]:
    """Print one line per way and version, then the totals."""
    lines = [f"{'':<12}{'version':>8}{'fetches':>9}{'cost':>8}{'new':>6}{'changed':>9}"]
    lines[0] += f"{'a fetch':>9}{'a cost':>8}"
    totals = []
    with tempfile.TemporaryDirectory() as folder:
        for name in WAYS:
            way = Way(Path(folder), name, arguments)
            way.crawl(1)
            total = [0.0, 0.0, 0.0, 0.0]
            for version in VERSIONS:
                found = way.crawl(version)
                total = [a + b for a, b in zip(total, found, strict=True)]
                lines.append(line(name, str(version), found))
            totals.append(line(name, "all", total))
            with closing(Knowledge(way.known)) as known:
                assert known.meta["crawls"] == str(1 + len(VERSIONS))
    return lines + totals


def line(name: str, version: str, found: Sequence[float]) -> str:
    fetches, cost, new, changed = found
    good = new + changed
    return (
        f"{name:<12}{version:>8}{fetches:>9.0f}{cost:>8.0f}{new:>6.0f}{changed:>9.0f}"
        f"{good / fetches:>9.3f}{good / cost:>8.3f}"
    )


def test_recrawl() -> None:
    print("\n" + "\n".join(report(DEMO)))


if __name__ == "__main__":
    print("\n".join(report(tuple(sys.argv[1:]) or DEMO)))
