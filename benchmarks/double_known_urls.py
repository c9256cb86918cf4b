"""Doubles the URLs that a crawl in rounds knows, to see what its rounds cost then.

Run: ``python benchmarks/double_known_urls.py TABLES`` on a copy of the tables of a crawl, then
more rounds of it (``bench_rounds_cluster.py``). To each URL comes a copy on the same host, with
the same evidence, that waits with a thousandth of its score: it is read with all others, and is
never among the best.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from focuscrawl.foundation.urls import identity
from focuscrawl.rounds.tables import EVIDENCE, URL, Tables
from focuscrawl.store.schema import QUEUED

GROUP = 4_000  # rows of evidence that are read at once, as `focuscrawl.rounds.taking_in` writes


def doubled_urls(urls: pa.Table) -> pa.Table:
    """Return rows of `URL`, and those of their copies."""
    names = [f"{url}#copy" for url in urls["url"].to_pylist()]
    score = pc.if_else(pc.is_finite(urls["score"]), pc.multiply(urls["score"], 1e-3), 0.0)
    changed = {
        "id": pa.array(map(identity, names), pa.int64()),
        "url": pa.array(names),
        "score": score,
        "state": pa.array(np.full(len(urls), QUEUED, np.int8)),
        "relevance": pa.nulls(len(urls), pa.float64()),
    }
    copies = urls
    for name, values in changed.items():
        copies = copies.set_column(copies.column_names.index(name), name, values)
    return pa.concat_tables([urls, copies.cast(URL)])


def doubled_evidence(evidence: pa.Table, ids: dict[int, int]) -> pa.Table:
    """Return rows of `EVIDENCE`, and those of the copies: `ids` says which these are."""
    targets = [[ids[each] for each in row] for row in evidence["targets"].to_pylist()]
    column = pa.array(targets, EVIDENCE.field("targets").type)
    copies = evidence.set_column(EVIDENCE.get_field_index("targets"), "targets", column)
    return pa.concat_tables([evidence, copies.cast(EVIDENCE)])


def main() -> None:
    tables = Tables(sys.argv[1])
    plan = tables.read_json("plan.json")
    assert plan is not None
    for bucket in range(int(plan["buckets"])):
        ids: dict[int, int] = {}
        for name in tables.of_bucket("urls", bucket, sys.maxsize):
            urls = tables.read(name)
            rows = doubled_urls(urls)
            ids |= zip(urls["id"].to_pylist(), rows["id"].to_pylist()[len(urls) :], strict=True)
            tables.write_table(name, rows)
        for name in tables.of_bucket("evidence", bucket, sys.maxsize):
            tables.write_table(name, doubled_evidence(tables.read(name), ids), GROUP)
        print("bucket", bucket, len(ids), "URLs doubled", flush=True)


if __name__ == "__main__":
    main()
