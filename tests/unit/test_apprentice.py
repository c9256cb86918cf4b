"""The apprentice in a crawl: learning, resuming, forgetting, and what it hands to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from longer import long

from focuscrawl.apprentice.apprentice import Apprentice, read_apprentice, save_apprentice
from focuscrawl.apprentice.evidence import RelevanceRates, select_pages_to_forget
from focuscrawl.apprentice.hashing import SparseRows
from focuscrawl.apprentice.learners import NaiveBayesLearner
from focuscrawl.apprentice.link_features import HASH_SIZE
from focuscrawl.apprentice.link_table import LinkTable, PageFeatures
from focuscrawl.apprentice.options import (
    DEFAULT_GROUPS,
    EVIDENCE,
    GROUPS,
    INPUTS,
    LEARNERS,
    Options,
)
from focuscrawl.errors import UserError

from .toy_crawl import Crawl, Pages, Toy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .toy_crawl import Web

ALL = Options(batch=10)
FEW = Options(batch=10, links=150)  # a page has 12


def check_resumed(crawl: Crawl, options: Options, more: int) -> None:
    """Resume a crawl as another: both must go on alike."""
    again = crawl.resumed(Apprentice(options))
    assert again.queue == crawl.queue
    again.run(more)
    crawl.run(more)
    assert again.order == crawl.order
    assert again.queue == crawl.queue
    assert again.apprentice.version == crawl.apprentice.version


@pytest.mark.parametrize(("slow", "lag"), [(False, 0), (False, 5), (True, 5)])
@pytest.mark.parametrize(
    ("options", "stop"),
    [
        *((ALL, stop) for stop in (5, 12, 43)),
        *((FEW, stop) for stop in (23, 43)),
        *long((FEW, 12), (FEW, 37), (FEW, 65), (ALL, 37), (ALL, 40), (ALL, 45)),
    ],
)
def test_resumed_it_goes_on_as_if_nothing_had_happened(
    options: Options, stop: int, slow: bool, lag: int
) -> None:
    crawl = Crawl(Toy(), Apprentice(options), lag=lag, slow=slow).run(stop)
    check_resumed(crawl, options, 70 - stop)
    check_resumed(crawl, options, 1)


@pytest.mark.parametrize(
    "groups",
    [(), *((name,) for name in GROUPS), tuple(GROUPS)],
    ids=lambda groups: "+".join(groups[:2]) or "none",
)
def test_every_group_by_itself_and_none_and_all(groups: tuple[str, ...]) -> None:
    options = Options(batch=12, groups=groups)
    crawl = Crawl(Pages(options), Apprentice(options), lag=3).run(30)
    check_resumed(crawl, options, 11)
    parts = crawl.apprentice.scorer.explain(next(iter(crawl.queue)))
    if "url" not in groups:
        assert parts["address (words)"] == 0.0
    assert len(parts) == len(INPUTS) + 3 + (22 if "cocitation" in groups else 0)
    # a group that is on must be able to tell URLs apart
    assert (len(set(crawl.queue.values())) > 1) == bool(groups)


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    "more", [{}, {"contrast": 0.5, "tunnel": False, "graded": False, "memory": 9}]
)
def test_every_learner_by_every_rule_of_evidence(
    learner: str, evidence: str, more: dict[str, Any]
) -> None:
    options = Options(batch=12, learner=learner, evidence=evidence, **more)
    crawl = Crawl(Pages(options), Apprentice(options), lag=3).run(30)
    check_resumed(crawl, options, 11)
    assert crawl.apprentice.version == 3
    if not more:
        assert crawl.harvest > 0.5  # 0.4 of the pages are good


# -- lessons -----------------------------------------------------------------------------------


def test_it_learns_which_links_to_follow() -> None:
    toy = Toy()
    crawl = Crawl(toy, Apprentice(ALL)).run(120)
    assert crawl.harvest > 0.8 > 2 * toy.good.mean() - 0.1
    assert crawl.apprentice.version == 12


def test_a_lesson_is_about_what_was_known_when_it_started() -> None:
    quick, slow = (
        Crawl(Toy(), Apprentice(ALL), lag=5, slow=slow).run(70) for slow in (False, True)
    )
    assert quick.order == slow.order
    assert quick.queue == slow.queue
    assert len(quick.lessons) == len(slow.lessons) == 6
    for one, other in zip(quick.lessons, slow.lessons, strict=True):
        assert one.metrics == other.metrics
        assert np.array_equal(one.scores, other.scores)
    at_once = Crawl(Toy(), Apprentice(ALL)).run(70)
    assert at_once.order != quick.order


def test_a_lesson_does_not_disturb_what_goes_on_meanwhile() -> None:
    toy = Toy()
    apprentice = Crawl(toy, Apprentice(ALL)).run(45).apprentice
    urls, before = apprentice.rescore()
    lesson = []
    thread = Thread(target=lambda: lesson.append(apprentice.learn()))
    thread.start()
    thread.join()
    assert np.array_equal(apprentice.rescore()[1], before)
    u = int(urls[0])
    toy.visit(apprentice, [u])
    late, scores = apprentice.adopt(lesson[0])
    assert late.tolist() == np.unique(toy.targets[u]).tolist()
    assert np.isfinite(scores).all()
    assert apprentice.version == 5


def test_metrics_of_a_lesson() -> None:
    apprentice = Crawl(Toy(), Apprentice(ALL)).run(59).apprentice
    urls, before = apprentice.rescore()
    lesson = apprentice.learn()
    metrics = lesson.metrics
    assert lesson.urls.tolist() == urls.tolist()
    assert metrics["waiting"] == len(lesson.urls)
    assert metrics["drift"] == pytest.approx(np.abs(lesson.scores - before).mean())
    for name, scores in (("before", before), ("after", lesson.scores)):
        bins = np.minimum((scores * 10).astype(int), 9)
        assert metrics[f"histogram_{name}"] == np.bincount(bins, minlength=10).tolist()
    assert 0.0 <= float(metrics["auc"]) <= 1.0  # type: ignore[arg-type]
    assert float(metrics["judged"]) > 40  # type: ignore[arg-type]
    apprentice.adopt(lesson)
    urls, scores = apprentice.rescore()
    parts = apprentice.scorer.explain(int(urls[3]))
    assert np.isclose(1 / (1 + np.exp(-sum(parts.values()))), scores[3])
    assert set(INPUTS) < set(parts)


def test_memory_is_bounded() -> None:
    crawl = Crawl(Toy(), Apprentice(Options(batch=10, memory=30))).run(80)
    assert crawl.apprentice.learn().instances == 30


class Family(Toy):
    """A toy in which every URL has one parent, and a feature of its own unless `kind` is given."""

    def __init__(self, kind: NDArray[np.int64] | None = None) -> None:
        super().__init__(n=900, out=6)
        self.relevance = np.random.default_rng(5).random(900)
        self.targets = (2 + 6 * np.arange(900)[:, None] + np.arange(6)) % 900
        self.kind = np.arange(900) if kind is None else kind

    def features(self, u: int, new: NDArray[np.bool_]) -> PageFeatures:
        features = super().features(u, new)
        kinds = self.kind[features.new].astype(np.int32)
        return replace(features, urls=SparseRows(kinds, features.urls.indptr))


def learned_from(apprentice: Apprentice) -> set[int]:
    learner = apprentice.learn().scorer.learner
    assert isinstance(learner, NaiveBayesLearner)
    addresses = learner.counts_.sum(axis=0)[HASH_SIZE : 2 * HASH_SIZE]
    return set(np.flatnonzero(addresses).tolist())


@pytest.mark.parametrize("groups", [DEFAULT_GROUPS, ("context", "url")])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_contrast_keeps_what_differs_most_from_its_page(
    share: float, groups: tuple[str, ...]
) -> None:
    toy = Family()
    apprentice = Apprentice(
        Options(batch=900, learner="nb", tunnel=False, contrast=share, groups=groups)
    )
    drawn = np.random.default_rng(0).permutation(np.arange(20, 122))[:35].tolist()
    toy.visit(apprentice, range(20))
    for u in drawn:  # grandchildren
        apprentice.observe(u, float(toy.relevance[u]))
    fetched = [*range(2, 20), *drawn]
    assert apprentice.n_judged == len(fetched)
    contrast = {v: abs(toy.relevance[(v - 2) // 6] - toy.relevance[v]) for v in fetched}
    most = sorted(fetched, key=lambda v: -contrast[v])[: round(share * len(fetched))]
    assert learned_from(apprentice) == set(most)


def test_only_the_latest_are_remembered() -> None:
    apprentice = Apprentice(Options(batch=900, memory=5, learner="nb"))
    Family().visit(apprentice, range(20))
    assert learned_from(apprentice) == {15, 16, 17, 18, 19}


def test_a_learner_that_remembers_learns_each_once() -> None:
    options = Options(batch=10, learner="nb")
    crawl = Crawl(Family(), Apprentice(options), lag=3).run(45)
    learner = crawl.lessons[-1].scorer.learner
    assert isinstance(learner, NaiveBayesLearner)
    assert learner.instances_.sum() == 38  # of 40 fetches, but the seeds
    assert learner.counts_[:, HASH_SIZE : 2 * HASH_SIZE].sum(axis=0).max() == 1.0
    learner = crawl.resumed(Apprentice(options)).run(8).lessons[-1].scorer.learner
    assert isinstance(learner, NaiveBayesLearner)
    assert learner.instances_.sum() == 48


@pytest.mark.parametrize("tunnel", [True, False])
def test_pages_that_lead_to_relevant_ones_are_worth_fetching_if_asked(tunnel: bool) -> None:
    kind = np.zeros(900, np.int64)
    kind[[2, 3, 4]], kind[[5, 6, 7]] = 1, 2  # portals, and dull pages
    toy = Family(kind)
    toy.relevance[:], toy.good[:], toy.noise[:] = 0.0, True, 10
    toy.relevance[toy.targets[[2, 3, 4]]] = 1.0
    apprentice = Apprentice(Options(batch=900, groups=("url",), tunnel=tunnel))
    toy.visit(apprentice, (0, 2, 5, 3, 6))
    for u in toy.targets[[2, 3, 5, 6]].ravel().tolist():
        apprentice.observe(u, float(toy.relevance[u]))
    for _ in range(5):
        lesson = apprentice.learn()
        apprentice.adopt(lesson)
    score = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    if tunnel:
        assert score[4] > score[7] + 0.1
    else:
        assert abs(score[4] - score[7]) < 0.01


# -- from crawl to crawl -----------------------------------------------------------------------

KEPT: dict[str, Any] = {"groups": ("context", "anchor", "cocitation"), "d_max": 2}


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_that_starts_with_another_goes_on_as_it_was(learner: str, tmp_path: Path) -> None:
    options = Options(**KEPT, learner=learner, evidence="first", batch=10, contrast=0.5)
    first = Crawl(Pages(options), Apprentice(options)).run(30).apprentice
    save_apprentice(first.export(), tmp_path / "model", {"topic": "/Boats"})
    asked = Options(batch=7, d_max=4, learner="logistic")
    exported = read_apprentice(tmp_path / "model")
    second = Apprentice.warm_started(asked, exported)
    kept = {**KEPT, "learner": learner, "evidence": "first"}
    assert asdict(second.options) == asdict(asked) | kept
    before, after = (each.scorer.learner.linear() for each in (first, second))
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert second.memory.observed == second.version == 0
    # what it learns on survives an interruption
    crawl = Crawl(Pages(options), second).run(20)
    again = crawl.resumed(Apprentice.warm_started(asked, exported))
    assert again.queue == crawl.queue
    assert again.run(15).order == crawl.run(15).order


def test_a_warm_start_is_ahead() -> None:
    exported = Crawl(Toy(seed=0), Apprentice(ALL)).run(200).apprentice.export()
    other, warm = Toy(seed=1), Apprentice.warm_started(ALL, exported)
    fresh = Crawl(other, Apprentice(ALL)).run(40).harvest
    assert Crawl(other, warm).run(40).harvest > fresh


def test_there_must_be_one_to_start_with(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no apprentice"):
        read_apprentice(tmp_path)
    assert Apprentice.warm_started(Options(batch=3), None).options.batch == 3


# -- links, known and forgotten ----------------------------------------------------------------


def test_a_page_without_links_and_a_failed_seed_are_no_error() -> None:
    apprentice = Apprentice()
    apprentice.observe(3, 0.0)
    bare = replace(
        Toy().features(0, np.zeros(12, bool)),
        targets=np.zeros(0, np.int64),
        reading=np.zeros(0, np.float32),
        links=SparseRows.empty(0),
        position=np.zeros(0, np.int32),
    )
    assert [len(each) for each in apprentice.expand(0, bare)] == [0, 0, 0]
    assert not len(apprentice.rescore()[0])


def test_links_a_template_repeats_count_little_more_than_once() -> None:
    toy, known = Toy(), LinkTable()
    features = toy.features(0, np.ones(12, bool))
    for u in (0, 7, 14, 21, 1):  # all but the last on host 0
        known.add(u, replace(features, own_keys=toy.keys[u : u + 1]))
    weight = known.weight.data.reshape(5, 12)
    assert np.allclose(weight[3], 0.5)
    assert np.allclose(weight[4], 1.0)


def test_the_first_link_is_the_one_that_made_its_target_known() -> None:
    toy, known = Toy(), LinkTable()
    targets = np.array([5, 6, 5, 7, 0, 6, 8, 9, 9, 9, 9, 10])
    new = np.array([5, 6, 7, 8, 9, 10])  # not 0: as if its address were known
    features = replace(toy.features(0, np.ones(12, bool)), targets=targets)
    urls = SparseRows(np.zeros(6, np.int32), np.arange(7))
    known.add(0, replace(features, new=new, urls=urls, url_keys=toy.keys[new]))
    assert np.flatnonzero(known.first.data).tolist() == [0, 1, 3, 6, 7, 11]
    known.add(1, replace(features, new=new[:0], urls=SparseRows.empty(0), url_keys=toy.keys[:0]))
    assert not known.first.data[12:].any()
    assert len(known) == 24


def test_rates_are_shrunk_to_those_of_the_larger_set() -> None:
    rates = RelevanceRates(weight=2.0)
    for _ in range(6):
        rates.observe(np.array([1, 2, 0], np.uint32), 1.0)
        rates.observe(np.array([1, 3, 0], np.uint32), 0.0)
    keys = np.array([[1, 2, 0], [1, 3, 0], [1, 4, 0], [9, 0, 0]], np.uint32)
    rate = rates.rates(keys)
    assert rate[0] > 0.8 > rate[2] > 0.2 > rate[1]
    again = RelevanceRates().set_state(rates.get_state())
    assert np.array_equal(again.rates(keys), rate)


def test_links_are_bounded() -> None:
    crawl, most = Crawl(Toy(), Apprentice(FEW)), 0
    for _ in range(100):
        crawl.run(1)
        most = max(most, len(crawl.apprentice.table))
    table = crawl.apprentice.table
    assert table.links_ever == 1200
    assert 0.75 * 150 - 12 < most <= 150 + 10 * 12
    assert len(table.pages) * 12 == len(table)


def test_a_sixth_of_the_links_is_enough_to_go_on_well() -> None:
    toy = Toy(n=2000)
    crawl = Crawl(toy, Apprentice(Options(batch=10, links=600))).run(300)
    assert crawl.harvest > 2 * toy.good.mean()
    lost = [url for url, score in crawl.queue.items() if score == 0.0]
    assert len(lost) > 100
    assert crawl.run(1).order[-1] not in lost


def test_pages_with_nothing_left_to_fetch_go_first() -> None:
    crawl = Crawl(Toy(), Apprentice(ALL)).run(80)
    known = crawl.apprentice.table
    promise = np.full(known.n_urls, -1.0)
    waiting = [url for url in crawl.queue if url < known.n_urls]
    promise[waiting] = [crawl.queue[url] for url in waiting]
    promise[known.target.data[np.isin(known.page.data, [3, 7, 40])]] = -1.0
    out = select_pages_to_forget(known, len(known), len(known.pages), promise, 103 * 12)
    best = np.array([promise[known.target.data[known.page.data == u]].max() for u in range(80)])
    done = set(np.flatnonzero(best == -1.0))
    assert {3, 7, 40} <= done <= set(np.flatnonzero(out))
    assert best[out].max() <= best[~out].min()
    assert np.sum(~out) == 77


def test_what_only_led_to_fetched_pages_is_not_missed() -> None:
    crawl = Crawl(Toy(n=90, out=3), Apprentice(ALL)).run(60)
    known = crawl.apprentice.table
    done = np.array([set(crawl.web.targets[u].tolist()) <= {*crawl.order} for u in crawl.order])
    assert done.any()
    left, y = known.without_pages(done, len(known)), known.y.data
    before, after = (crawl.apprentice.scorer.with_table(each) for each in (known, left))
    was_waiting, waiting = (
        each.rebuild_evidence(len(each.table), y)[0] for each in (before, after)
    )
    assert waiting.tolist() == was_waiting.tolist()
    margins = before.evidence.margins(waiting)
    assert after.evidence.margins(waiting) == pytest.approx(margins)


@pytest.mark.parametrize("make", [Toy, partial(Pages, Options(groups=tuple(GROUPS)))])
def test_pages_that_are_added_at_once_give_the_state_of_pages_added_in_turn(
    make: Callable[[], Web],
) -> None:
    web, at_once, in_turn = make(), Apprentice(), Apprentice()
    urls = np.array([3, 9, 4, 3, 0, 60])  # one page twice; some pages link to others
    new = np.ones(web.targets.shape[1], bool)
    records = [web.features(url, new).to_bytes() for url in urls.tolist()]
    known, _ = at_once.expand_pages(urls, PageFeatures.from_records(records))
    for url, record in zip(urls.tolist(), records, strict=True):
        in_turn.expand(url, PageFeatures.from_bytes(record))
    one, other = at_once.table, in_turn.table
    for name in ("source", "target", "weight", "first", "position", "page", "expansion", "y"):
        assert np.array_equal(getattr(one, name).data, getattr(other, name).data, equal_nan=True)
    assert np.array_equal(one.keys(known), other.keys(known))
    for mine, its in (
        (one.features_of_urls(known), other.features_of_urls(known)),
        (one.links.rows(len(one)), other.links.rows(len(other))),
        (one.pages.rows(len(urls)), other.pages.rows(len(urls))),
    ):
        np.testing.assert_equal([*mine], [*its])
    rates, same = (each.memory.outcomes.get_state() for each in (at_once, in_turn))
    assert all(np.array_equal(rates[name], same[name]) for name in same)


def test_pages_are_split_into_parts_and_joined_again() -> None:
    pages = Pages(Options(groups=tuple(GROUPS)))
    records = [pages.features(u, np.ones(8, bool)).to_bytes() for u in range(5)]
    features = PageFeatures.from_records(records)
    assert features.to_records() == records
    page, part = features.page_of("targets"), features.targets % 3
    order = np.lexsort((part, page))
    places, number = np.unique(3 * page + part, return_inverse=True)
    parts = features.regroup(order, number[order], places // 3).to_records()
    for place, record in zip(places.tolist(), parts, strict=True):
        alone = PageFeatures.from_bytes(record)
        assert set(alone.targets % 3) == {place % 3}
        assert np.array_equal(np.unique(alone.targets), np.sort(alone.new))
    first = np.searchsorted(places // 3, np.arange(5))
    again = PageFeatures.from_records(parts).merge(first)
    for name in ("targets", "position", "reading", "around", "page_values", "vocabulary"):
        assert np.array_equal(getattr(again, name), getattr(features, name))
    assert np.array_equal(again.links.indices, features.links.indices)
