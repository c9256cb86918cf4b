"""What is learned from, by option; and what one crawl hands to the next."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from focuscrawl.apprentice.apprentice import Apprentice, read_apprentice, save_apprentice
from focuscrawl.apprentice.hashing import SparseRows
from focuscrawl.apprentice.instances import SPACE
from focuscrawl.apprentice.learners import NaiveBayesLearner
from focuscrawl.apprentice.options import DEFAULT_GROUPS, LEARNERS, Options
from focuscrawl.errors import UserError

from .toy_crawl import Crawl, Pages, Toy

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from focuscrawl.apprentice.link_table import PageFacts


class Family(Toy):
    """A toy in which every URL has one parent, and a feature of its own unless `kind` is given."""

    def __init__(self, kind: NDArray[np.int64] | None = None) -> None:
        super().__init__(n=900, out=6)
        self.relevance = np.random.default_rng(5).random(900)
        self.targets = (2 + 6 * np.arange(900)[:, None] + np.arange(6)) % 900
        self.kind = np.arange(900) if kind is None else kind

    def facts(self, u: int, new: NDArray[np.bool_]) -> PageFacts:
        facts = super().facts(u, new)
        kinds = self.kind[facts.new].astype(np.int32)
        return replace(facts, urls=SparseRows(kinds, facts.urls.indptr))


def learned_from(apprentice: Apprentice) -> set[int]:
    learner = apprentice.learn().scorer.learner
    assert isinstance(learner, NaiveBayesLearner)
    addresses = learner.counts_.sum(axis=0)[SPACE : 2 * SPACE]
    return set(np.flatnonzero(addresses).tolist())


@pytest.mark.parametrize("groups", [DEFAULT_GROUPS, ("context", "url")])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 1.0])
def test_contrast_keeps_what_differs_most_from_its_page(
    share: float, groups: tuple[str, ...]
) -> None:
    toy = Family()
    apprentice = Apprentice(
        Options(batch=900, learner="nb", tunnel=False, contrast=share, groups=groups)
    )
    rng = np.random.default_rng(0)
    judged = rng.permutation(np.arange(2, 122))[:40].tolist()  # grandchildren, and their parents
    for u in [0, 1, *range(2, 20), *(v for v in judged if v >= 20)]:
        apprentice.observe(u, float(toy.relevance[u]))
        if u < 20:
            apprentice.expand(u, toy.facts(u, apprentice.new(toy.targets[u])))
    fetched = [*range(2, 20), *(v for v in judged if v >= 20)]
    assert apprentice.n_judged == len(fetched)
    contrast = {v: abs(toy.relevance[(v - 2) // 6] - toy.relevance[v]) for v in fetched}
    most = sorted(fetched, key=lambda v: -contrast[v])[: round(share * len(fetched))]
    assert learned_from(apprentice) == set(most)


def test_only_the_latest_are_remembered() -> None:
    toy = Family()
    apprentice = Apprentice(Options(batch=900, memory=5, learner="nb"))
    for u in range(20):
        apprentice.observe(u, 0.0)
        apprentice.expand(u, toy.facts(u, apprentice.new(toy.targets[u])))
    assert learned_from(apprentice) == {15, 16, 17, 18, 19}


def test_a_learner_that_remembers_is_told_once() -> None:
    crawl = Crawl(Family(), Apprentice(Options(batch=10, learner="nb")), lag=3).run(45)
    learner = crawl.lessons[-1].scorer.learner
    assert isinstance(learner, NaiveBayesLearner)
    assert learner.instances_.sum() == 38  # of 40 fetches, but the seeds
    assert learner.counts_[:, SPACE : 2 * SPACE].sum(axis=0).max() == 1.0
    again = crawl.resumed(Apprentice(Options(batch=10, learner="nb"))).run(8)
    learner = again.lessons[-1].scorer.learner
    assert isinstance(learner, NaiveBayesLearner)
    assert learner.instances_.sum() == 48


@pytest.mark.parametrize("tunnel", [True, False])
def test_pages_that_lead_to_relevant_ones_are_worth_fetching_if_asked(tunnel: bool) -> None:
    kind = np.zeros(900, np.int64)
    portals, dull = (2, 3, 4), (5, 6, 7)
    kind[list(portals)], kind[list(dull)] = 1, 2
    toy = Family(kind)
    toy.relevance[:], toy.good[:], toy.noise[:] = 0.0, True, 10
    for portal in portals:
        toy.relevance[toy.targets[portal]] = 1.0
    apprentice = Apprentice(Options(batch=900, groups=("url",), tunnel=tunnel))
    children = np.concatenate([toy.targets[u] for u in (2, 3, 5, 6)]).tolist()
    for u in (0, 2, 5, 3, 6, *children):
        apprentice.observe(u, float(toy.relevance[u]))
        if u < 8:
            apprentice.expand(u, toy.facts(u, apprentice.new(toy.targets[u])))
    for _ in range(5):
        lesson = apprentice.learn()
        apprentice.adopt(lesson)
    score = dict(zip(lesson.urls.tolist(), lesson.scores.tolist(), strict=True))
    if tunnel:
        assert score[4] > score[7] + 0.1
    else:
        assert abs(score[4] - score[7]) < 0.01


KEPT: dict[str, Any] = {"groups": ("context", "anchor", "cocitation"), "d_max": 2}


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_that_begins_with_another_goes_on_as_it_was(learner: str, tmp_path: Path) -> None:
    options = Options(**KEPT, learner=learner, evidence="first", batch=10, contrast=0.5)
    first = Crawl(Pages(options), Apprentice(options)).run(30).apprentice
    save_apprentice(first.export(), tmp_path / "model", {"topic": "/Boats"})
    asked = Options(batch=7, d_max=4, learner="logistic")
    exported = read_apprentice(tmp_path / "model")
    second = Apprentice.warm_started(asked, exported)
    assert asdict(second.options) == {
        **asdict(asked),
        **KEPT,
        "learner": learner,
        "evidence": "first",
    }
    for one, other in zip(
        first.scorer.learner.linear(), second.scorer.learner.linear(), strict=True
    ):
        assert np.array_equal(one, other)
    assert second.memory.observed == second.version == 0
    # what it learns on survives an interruption
    crawl = Crawl(Pages(options), second).run(20)
    again = crawl.resumed(Apprentice.warm_started(asked, exported))
    assert again.queue == crawl.queue
    again.run(15)
    assert again.order == crawl.run(15).order


def test_there_must_be_one_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no apprentice"):
        read_apprentice(tmp_path)
    assert Apprentice.warm_started(Options(batch=3), None).options.batch == 3
