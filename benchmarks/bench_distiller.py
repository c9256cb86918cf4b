"""Hubs and authorities among ten million random links.

Run: ``python benchmarks/bench_distiller.py [LINKS]`` (half a minute, 2 GB), or with pytest. Both
ends of a link are drawn from power laws, as on the Web: few pages have most links. There are ten
links per page and ten pages per site, and a third of the pages is not fetched. For comparison, the
benchmark times one pass of scores along the links, and a distillation that starts with the scores
of nine tenths of the links.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from focuscrawl.distiller import Distiller, LinkGraph

LINKS = 10_000_000
LIMIT = 20.0  # seconds

Result = TypeVar("Result")


def graph(links: int) -> LinkGraph:
    """Links between pages whose degrees follow power laws with exponents near 2."""
    rng = np.random.default_rng(0)
    pages, sites = links // 10, links // 100
    fetched = pages * 2 // 3
    source = rng.permutation(fetched)[(fetched * rng.random(links) ** 3).astype(np.int64)]
    target = rng.permutation(pages)[(pages * rng.random(links) ** 4).astype(np.int64)]
    relevance = np.where(rng.random(pages) < 0.3, rng.beta(5, 1, pages), rng.beta(1, 20, pages))
    relevance[fetched:] = np.nan
    site = (sites * rng.random(pages) ** 2).astype(np.int64)
    return LinkGraph(source, target, site, relevance)


def timed(step: Callable[[], Result]) -> tuple[Result, float]:
    start = perf_counter()
    result = step()
    return result, perf_counter() - start


def report(links: int) -> tuple[list[str], float]:
    """Return one line per measure, and the total seconds."""
    whole = graph(links)
    distiller, prepared = timed(lambda: Distiller(whole))
    scores, distilled = timed(distiller.distill)
    _, promised = timed(lambda: distiller.score_unfetched(scores, 10))
    _, once = timed(partial(distiller.distill, rounds=1))
    n = links * 9 // 10
    earlier = LinkGraph(whole.source[:n], whole.target[:n], whole.site, whole.relevance)
    start = Distiller(earlier).distill()
    again, warm = timed(lambda: distiller.distill(start))
    total = prepared + distilled + promised
    rows: list[tuple[str, Any]] = [
        ("prepare (distinct, off-site, damped) s", prepared),
        (f"distill, {scores.rounds} rounds s", distilled),
        ("  one round s", once),
        (f"  from earlier scores, {again.rounds} rounds s", warm),
        ("promise of the pages not fetched s", promised),
        ("all s", total),
    ]
    lines = [f"{links:,} links between {whole.n_pages:,} pages"]
    lines += [f"{name:<44}{value:>8.2f}" for name, value in rows]
    return lines, total


def test_many_links(capsys: Any) -> None:
    lines, total = report(LINKS)
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert total <= LIMIT


if __name__ == "__main__":
    print("\n".join(report(int(sys.argv[1]) if len(sys.argv) > 1 else LINKS)[0]))
