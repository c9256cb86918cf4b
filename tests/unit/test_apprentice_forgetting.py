from __future__ import annotations

import numpy as np
import pytest
from longer import long

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.evidence import least_promising
from focuscrawl.apprentice.options import Options

from .toy_crawl import Crawl, Toy

_FEW = Options(batch=10, links=150)  # a page has 12


@pytest.mark.parametrize("lag", [0, 5])
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("stop", [23, 43, *long(12, 37, 65)])
def test_resumed_it_goes_on_as_if_nothing_had_happened(stop: int, slow: bool, lag: int) -> None:
    crawl = Crawl(Toy(), Apprentice(_FEW), lag=lag, slow=slow).run(stop)
    again = crawl.resumed(Apprentice(_FEW))
    assert again.queue == crawl.queue
    again.run(90 - stop)
    crawl.run(90 - stop)
    assert again.order == crawl.order
    assert again.queue == crawl.queue
    if stop < 60:
        crawl.run(30)
        assert crawl.resumed(Apprentice(_FEW)).run(1).order == crawl.run(1).order


def test_links_are_bounded() -> None:
    crawl = Crawl(Toy(), Apprentice(_FEW))
    most = 0
    for _ in range(100):
        crawl.run(1)
        most = max(most, len(crawl.apprentice.table))
    assert crawl.apprentice.table.links_ever == 1200
    assert 0.75 * 150 - 12 < most <= 150 + 10 * 12
    assert len(crawl.apprentice.table.pages) * 12 == len(crawl.apprentice.table)


def test_a_sixth_of_the_links_is_enough_to_go_on_well() -> None:
    toy = Toy(n=2000)
    crawl = Crawl(toy, Apprentice(Options(batch=10, links=600))).run(300)
    assert crawl.harvest > 2 * toy.good.mean()
    lost = [url for url, score in crawl.queue.items() if score == 0.0]
    assert len(lost) > 100
    assert crawl.run(1).order[-1] not in lost


def test_pages_with_nothing_left_to_fetch_go_first() -> None:
    crawl = Crawl(Toy(), Apprentice(Options(batch=10))).run(80)
    known = crawl.apprentice.table
    promise = np.full(known.n_urls, -1.0)
    waiting = [url for url in crawl.queue if url < known.n_urls]
    promise[waiting] = [crawl.queue[url] for url in waiting]
    done = known.target.data[np.isin(known.page.data, [3, 7, 40])]
    promise[done] = -1.0
    out = least_promising(known, len(known), len(known.pages), promise, 103 * 12)
    best = np.array(
        [promise[known.target.data[known.page.data == page]].max() for page in range(80)]
    )
    assert set(np.flatnonzero(best == -1.0)) >= {3, 7, 40}
    assert set(np.flatnonzero(best == -1.0)) <= set(np.flatnonzero(out))
    assert best[out].max() <= best[~out].min()
    assert np.sum(~out) == 77


def test_what_only_led_to_fetched_pages_is_not_missed() -> None:
    crawl = Crawl(Toy(n=90, out=3), Apprentice(Options(batch=10))).run(60)
    known = crawl.apprentice.table
    done = np.array(
        [all(t in crawl.order for t in crawl.web.targets[u]) for u in crawl.order], bool
    )
    assert done.any()
    left = known.without(done, len(known))
    y = known.y.data
    before, after = (crawl.apprentice.scorer.over(each) for each in (known, left))
    was_waiting, waiting = (each.rebuild(len(each.table), y)[0] for each in (before, after))
    assert waiting.tolist() == was_waiting.tolist()
    margins = before.evidence.margins(waiting)
    assert after.evidence.margins(waiting) == pytest.approx(margins)
