"""Cost of looking up the links of pages in a columnar index, compared with `pyarrow.dataset`.

Run: ``python benchmarks/bench_index.py [--captures N] [--pages N]``. Each page has 40 links, 30 of
them to one host.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from focuscrawl.webs.columnar import ColumnarIndex, write_columnar


def lines(captures: int) -> Iterator[bytes]:
    """Yield lines of a CDXJ file, 1,000 per host."""
    for n in range(captures):
        about = {"url": f"http://h{n // 1000}.example/{n}", "mime": "text/html", "status": "200"}
        about |= {"offset": str(n), "length": "1", "filename": "a.warc.gz"}
        yield f"example,h{n // 1000:05})/{n:07} 20200101000000 {json.dumps(about)}".encode()


def seconds(find: Callable[[list[str]], int], pages: list[list[str]]) -> tuple[float, int]:
    """Return the processor seconds of all look-ups, and the number of captures found."""
    start = process_time()
    found = sum(map(find, pages))
    return process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--pages", type=int, default=100)
    given = parser.parse_args()
    draw = random.Random(1)
    pages = []
    for _ in range(given.pages):
        host = draw.randrange(given.captures // 1000)
        numbers = [1000 * host + draw.randrange(1000) for _ in range(30)]
        numbers += [draw.randrange(given.captures) for _ in range(10)]
        pages.append([f"example,h{n // 1000:05})/{n:07}" for n in numbers])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.parquet"
        write_columnar(lines(given.captures), path)
        index = ColumnarIndex(fs.LocalFileSystem(), str(path), path.name)
        dataset = ds.dataset(path, format="parquet")

        def by_dataset(keys: list[str]) -> int:
            wanted = pc.field("url_surtkey").isin(keys)
            return int(dataset.to_table(filter=wanted, use_threads=False).num_rows)

        own, found = seconds(lambda keys: len([*index.find(keys)]), pages)
        other, same = seconds(by_dataset, pages)
    if found != same:
        raise SystemExit(f"{found} captures found, and {same} by pyarrow.dataset")
    print(f"{given.pages} pages of 40 links: pyarrow.dataset takes x {other / own:.1f}")


if __name__ == "__main__":
    main()
