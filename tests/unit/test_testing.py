"""The checks for users' own code find what they are there for; the web in memory is crawled."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.critic.protocol import Judgement, load_custom
from focuscrawl.lab.strategies.link_graph_orders import PageRank
from focuscrawl.lab.strategies.text_orders import TfidfCentroid
from focuscrawl.strategies import (
    Expansion,
    JudgedPage,
    LinkStrategy,
    Maximum,
    StoredPage,
    Strategy,
    StrategyContext,
)
from focuscrawl.strategies.baselines import BestFirst
from focuscrawl.testing import (
    KeywordCritic,
    SimulatedCrawl,
    TinyWeb,
    check_critic,
    check_strategy,
    crawl,
    critic_checks,
    strategy_checks,
)
from focuscrawl.webs import open_web

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focuscrawl.page import PageView
    from focuscrawl.strategies import ModelUpdate, Scores


class ShortPaths(LinkStrategy):
    """The example of docs/reference/strategies.md."""

    def __init__(self, context: StrategyContext, *, decay: float = 0.8) -> None:
        self.decay = decay
        self.evidence = Maximum()

    def score_links(self, page: JudgedPage) -> NDArray[np.float64]:
        urls = [page.view.links.urls[i] for i in page.links]
        directories = np.array([url.count("/") - 3 for url in urls], dtype=np.float64)
        return page.relevance * self.decay**directories


def test_a_sound_strategy_passes_all() -> None:
    check_strategy(ShortPaths)
    check_strategy(partial(ShortPaths, decay=0.5))


# -- strategies that are not sound ---------------------------------------------------------


class NeedsOption(ShortPaths):
    def __init__(self, context: StrategyContext, decay: float) -> None:
        super().__init__(context, decay=decay)


def expanding(change: Callable[[Expansion], dict[str, Any]]) -> type[BestFirst]:
    """Return a strategy whose expansions are changed."""

    class Changed(BestFirst):
        def expand(self, page: JudgedPage) -> Expansion:
            found = super().expand(page)
            return replace(found, **change(found))

    return Changed


def scoring(score: Callable[[JudgedPage], Any]) -> type[BestFirst]:
    """Return a strategy that gives all links of a page one score."""

    class Scoring(BestFirst):
        def score_links(self, page: JudgedPage) -> NDArray[np.float64]:
            return np.full(len(page.links), score(page), np.float64)

    return Scoring


def written_to(page: JudgedPage) -> float:
    page.targets.sort()
    return 0.5


one_too_many = expanding(lambda found: {"link_scores": np.append(found.link_scores, 0.5)})
twice = expanding(
    lambda found: {"urls": np.tile(found.urls, 2), "scores": np.tile(found.scores, 2)}
)
scores_what_it_refuses = expanding(
    lambda found: {"link_scores": np.full(len(found.link_scores), -np.inf)}
)
forgets_urls = expanding(lambda found: {"urls": found.urls[::2], "scores": found.scores[::2]})
no_numbers = scoring(lambda page: np.nan)
needs_links = scoring(lambda page: page.targets.max())
clocked = scoring(lambda page: time.perf_counter())
writes_to_pages = scoring(written_to)


class CountsPages(LinkStrategy):
    """Scores fall from page to page, and it does not count those that are recalled."""

    def __init__(self, context: StrategyContext) -> None:
        self.evidence = Maximum()
        self.seen = 0

    def score_links(self, page: JudgedPage) -> NDArray[np.float64]:
        self.seen += 1
        return np.full(len(page.links), 1.0 / self.seen)


class RecallsOther(BestFirst):
    def restore_page(self, page: StoredPage) -> Scores:
        urls, scores = super().restore_page(page)
        return urls, scores / 2.0


class LearnsNothing(BestFirst):
    learns = True


class Secretive(BestFirst):
    """Has a model version, and says that it does not learn."""

    model_version = 3


class LearnsOfWhatComesLater(TfidfCentroid):
    def learn(self) -> ModelUpdate:
        self._extent = (self.log.n_fetches, self.log.n_pages)
        return super().learn()


class ForgetsItsState(PageRank):
    def load(self, state: bytes) -> None:
        return


class GoesByNumbers(BestFirst):
    def restore_page(self, page: StoredPage) -> Scores:
        return self.evidence.add(page.targets, self._scores(page.targets))

    def expand(self, page: JudgedPage) -> Expansion:
        scores = self._scores(page.targets)
        return Expansion(scores, *self.evidence.add(page.targets, scores))

    def _scores(self, targets: NDArray[np.int64]) -> NDArray[np.float64]:
        return 1.0 / (1.0 + targets.astype(np.float64))


class RecallsTheFirstOnly(BestFirst):
    def restore_pages(self, pages: Sequence[StoredPage]) -> Scores:
        return self.restore_page(pages[0])


class TrainsNobody(TfidfCentroid):
    in_rounds = True


@pytest.mark.parametrize(
    ("strategy", "check"),
    [
        (partial(NeedsOption, decay=0.5), "options_have_defaults"),
        (no_numbers, "every_link_has_a_score"),
        (one_too_many, "every_link_has_a_score"),
        (twice, "every_url_is_scored_once"),
        (scores_what_it_refuses, "refused_links_give_no_score"),
        (forgets_urls, "refused_links_give_no_score"),
        (needs_links, "page_without_links_is_accepted"),
        (clocked, "crawls_can_be_repeated"),
        (writes_to_pages, "crawls_can_be_repeated"),
        (RecallsOther, "restore_page_equals_expand"),
        (CountsPages, "resumed_crawl_equals_uninterrupted_crawl"),
        (partial(ForgetsItsState, every=7), "resumed_crawl_equals_uninterrupted_crawl"),
        (LearnsNothing, "learning_strategy_trains"),
        (Secretive, "learning_strategy_trains"),
        (
            partial(LearnsOfWhatComesLater, every=7),
            "training_uses_only_earlier_pages",
        ),
        (GoesByNumbers, "links_can_be_restored_in_another_process"),
        (RecallsTheFirstOnly, "links_can_be_restored_in_another_process"),
        (RecallsTheFirstOnly, "restore_pages_equals_restore_page"),
        (partial(TrainsNobody, every=7), "one_process_can_train_for_all"),
    ],
)
def test_what_is_wrong_with_a_strategy_is_found(
    strategy: Callable[[StrategyContext], Strategy], check: str
) -> None:
    with pytest.raises((AssertionError, ValueError, NotImplementedError)):
        dict(strategy_checks(strategy))[check]()


def test_the_check_that_fails_is_named() -> None:
    with pytest.raises(AssertionError) as failed:
        check_strategy(no_numbers)
    note = failed.value.__notes__[0]
    assert re.match("check every_link_has_a_score of ", note)
    with pytest.raises(AssertionError) as failed:
        check_critic(sure)
    assert re.match("check relevance_is_a_probability of ", failed.value.__notes__[0])


# -- critics -------------------------------------------------------------------------------


class Judging(KeywordCritic):
    """Judges by `change`, of its judgement, the pages and the number of calls."""

    def __init__(self, change: Callable[[Judgement, Sequence[PageView], int], Judgement]) -> None:
        super().__init__("tea")
        self.change, self.calls = change, 0

    def judge(self, pages: Sequence[PageView]) -> Judgement:
        self.calls += 1
        return self.change(super().judge(pages), pages, self.calls)


class Unnamed(KeywordCritic):
    fingerprint = ""


def needs_pages(found: Judgement, pages: Sequence[PageView], _: int) -> Judgement:
    assert pages[0]
    return found


def greedy(_: Judgement, pages: Sequence[PageView], __: int) -> Judgement:
    for page in pages:
        page.tokens.clear()
        page.links.anchors.clear()
    return Judgement(np.full(len(pages), 0.5))


def untidy(found: Judgement, pages: Sequence[PageView], _: int) -> Judgement:
    for page in pages:
        page.tokens.sort()
    return found


sure = KeywordCritic("tea", high=1.5)
mumbling = Judging(
    lambda found, *_: Judgement(found.relevance, np.asarray(found.probabilities) / 2.0)
)
#: judges pages by those beside them
comparing = Judging(
    lambda found, *_: Judgement(found.relevance / max(found.relevance.max(initial=0.0), 0.5))
)
moody = Judging(lambda found, _, calls: Judgement(found.relevance / calls))


@pytest.mark.parametrize(
    ("critic", "check"),
    [
        (Unnamed("tea"), "attributes_have_their_types"),
        (sure, "relevance_is_a_probability"),
        (mumbling, "probabilities_sum_to_one"),
        (comparing, "batch_and_order_do_not_matter"),
        (Judging(needs_pages), "empty_batch_is_accepted"),
        (moody, "judgements_can_be_repeated"),
        (Judging(untidy), "pages_are_not_modified"),
        (Judging(greedy), "pages_are_not_modified"),
    ],
)
def test_what_is_wrong_with_a_critic_is_found(critic: KeywordCritic, check: str) -> None:
    with pytest.raises((AssertionError, IndexError)):
        dict(critic_checks(critic))[check]()
    with pytest.raises((AssertionError, IndexError)):
        check_critic(critic)


def test_a_sound_critic_passes_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_critic(KeywordCritic("tea", reads_words=True))
    (tmp_path / "own_critic.py").write_text(
        "def judge(pages):\n    return [min(1.0, len(p.tokens) / 100) for p in pages]\n"
    )
    monkeypatch.chdir(tmp_path)
    check_critic(load_custom("own_critic:judge", ["/Topic"]))


# -- the web in memory ---------------------------------------------------------------------

PAGES = {
    "http://a.example/": "<p>tea <a href=/leaf>leaf</a> <a href=//b.example/x>x</a>",
    "http://a.example/leaf": "<p>more tea <a href=/old>old</a> <a href=/none>none</a>",
    "http://b.example/x": "<p>tax",
    "http://a.example/new": "<p>new tea",
}
MOVED = {"http://a.example/old": "http://a.example/new"}
WEB = TinyWeb(PAGES, redirects=MOVED)
SEED = "http://a.example/"
ALL = [SEED, "http://a.example/leaf", "http://b.example/x", "http://a.example/old"]


def test_a_web_in_memory_is_a_web() -> None:
    assert list(WEB.urls()) == [*PAGES, "http://a.example/old"]
    known = WEB.resolve(["https://a.example/leaf", "http://a.example/none"])
    assert known == ["http://a.example/leaf", None]
    moved, none = WEB.fetch("http://a.example/old"), WEB.fetch("http://a.example/none")
    assert moved is not None
    assert (moved.status, none) == (301, None)
    assert WEB.fingerprint == TinyWeb(PAGES, redirects=MOVED).fingerprint
    assert WEB.fingerprint != TinyWeb(PAGES).fingerprint
    with pytest.raises(ValueError, match="is not an absolute http"):
        TinyWeb({"/leaf": ""})


def test_a_web_in_memory_is_crawled_by_the_real_loop(tmp_path: Path) -> None:
    found = crawl(tmp_path / "c", WEB, [SEED], critic=KeywordCritic("tea"), budget=2)
    assert [visit.url for visit in found] == ALL[:2]
    found += crawl(tmp_path / "c", WEB, [SEED], critic=KeywordCritic("tea"))
    assert {visit.url for visit in found} == {*PAGES, "http://a.example/old"}
    assert [visit.relevance for visit in found if visit.url.endswith("old")] == [0.0]
    own = crawl(
        tmp_path / "d", WEB, [SEED], critic=KeywordCritic("tea"), strategy=ShortPaths, budget=3
    )
    assert len(own) == 3


def test_a_rehearsal_is_what_the_loop_does(tmp_path: Path) -> None:
    web = TinyWeb(PAGES)
    rehearsed = SimulatedCrawl(
        BestFirst(StrategyContext(KeywordCritic("tea"), 0, web)),
        web,
        [SEED],
        critic=KeywordCritic("tea"),
    ).run(10)
    real = crawl(tmp_path / "c", web, [SEED], critic=KeywordCritic("tea"))
    assert rehearsed.order == [visit.url for visit in real] == ALL[:3]
    with pytest.raises(ValueError, match="is not a URL of the web"):
        SimulatedCrawl(rehearsed.strategy, web, ["http://c.example/"], critic=KeywordCritic("tea"))


def test_a_web_in_memory_can_be_written_for_scrapy(tmp_path: Path) -> None:
    recorded = open_web(str(WEB.write(tmp_path / "tiny.warc.gz")))
    assert {*recorded.urls()} == {*WEB.urls()}
    for url in WEB.urls():
        mine, theirs = WEB.fetch(url), recorded.fetch(url)
        assert mine is not None
        assert theirs is not None
        assert (mine.status, mine.body) == (theirs.status, theirs.body)


def test_pytest_is_not_needed() -> None:
    """Neither for the import, nor for a check."""
    program = (
        "import sys; sys.modules['pytest'] = None; from focuscrawl.testing import *;"
        "from focuscrawl.strategies.baselines import BestFirst;"
        "strategy_checks(BestFirst)[0][1]();"
        "assert 'scrapy' not in sys.modules"
    )
    done: Any = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
