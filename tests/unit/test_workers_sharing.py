"""What several workers share, where it can be seen without a database."""

from __future__ import annotations

from collections import Counter
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.distributed_training import Pool, SharedTraining
from focuscrawl.apprentice.options import EVIDENCE, LEARNERS, Options
from focuscrawl.apprentice.page_facts import PageFacts
from focuscrawl.apprentice.serialization import pack
from focuscrawl.errors import UserError
from focuscrawl.frontier import Frontier
from focuscrawl.frontier.preview import outlook
from focuscrawl.store import VisitRecord
from focuscrawl.store.postgres import read_database_url
from focuscrawl.store.records import LinkRow
from focuscrawl.store.schema import FETCHED, QUEUED
from focuscrawl.workers.budget import SLACK, BudgetShare, lot, nearly, threshold
from focuscrawl.workers.duplicates import SharedDuplicates
from focuscrawl.workers.outage import Outage
from focuscrawl.workers.recent_fetches import LinkYield
from focuscrawl.workers.row_translation import rows_of
from focuscrawl.workers.url_ids import SharedUrlTable, identity

from .toy_crawl import Crawl, Toy

SCORES = st.lists(st.floats(0, 1), max_size=40).map(lambda s: sorted(s, reverse=True))


# -- who may fetch, and how much ---------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(SCORES, min_size=1, max_size=5), st.floats(0, 50))
def test_as_many_links_are_in_reach_as_can_be_fetched(
    offers: list[list[float]], pace: float
) -> None:
    arrays = [np.array(each) for each in offers]
    (limit,) = {  # all workers see the same
        threshold(mine, arrays[:i] + arrays[i + 1 :], pace, 0.1) for i, mine in enumerate(arrays)
    }
    together = np.concatenate(arrays)
    reach = max(len(offers), np.ceil(SLACK * pace * 0.1))
    assert (together > limit).sum() < max(reach, 1) or limit == -np.inf
    assert (together >= limit).sum() >= min(reach, len(together))
    assert nearly(limit) <= limit


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500), st.integers(1, 6), st.lists(st.floats(0, 300), min_size=1))
def test_grants_never_exceed_the_budget_and_reach_it(
    budget: int, workers: int, paces: list[float]
) -> None:
    granted = 0
    for _ in range(budget):
        wanted = lot(budget, granted, workers, paces[granted % len(paces)], 0)
        assert wanted > 0 or granted == budget
        granted += min(wanted, budget - granted)
    assert granted == budget


def test_a_budget_share_counts_what_was_begun() -> None:
    share = BudgetShare(limited=True)
    assert share.left == 0
    share.set(5)
    for _ in range(3):
        share.take()
    share.put_back()
    assert share.left == 3
    assert share.withdraw(2) == 2
    assert share.withdraw(9) == 1
    share.set(4)  # what the database says is what counts
    assert share.left == 2
    assert BudgetShare(limited=False).left == np.inf


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.1, 0.5, 0.9, np.inf])), max_size=30)
)
def test_the_outlook_is_what_comes_next(pushed: list[tuple[int, float]]) -> None:
    frontier = Frontier(per_host=1)
    for url, (host, score) in enumerate(pushed):
        frontier.push(url, host, score / 2)
    frontier.rescore(np.zeros(0, np.int64), np.zeros(0))
    for times in (1.0, 0.7, 0.4):  # what is out of date does not count
        for url, (_, score) in enumerate(pushed[::2]):
            frontier.push(2 * url, pushed[2 * url][0], score * times)
    scores, hosts = outlook(frontier, 10)
    popped, asked = [], []
    while (best := frontier.peek(0.0)) is not None:
        taken = frontier.pop(0.0)
        assert taken is not None
        assert taken == best
        popped.append(frontier.score(taken))
        asked.append(int(frontier._host_of.data[taken]))
        frontier.release(taken, 0.0)
    assert scores == popped[:10]
    assert Counter(zip(scores, hosts, strict=True)) <= Counter(zip(popped, asked, strict=True))


