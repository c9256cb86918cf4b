"""Cost of training the apprentice: from the 1st to the 50th training, and with 1,000,000 links.

Run: ``python benchmarks/bench_lessons.py``, or with pytest. Generated pages have as many links and
features as those of Wikipedia. The apprentice is timed without a crawl, in time of the thread.
*learn* is the update of the model, *score* the re-scoring of all queued URLs, and *adopt* the
work on the event loop.
"""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.hashing import SparseRows
from focuscrawl.apprentice.link_features import url_key_table
from focuscrawl.apprentice.link_table import PageFeatures, pack_words
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.scorer import Scorer
from focuscrawl.frontier import Frontier

if TYPE_CHECKING:
    import pytest

LINKS = 400  # a page
FEATURES = 40  # a link
HOSTS = 10_000
LESSONS = 50
MANY = 1_000_000
_WORDS = 200_000


class Cost(NamedTuple):
    """Milliseconds of a training, and the size of its data."""

    instances: int
    links: int
    waiting: int
    learn: float
    score: float
    adopt: float


class Pages:
    """An endless web of generated pages: two thirds of the links lead to new URLs."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.known = 1
        self.empty = pack_words([])

    def features(self, number: int) -> PageFeatures:
        rng = self.rng
        new = np.arange(self.known, self.known + 2 * LINKS // 3)
        self.known += len(new)
        old = rng.integers(1, self.known, LINKS - len(new))
        urls = [f"http://h{n % HOSTS}.example/d{n % 7}/p{n}.html" for n in new.tolist()]
        return PageFeatures(
            relevance=np.array([float(rng.random() < 0.5)]),
            own_keys=url_key_table([f"http://h{number % HOSTS}.example/d{number % 7}/p{number}"]),
            page_indices=rng.integers(0, _WORDS, 8, dtype=np.int32),
            targets=rng.permutation(np.concatenate([new, old])),
            position=np.arange(LINKS, dtype=np.int32),
            reading=rng.normal(size=LINKS).astype(np.float32),
            links=_rows(rng, LINKS, FEATURES),
            new=new,
            urls=_rows(rng, len(new), 5),
            url_keys=url_key_table(urls),
            vocabulary=self.empty,
            around=rng.normal(size=LINKS).astype(np.float32),
            page_values=np.zeros(0, np.float32),
        )


def _rows(rng: np.random.Generator, n: int, each: int) -> SparseRows:
    features = rng.integers(0, _WORDS, n * each, dtype=np.int32)
    return SparseRows(features, np.arange(n + 1) * each)


def crawl(links: int, lessons: int) -> list[Cost]:
    """Crawl best-first to a number of trainings and links; train twice more at the end."""
    apprentice, pages = Apprentice(Options(links=max(2 * links, 1_000_000))), Pages()
    costs: list[Cost] = []
    rng = np.random.default_rng(1)
    frontier = Frontier()
    url = 0
    while len(costs) < lessons or apprentice.table.links_ever < links:
        apprentice.observe(url, float(rng.random() < 0.5))
        _, urls, scores = apprentice.expand(url, pages.features(url))
        for each, score in zip(urls.tolist(), scores.tolist(), strict=True):
            frontier.push(each, each % HOSTS, score)
        if len(costs) < lessons and apprentice.is_training_due():
            costs.append(lesson(apprentice, frontier))
        taken = frontier.pop(0.0)
        assert taken is not None
        frontier.release(taken, 0.0)
        url = taken
    if links:
        lesson(apprentice, frontier)  # its adoption frees what was pushed link by link
        costs.append(lesson(apprentice, frontier))
    return costs


def lesson(apprentice: Apprentice, frontier: Frontier) -> Cost:
    began = thread_time()
    scored: list[float] = []
    rebuild = Scorer.rebuild_evidence

    def noting(*arguments: object) -> object:
        scored.append(thread_time())
        return rebuild(*arguments)  # type: ignore[arg-type]

    Scorer.rebuild_evidence = noting  # type: ignore[method-assign, assignment]
    try:
        learned = apprentice.learn()
        arrangement = frontier.sort_queues(learned.urls, learned.scores)
    finally:
        Scorer.rebuild_evidence = rebuild  # type: ignore[method-assign]
    ended = thread_time()
    found_since = apprentice.adopt(learned)
    frontier.replace_queues(arrangement)
    frontier.update(*found_since)
    adopted = thread_time()
    return Cost(
        learned.instances,
        learned.snapshot.links,
        len(learned.urls),
        1000 * (scored[0] - began),
        1000 * (ended - scored[0]),
        1000 * (adopted - ended),
    )


def report() -> list[str]:
    with threadpool_limits(1, user_api="blas"):  # as in a crawl
        return _report()


def _report() -> list[str]:
    costs = crawl(0, LESSONS)
    shown = [*costs[:1], *costs[9::10]]
    many = crawl(MANY, 1)[-1]
    lines = ["training instances    links     queued  learn  score  adopt   (ms)"]
    for name, cost in [
        *((f"{1 if not i else 10 * i}", cost) for i, cost in enumerate(shown)),
        ("big", many),
    ]:
        lines.append(
            f"{name:>6} {cost.instances:10,} {cost.links:10,} {cost.waiting:10,} "
            f"{cost.learn:6.1f} {cost.score:6.1f} {cost.adopt:6.1f}"
        )
    first = np.mean([cost.learn / cost.instances for cost in costs[5:15]])
    last = np.mean([cost.learn / cost.instances for cost in costs[-10:]])
    lines.append(
        f"learning from one instance, 41st to 50th training: {last / first:.2f} x 6th to 15th"
    )
    return lines


def test_lessons(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(*report(), sep="\n")


if __name__ == "__main__":
    print(*report(), sep="\n")
