"""What workers learn together is what one worker would have learned."""

from __future__ import annotations

import numpy as np
import pytest

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.distributed_training import Pool, SharedTraining
from focuscrawl.apprentice.options import EVIDENCE, LEARNERS, Options
from focuscrawl.apprentice.serialization import pack

from .toy_crawl import Crawl, Toy


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("evidence", EVIDENCE)
def test_a_pool_of_one_learns_what_the_one_would(learner: str, evidence: str) -> None:
    options = Options(batch=500, learner=learner, evidence=evidence)
    apprentice = Apprentice(options)
    training = SharedTraining(apprentice)
    Crawl(Toy(), apprentice).run(60)
    pool = Pool(options)
    judgements = training.hand_in()
    assert judgements is not None
    assert training.hand_in() is None
    pool.add(1, judgements.to_bytes())
    state, instances, metrics = training.train(pool)
    taken_up = training.take_up(1, state)
    apprentice.adopt(taken_up)
    alone = Apprentice(options)
    Crawl(Toy(), alone).run(60)
    lesson = alone.learn()
    assert instances == lesson.instances
    assert metrics["judged"] == lesson.metrics["judged"]
    assert taken_up.urls.tolist() == lesson.urls.tolist()
    assert np.allclose(taken_up.scores, lesson.scores, atol=1e-4)
    assert apprentice.version == 1
    assert pack(taken_up.scorer.learner) == state


def test_a_model_can_be_taken_up_before_there_is_anything_to_score() -> None:
    apprentice = Apprentice(Options())
    apprentice.adopt(SharedTraining(apprentice).take_up(4, pack(apprentice.scorer.learner)))
    assert apprentice.version == 4
    assert Crawl(Toy(), apprentice).run(20).harvest >= 0.0


def test_what_a_page_opened_is_learned_later() -> None:
    options = Options(batch=500)
    apprentice = Apprentice(options)
    crawl, training = Crawl(Toy(), apprentice), SharedTraining(apprentice)
    pool = Pool(options)
    for _ in range(6):
        crawl.run(10)
        judgements = training.hand_in()
        assert judgements is not None
        pool.add(3, judgements.to_bytes())
    values = np.concatenate([value for _, _, value in pool._parts])
    judged = apprentice.memory.buffer.judged.urls
    labels = apprentice.memory.labels.of(judged, apprentice.table.y.data[judged])
    assert np.array_equal(values, labels[1])
    assert len(pool) == len(judged)


def test_a_pool_forgets_what_is_too_old() -> None:
    options = Options(batch=500, memory=20)
    apprentices = {worker: Apprentice(options) for worker in (1, 2)}
    crawls = {worker: Crawl(Toy(seed=worker), each) for worker, each in apprentices.items()}
    trainings = {worker: SharedTraining(each) for worker, each in apprentices.items()}
    pool = Pool(options)
    for _ in range(8):
        for worker, crawl in crawls.items():
            crawl.run(5)
            judgements = trainings[worker].hand_in()
            assert judgements is not None
            pool.add(worker, judgements.to_bytes())
    assert 20 <= len(pool) < 26


def test_what_others_fetched_counts_as_known() -> None:
    toy = Toy()
    apprentice = Apprentice(Options(batch=500))
    crawl = Crawl(toy, apprentice).run(30)
    elsewhere = max(crawl.queue)
    before = apprentice.n_judged
    apprentice.hear(elsewhere, 1.0)
    apprentice.hear(elsewhere, 0.0)  # said twice, it is known once
    assert apprentice.table.y.data[elsewhere] == 1.0
    assert apprentice.n_judged == before
    assert elsewhere not in apprentice.rescore()[0]


def test_pages_taken_in_together_say_what_they_say_one_by_one() -> None:
    toy = Toy()
    one_by_one, together = Apprentice(Options()), Apprentice(Options())
    pages = []
    for u in (3, 5, 8, 13):
        pages.append((u, toy.facts(u, one_by_one.new(toy.targets[u]))))
        one_by_one.expand(*pages[-1])
    urls, scores = together.expand_all(pages)
    assert sorted(one_by_one.rescore()[0].tolist()) == urls.tolist()
    for url, score in zip(urls.tolist(), scores.tolist(), strict=True):
        parts = together.scorer.explain(url)
        assert parts == pytest.approx(one_by_one.scorer.explain(url))
        assert score == pytest.approx(1.0 / (1.0 + np.exp(-sum(parts.values()))))
    assert together.rescore()[1].tolist() == scores.tolist()
