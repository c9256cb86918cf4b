"""Multiplies the URLs that a crawl in rounds knows, to measure the cost of rounds with more URLs.

Run: ``python benchmarks/multiply_known_urls.py TABLES TIMES`` on a copy of the tables of a crawl,
then further rounds with ``bench_rounds_cluster.py``. Each URL gets copies on the same host, with
the same evidence and a thousandth of its score. Rounds read the copies, but never fetch them. So
the rounds fetch the same pages for any value of TIMES.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.foundation.urls import hashed_id
from focuscrawl.rounds.tables import EVIDENCE, URL, Tables
from focuscrawl.store.schema import QUEUED

GROUP = 4_000  # rows of evidence that are read at once, as `focuscrawl.rounds.buckets` writes


def copies_of_urls(urls: pa.Table, names: list[str]) -> pa.Table:
    """Return a copy of each row of `URL`, with a new URL."""
    score = pc.if_else(pc.is_finite(urls["score"]), pc.multiply(urls["score"], 1e-3), 0.0)
    changed = {
        "id": pa.array(map(hashed_id, names), pa.int64()),
        "url": pa.array(names),
        "score": score,
        "state": pa.array(np.full(len(urls), QUEUED, np.int8)),
        "relevance": pa.nulls(len(urls), pa.float64()),
    }
    copies = urls
    for name, values in changed.items():
        copies = copies.set_column(copies.column_names.index(name), name, values)
    return copies.cast(URL)


def copies_of_evidence(evidence: pa.Table, ids: np.ndarray, copied: np.ndarray) -> pa.Table:
    """Return a copy of each row of `EVIDENCE` with links to copies of the targets.

    `ids` are ascending, and `copied` are the ids of their copies.
    """
    targets = evidence["targets"].combine_chunks()
    values = copied[np.searchsorted(ids, targets.flatten().to_numpy())]
    offsets = np.concatenate([[0], np.cumsum(targets.value_lengths().to_numpy())])
    column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))
    return evidence.set_column(EVIDENCE.get_field_index("targets"), "targets", column).cast(
        EVIDENCE
    )


def main() -> None:
    tables, times = Tables(sys.argv[1]), int(sys.argv[2])
    plan = tables.read_json("plan.json")
    assert plan is not None
    for bucket in range(int(plan["buckets"])):
        pairs = []
        for name in tables.bucket_tables("urls", bucket, sys.maxsize):
            urls, parts = tables.read(name), []
            for copy in range(1, times):
                names = [f"{url}#copy{copy}" for url in urls["url"].to_pylist()]
                parts.append(copies_of_urls(urls, names))
            tables.write_table(name, pa.concat_tables([urls, *parts]).sort_by("id"))
            pairs.append(np.array([each["id"].to_numpy() for each in [urls, *parts]]))
        ids = np.concatenate(pairs, axis=1)  # a row a copy, the first those that were there
        of_url = ids[:, np.unique(ids[0], return_index=True)[1]]
        for name in tables.bucket_tables("evidence", bucket, sys.maxsize):
            rows = tables.read(name)
            parts = [copies_of_evidence(rows, of_url[0], copied) for copied in of_url[1:]]
            tables.write_table(name, pa.concat_tables([rows, *parts]), GROUP)
        print("bucket", bucket, of_url.size, "URLs", flush=True)


if __name__ == "__main__":
    main()