def test_an_outlook_costs_what_is_seen_not_what_waits() -> None:
    frontier, waiting = Frontier(per_host=1), 20_000
    for url in range(waiting):
        frontier.push(url, url % 10, float(url % 97))
    looked_at = 0

    class Counting(np.ndarray[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().__getitem__(key)

    given_away = range(0, waiting, 2)  # all of five hosts
    for url in given_away:
        frontier.remove(url)
    frontier._state.data = frontier._state.data.view(Counting)
    before, _ = outlook(frontier, 128)  # forgets them
    looked_at = 0
    scores, hosts = outlook(frontier, 128)
    assert scores == before
    assert len(scores) == 128
    assert {host % 2 for host in hosts} == {1}
    assert looked_at < waiting / 20


def test_a_host_on_hold_waits_and_the_others_do_not() -> None:
    frontier = Frontier(per_host=1, delay=1.0)
    for url, host in enumerate([0, 1]):
        frontier.push(url, host, 1.0 - url / 10)
    frontier.hold(0, 5.0)
    assert frontier.pop(1.0) == 1
    assert frontier.pop(4.9) is None
    assert frontier.next_ready() is not None
    assert frontier.pop(5.0) == 0


# -- what travels --------------------------------------------------------------------------------


def test_urls_have_the_same_numbers_everywhere() -> None:
    one, other = SharedUrlTable(8), SharedUrlTable(8)
    urls = [f"http://h{i % 3}.example/{i}" for i in range(9)]
    for url in urls:
        one.add(url, 0, None)
    for url in reversed(urls):
        other.add(url, 0, None)
    for number, url in enumerate(urls):
        there = other.number(int(one.ids.data[number]))
        assert there is not None
        assert other[there] == url
        assert other.shard(there) == one.shard(number)
        assert 0 <= one.ids.data[number] == identity(url)
    assert one.numbers([identity(urls[4]), identity(urls[0])]).tolist() == [4, 0]


def test_links_go_to_the_shards_of_their_targets() -> None:
    urls = SharedUrlTable(4)
    hosts = {identity(f"h{i}.example") % 4: f"h{i}.example" for i in range(40)}
    page = urls.add(f"http://{hosts[0]}/", 0, None)
    targets = [urls.add(f"http://{hosts[i % 4]}/{i}", 1, page) for i in range(8)]
    record = VisitRecord(
        links=[LinkRow(i, page, t, "a\0b", i, 0.5, 1) for i, t in enumerate(targets)],
        memo=b"facts",
    )
    urls.held = frozenset([0, 2])
    urls.leave_to_others(targets[1], np.inf)
    urls.flush(record)
    rows = rows_of(
        [record], urls, 7, lambda memo, groups: [bytes(each.tolist()) for each in groups]
    )
    assert len({row[0] for row in rows.links}) == 8
    assert {row[3] for row in rows.links} == {"ab"}
    links = {row["shard"]: row for row in rows.evidence if row["memo"] is not None}
    assert [links[shard]["applied_by"] for shard in range(4)] == [7, 0, 7, 0]
    for shard, row in links.items():
        assert list(row["memo"]) == [shard, shard + 4]  # the links of this shard, in order
        ids = np.frombuffer(row["targets"], "<i8").tolist()
        assert urls.numbers(ids).tolist() == [targets[shard], targets[shard + 4]]
    (first,) = [row for row in rows.evidence if row["memo"] is None]
    assert np.frombuffer(first["scores"], "<f8").tolist() == [np.inf]


def test_what_is_known_from_the_store_is_written_when_it_changes() -> None:
    urls = SharedUrlTable(4)
    stored = [urls.add_stored(f"http://a.example/{i}", 1) for i in range(3)]
    fetched_at_once = urls.add("http://b.example/", 1, None)  # the store may have it as queued
    assert urls.add_stored("http://b.example/", 1) == fetched_at_once
    urls.set_stored(stored[0], QUEUED, 0.5)
    urls.change(stored[1], QUEUED, 0.25)
    urls.change(stored[2], FETCHED, 0.75)
    urls.change(fetched_at_once, FETCHED, 0.75)
    record = VisitRecord()
    urls.flush(record)
    rows = rows_of([record], urls, 7, lambda memo, groups: [memo] * len(groups))
    assert [row[1] for row in rows.urls] == ["http://b.example/"]
    assert rows.changes == {
        int(urls.ids.data[stored[1]]): (0.25, QUEUED),
        int(urls.ids.data[stored[2]]): (0.75, FETCHED),
        int(urls.ids.data[fetched_at_once]): (0.75, FETCHED),
    }
    urls.change(stored[0], FETCHED, 0.5)
    later = VisitRecord()
    urls.flush(later)
    assert later.urls == []
    assert later.changes == [(stored[0], 0.5, FETCHED)]


def test_facts_are_cut_and_numbered_anew() -> None:
    toy = Toy()
    apprentice = Apprentice(Options())
    facts = toy.facts(3, apprentice.new(toy.targets[3]))
    of_url = {url: url % 3 for url in toy.targets[3].tolist()}
    group = np.array([of_url[url] for url in toy.targets[3].tolist()])
    groups = [np.flatnonzero(group == g) for g in range(3)]
    new = []
    for kept, each in zip(groups, facts.parts(groups), strict=True):
        part = PageFacts.from_bytes(each.to_bytes())
        assert part.targets.tolist() == toy.targets[3][kept].tolist()
        new += part.new.tolist()
        assert set(part.new) <= set(part.targets)
        for k, link in enumerate(kept):
            assert part.position[k] == facts.position[link]
            assert part.links.take(np.array([k])).indices.tolist() == (
                facts.links.take(np.array([link])).indices.tolist()
            )
        for k, url in enumerate(part.new):
            (j,) = np.flatnonzero(facts.new == url)
            assert part.url_keys[k].tolist() == facts.url_keys[j].tolist()
            assert part.urls.take(np.array([k])).indices.tolist() == (
                facts.urls.take(np.array([j])).indices.tolist()
            )
    assert sorted(new) == sorted(facts.new)
    again = PageFacts.together([*facts.parts(groups)]).in_order()
    order = np.argsort(facts.position, kind="stable")
    assert again.position.tolist() == facts.position[order].tolist()
    assert sorted(again.targets.tolist()) == sorted(facts.targets.tolist())
    assert sorted(again.links.lengths.tolist()) == sorted(facts.links.lengths.tolist())
    assert again.page_indices.tolist() == facts.page_indices.tolist()
    assert again.in_order() is again
    moved = part.numbered(1000 - part.targets)
    assert moved.targets.tolist() == (1000 - part.targets).tolist()
    assert moved.new.tolist() == (1000 - part.new).tolist()  # each with its own keys, still
    assert part.numbered(part.targets.copy()) is part


def test_a_twin_on_another_worker_is_found() -> None:
    urls = SharedUrlTable(4)
    duplicates = SharedDuplicates(urls)
    duplicates.hear(b"digest", "http://a.example/")
    found = duplicates.find(b"digest", ["http://b.example/"])
    assert found is not None
    assert urls[found] == "http://a.example/"
    assert duplicates.find(b"another", ["http://b.example/"]) is None


# -- a store that is away ------------------------------------------------------------------------


def test_an_outage_is_said_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage()
    outage.over()  # there was none
    for _ in range(2):
        threads = [Thread(target=outage.failed, args=("refused",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outage.on
        outage.over()
        outage.over()
        assert not outage.on
    began, ended, *again = [record.getMessage() for record in caplog.records]
    assert began == "the store is away, trying again until it is back: refused"
    assert ended == "the store is back after 0 s; attempts that failed: 20"
    assert again == [began, ended]


# -- what is learned -----------------------------------------------------------------------------


def brought(finds: LinkYield, scores: list[float], *, times: int = 200) -> int:
    for _ in range(times):
        finds.count(0.8, scores)
    return finds.stands_for(128)


def test_a_link_stands_for_what_it_will_bring() -> None:
    assert brought(LinkYield(), []) == 1
    assert brought(LinkYield(), [0.7]) == 1  # poorer than what led to its page
    assert brought(LinkYield(), [0.9]) == brought(LinkYield(), [0.9, 0.8, 0.1]) == 128
    each_other = LinkYield()
    for _ in range(100):
        brought(each_other, [0.79], times=1)
        fetches = brought(each_other, [], times=1)
    assert fetches == 2  # a half each: 1 + 1/2 + 1/4 + ...


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


# -- what a user writes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:geheim@h/d",
        "postgresql://u:geheim@h:port/d",
        "postgresql://u:geheim@h/",
        "postgresql://u:geheim@h/d?crawl=pg_mine",
        "postgresql://u:geheim@h/d?crawl=Drop%20table",
        "postgresql://u@h/d?password=geheim",
        "geheim",
    ],
)
def test_a_wrong_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UserError) as refused:
        read_database_url(url)
    assert "geheim" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_database_url_is_shown_without_user_and_password() -> None:
    database = read_database_url("postgresql://me:geheim@h:5433/d?crawl=cycling&sslmode=require")
    assert database.shown == "postgresql://h:5433/d?crawl=cycling"
    assert database.url.query == {"sslmode": "require"}
    assert read_database_url("postgres:///d").name == "focuscrawl"
