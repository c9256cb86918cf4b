"""What travels between workers, where it can be seen without a database."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

from focuscrawl.apprentice.apprentice import Apprentice
from focuscrawl.apprentice.options import Options
from focuscrawl.apprentice.page_facts import PageFacts
from focuscrawl.foundation.urls import identity
from focuscrawl.store import VisitRecord
from focuscrawl.store.records import LinkRow
from focuscrawl.store.schema import FETCHED, QUEUED
from focuscrawl.workers.duplicates import SharedDuplicates
from focuscrawl.workers.outage import Outage
from focuscrawl.workers.row_translation import rows_of
from focuscrawl.workers.url_ids import SharedUrlTable

from .toy_crawl import Toy

if TYPE_CHECKING:
    import pytest


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
