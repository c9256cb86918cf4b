"""The strategy that adds to soft focus what hubs promise."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.page import parse_page
from focuscrawl.strategies import StrategyContext
from focuscrawl.strategies.base import JudgedPage
from focuscrawl.strategies.hub_strategy import Hubs

from .shelves import WordCritic
from .tea_pages import scores, teach

#: URL 0 and 1 link to the relevant pages 2 and 3, URL 4 links to the irrelevant page 5
LINKS = {0: [2, 3, 6], 1: [2, 3, 7], 4: [5, 8]}
RELEVANCE = {0: 0.9, 1: 0.8, 4: 0.9, 2: 0.9, 3: 0.9, 5: 0.1}


def judged(url: int) -> JudgedPage:
    """A page on a host of its own, as all that it links to are."""
    targets = LINKS.get(url, [])
    anchors = "".join(f"<a href=http://h{target}.example/>{target}</a>" for target in targets)
    return JudgedPage(
        view=parse_page(anchors.encode(), f"http://h{url}.example/"),
        url=url,
        seq=1,
        depth=0,
        relevance=RELEVANCE[url],
        probabilities=None,
        links=np.arange(len(targets)),
        targets=np.array(targets, np.int64),
    )


def made(**options: float) -> Hubs:
    context = StrategyContext(critic=WordCritic(), random_state=0, web=None)
    return Hubs(context, **options)  # type: ignore[arg-type]


def visit(strategy: Hubs, *urls: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for url in urls:
        strategy.observe(url, RELEVANCE[url], None)
        found |= scores(strategy.expand(judged(url)))
    return found


def test_what_hubs_link_to_comes_before_what_a_page_as_relevant_links_to() -> None:
    strategy = made(every=6)
    before = visit(strategy, *RELEVANCE)
    assert before[6] == before[8] == pytest.approx(0.5 * 0.9)  # all are R(u) so far
    after = teach(strategy)
    assert after[6] > after[8] == before[8]
    assert after[6] == pytest.approx(0.5 * 0.9 + 0.5)  # the largest promise counts as 1
    assert after[7] > after[8]  # of a hub, though its page is less relevant


def test_without_weight_it_is_best_first() -> None:
    strategy = made(weight=0.0, every=6)
    visit(strategy, *RELEVANCE)
    after = teach(strategy)
    assert (after[6], after[7], after[8]) == (0.9, 0.8, 0.9)


def test_what_hubs_promise_is_of_the_first_pages_whatever_came_since() -> None:
    strategy = made()
    visit(strategy, 2, 3, 0)
    early, _ = strategy.fit_model(3, 3)
    visit(strategy, 1, 4, 5)
    promise, _ = strategy.fit_model(6, 6)
    assert promise[6] == 1.0
    assert 0.5 < promise[7] < 1.0  # by a hub that is less relevant
    assert promise[8] == 0.0  # by a page whose other link is not relevant
    assert promise[2] == 0.0  # it was fetched
    again, _ = strategy.fit_model(3, 3)
    np.testing.assert_array_equal(early, again)
