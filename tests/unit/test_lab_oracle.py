"""The oracle, which knows what every fetch will show, and the web as a whole that it looks at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from focuscrawl.critic import load_critic
from focuscrawl.critic.protocol import Judgement
from focuscrawl.errors import UserError
from focuscrawl.lab.judged_web import JudgedWeb, judge_web
from focuscrawl.lab.strategies.oracle import Oracle
from focuscrawl.page import parse_page
from focuscrawl.strategies import JudgedPage, StoredPage, StrategyContext, find_strategy
from focuscrawl.testing import TinyWeb
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Answer

HOST = "http://a.example/"
PAGES = {
    "hub": "<a href=good><a href=poor><a href=moved><a href=copy><a href=gone>",
    "good": "tea tea tea <a href=best>",
    "poor": "tea tax tax",
    "best": "tea tea tea tea",
    "copy": "tea tea tea <a href=best>",  # of good
}


class SmallWeb(TinyWeb):
    """The pages above, and a redirect; counts its answers."""

    def __init__(self) -> None:
        pages = {HOST + name: html for name, html in PAGES.items()}
        super().__init__(pages, redirects={HOST + "moved": HOST + "best"})
        self.fetches = 0

    def fetch(self, url: str) -> Answer | None:
        self.fetches += 1
        return super().fetch(url)


class Critic:
    """R(u) is the share of "tea" among the words."""

    classes: tuple[str, ...] = ("/Tea", "/Other")
    examples: tuple[str, ...] = ()
    marked = np.array([True, False])

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        shares = [page.tokens.count("tea") / max(len(page.tokens), 1) for page in pages]
        relevance = np.array(shares)
        return Judgement(relevance, np.column_stack([relevance, 1.0 - relevance]))


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallWeb:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path))
    return SmallWeb()


def made(web: SmallWeb) -> Oracle:
    return Oracle(StrategyContext(critic=Critic("0c"), random_state=0, web=web))


NUMBERS = {name: i for i, name in enumerate(["hub", "poor", "best", "gone", "moved", "copy"])}
NUMBERS["good"] = 9


def page(name: str, *, unrecorded: bool = False) -> JudgedPage:
    view = parse_page(PAGES[name].encode(), HOST + name)
    names = [url.removeprefix(HOST) for url in view.links.urls]
    links = [i for i, each in enumerate(names) if unrecorded or each != "gone"]
    targets = np.array([NUMBERS[names[i]] for i in links], np.int64)
    return JudgedPage(view, NUMBERS[name], 1, 1, 0.5, None, np.array(links, np.int64), targets)


def by_name(urls: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    names = {number: name for name, number in NUMBERS.items()}
    return {names[u]: s for u, s in zip(urls.tolist(), scores.tolist(), strict=True)}


def test_links_have_the_relevance_of_their_targets(web: SmallWeb) -> None:
    oracle = made(web)
    expansion = oracle.expand(page("hub"))
    assert expansion.link_scores == pytest.approx([1.0, 1 / 3, 0.0, 1.0])
    found = by_name(expansion.urls, expansion.scores)
    assert found == pytest.approx({"good": 1.0, "poor": 1 / 3, "moved": 0.0, "copy": 1.0})


def test_what_is_not_recorded_or_was_fetched_is_worth_nothing(web: SmallWeb) -> None:
    oracle = made(web)
    expansion = oracle.expand(page("hub", unrecorded=True))
    assert by_name(expansion.urls, expansion.scores)["gone"] == 0.0
    expansion = oracle.expand(page("good"))
    assert by_name(expansion.urls, expansion.scores) == {"best": 1.0, "copy": 0.0, "good": 0.0}


def test_recalled_scores_are_those_of_before(web: SmallWeb) -> None:
    whole, resumed = made(web), made(web)
    for name in ("hub", "good", "best"):
        each = page(name)
        expansion = whole.expand(each)
        link_scores, memo = expansion.link_scores, expansion.memo
        recalled = StoredPage(each.url, 1, each.relevance, each.targets, link_scores, memo)
        urls, scores = resumed.restore_page(recalled)
        assert by_name(urls, scores) == by_name(expansion.urls, expansion.scores)


def test_the_web_is_judged_once(web: SmallWeb) -> None:
    made(web)
    assert web.fetches == len(PAGES) + 1
    made(web)
    assert web.fetches == len(PAGES) + 1


def test_no_oracle_without_a_recorded_web_and_classes(web: SmallWeb) -> None:
    assert find_strategy("oracle") is Oracle
    with pytest.raises(UserError, match="needs a recording"):
        Oracle(StrategyContext(critic=Critic("0c"), random_state=0, web=None))
    critic = Critic("0c")
    critic.marked = np.zeros(0, np.bool_)
    with pytest.raises(UserError, match="classes"):
        Oracle(StrategyContext(critic=critic, random_state=0, web=web))


@pytest.fixture
def whole() -> JudgedWeb:
    """0 -> 1, 2; 1 -> 3; 2 -> 4; 4 is 3 under another URL; 5 cannot be reached."""
    return JudgedWeb(
        urls=[f"http://a.example/{i}" for i in range(6)],
        classes=["/A", "/A/B", "/C"],
        probabilities=np.array(
            [[0, 0, 1], [0, 0.2, 0.8], [0.6, 0.4, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], np.float32
        ),
        content=np.array([0, 1, 2, 3, 3, 5]),
        body=np.arange(6),
        bounds=np.array([0, 2, 3, 4, 4, 4, 4]),
        targets=np.array([1, 2, 3, 4]),
    )


def test_what_is_within_reach(whole: JudgedWeb) -> None:
    relevance = whole.relevance("/A")
    np.testing.assert_allclose(relevance, [0, 0.2, 1, 1, 1, 1], atol=1e-6)
    np.testing.assert_allclose(whole.relevance("/A/B"), [0, 0.2, 0.4, 1, 1, 0], atol=1e-6)
    reached = whole.reachable([0])
    assert len(reached) == 4  # each content once
    assert 5 not in reached
    assert whole.page_indices(["http://a.example/2", "http://b.example/"]) == [2]


def test_the_oracle_takes_the_best_known_page(whole: JudgedWeb) -> None:
    # 0, then 2 (1.0), then 4 (1.0), then 1 (0.2); 3 is the content of 4 and is not fetched
    assert whole.oracle_loss([0], whole.relevance("/A"), 2) == pytest.approx(0.5)
    assert whole.oracle_loss([0], whole.relevance("/A"), 3) == pytest.approx(1 - 2 / 3)
    assert whole.oracle_loss([0], whole.relevance("/A"), 99) == pytest.approx(1 - 2.2 / 99)


def test_a_web_is_judged_once_for_all_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path))
    demo = open_web("demo:0.05")
    first = judge_web(demo, load_critic("models/demo", "/Sports/Cycling"))
    monkeypatch.setattr(type(demo), "fetch", None)  # it is not read again
    second = judge_web(demo, load_critic("models/demo", "/Home/Cooking"))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.relevance("/Sports").max() > 0.5
