"""Cost of an archive: crawls of a recorded web compared with crawls of its index, URL by URL.

Run: ``python benchmarks/bench_archives.py [--budget N] [--repeats N] [uci] [wikipedia]``. Each web
has one topic, a critic trained on the web's labels, and the strategies best-first and apprentice.
Each crawl is repeated in this process, in turn, and the minimum processor time counts.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import process_time

from replays import KEPT, critic, recording, seeds, topics

from focuscrawl.crawl import CrawlConfig
from focuscrawl.crawl.assembly import open_crawl
from focuscrawl.crawl.loop import replay
from focuscrawl.report.measures import load_pages
from focuscrawl.webs.capture_index import write_index


def crawl(web: str, where: Path, strategy: str, budget: int) -> tuple[float, list[object]]:
    """Crawl; return the seconds of processor time, and the fetched URLs."""
    with tempfile.TemporaryDirectory() as folder:
        plan = CrawlConfig(
            topic=topics(web)[1],
            critic=str(critic(web)),
            seeds=str(seeds(web)),
            web=str(where),
            strategy=strategy,
            budget=budget,
            crawl_dir=folder,
        )
        opened, began = open_crawl(plan), process_time()
        replay(opened)
        took, pages = process_time() - began, load_pages(folder)
        return took, list(zip(pages["url"], pages["relevance"].round(9), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("webs", nargs="*", default=["uci"])
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    for web in given.webs:
        recorded, folder = recording(web), KEPT / "archives"
        folder.mkdir(parents=True, exist_ok=True)
        places = [recorded]
        for ending in ("cdxj", "parquet"):
            write_index([recorded], folder / f"{web}.{ending}", recorded.parent)
            places.append(Path(f"{folder / web}.{ending},{recorded.parent}"))
        for strategy in ("best-first", "apprentice"):
            took = dict.fromkeys(places, float("inf"))
            fetched: list[object] = []
            for _ in range(given.repeats):
                for place in places:
                    seconds, pages = crawl(web, place, strategy, given.budget)
                    took[place] = min(took[place], seconds)
                    fetched = fetched or pages
                    if pages != fetched:
                        raise SystemExit(f"{place}: the crawl differs from that of the recording")
            for place, name in zip(places, ("recording", "CDXJ", "table"), strict=True):
                ratio = took[recorded] / took[place]
                print(f"{web} {strategy} {name}: {given.budget} fetches, pages/s x {ratio:.2f}")


if __name__ == "__main__":
    main()
