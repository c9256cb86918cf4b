"""How complete a crawl is, by its own estimate, and the rules that end it by that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from focuscrawl.completeness.recall_estimate import (
    ESTIMATES_FILE,
    EstimateLog,
    RecallEstimate,
    RecallEstimator,
    read_estimates,
)
from focuscrawl.completeness.stop_rules import STOP_EXPRESSION, StopExpression
from focuscrawl.errors import UserError
from focuscrawl.extensions.metrics_collector import recall_metrics
from focuscrawl.report.summary import Summary
from focuscrawl.store import CrawlStore

from .shelves import Shelf, open_crawl, run


def estimator(brought: list[bool], score: float = 0.5) -> RecallEstimator:
    """Return one that has seen fetches of links with `score`, all found on the first page."""
    seen = RecallEstimator(scores_are_relevance=True)
    seen.add_fetch(0, None, None, range(1, len(brought) + 1), relevant=True)
    for url, relevant in enumerate(brought, 1):
        seen.add_fetch(url, 0, score, [], relevant=relevant)
    return seen


def test_links_are_worth_what_such_links_brought_of_late() -> None:
    waiting = np.full(100, 0.5)
    as_promised = estimator([True, False] * 100).estimate(waiting, 10)
    assert as_promised.discovered == pytest.approx(50 / 3, abs=1)  # the best came first: a third
    assert as_promised.next_harvest == pytest.approx(0.5, abs=0.02)
    spent = estimator([True] * 100 + [False] * 100).estimate(waiting, 10)
    assert spent.discovered < 13
    # of links with other scores nothing is known but what they promise
    other = estimator([True] * 100 + [False] * 100).estimate(np.full(100, 0.2), 10)
    assert other.discovered == pytest.approx(20 / 3)


def test_scores_that_promise_nothing_count_by_the_harvest_alone() -> None:
    seen = RecallEstimator(scores_are_relevance=False)
    for url in range(200):
        found_on = None if url == 0 else 0
        seen.add_fetch(url, found_on, -float(url), range(1, 200), relevant=url % 4 == 0)
    assert seen.estimate(np.full(100, -1000.0), 10).discovered == pytest.approx(25, abs=5)


def test_a_harvest_that_has_not_fallen_promises_as_much_again() -> None:
    rich = estimator([True] * 200).estimate(np.full(5, 0.5), 10)
    assert rich.recall == pytest.approx(0.5, abs=0.02)
    low, high = rich.interval
    assert low < 0.15
    assert high > 0.85
    fallen = estimator([True] * 200 + [False] * 50).estimate(np.full(5, 0.01), 10)
    assert fallen.recall > 0.98


def off_topic_first(*, linked: bool, pages: int = 100) -> RecallEstimator:
    """Return one that has found each second page on one off the topic before it.

    Parameters
    ----------
    linked : whether the first page, on the topic, links to all the others as well
    """
    seen = RecallEstimator(scores_are_relevance=True)
    seen.add_fetch(0, None, None, range(1, 2 * pages + 1) if linked else [], relevant=True)
    for url in range(1, 2 * pages, 2):
        seen.add_fetch(url, 0, 0.05, [url + 1], relevant=False)
        seen.add_fetch(url + 1, url, 0.9, [], relevant=True)
    return seen


def test_groups_that_only_pages_off_the_topic_led_to_promise_others() -> None:
    waiting = np.full(100, 0.01)
    known, hidden = (
        off_topic_first(linked=linked).estimate(waiting, 10) for linked in (True, False)
    )
    assert hidden.discovered == known.discovered
    # a page each, and a third of that for the rest; what else leads to a page tells of no group
    assert hidden.undiscovered == pytest.approx(known.undiscovered + 100 / 3, abs=2)
    assert known.undiscovered < 0.28 * 201  # the harvest's share, hardly more


def test_what_is_found_on_a_page_of_a_group_belongs_to_it() -> None:
    alone, chain = (RecallEstimator(scores_are_relevance=True) for _ in range(2))
    for seen, linked in ((alone, False), (chain, True)):
        seen.add_fetch(0, None, None, range(60), relevant=True)
        for url in range(1, 60):
            seen.add_fetch(url, 0, 0.05, [100], relevant=False)
        seen.add_fetch(100, 59, 0.05, range(101, 120) if linked else [], relevant=True)
        for url in range(101, 120):
            seen.add_fetch(url, url - 1, 0.9, [], relevant=linked)
    waiting = np.full(1000, 0.0)
    few, many = (seen.estimate(waiting, 10).undiscovered for seen in (alone, chain))
    assert few < 12
    assert many > 150


def test_where_a_redirect_leads_is_known_to_whoever_linked_to_it() -> None:
    plain, moved = (RecallEstimator(scores_are_relevance=True) for _ in range(2))
    for seen in (plain, moved):
        seen.add_fetch(0, None, None, range(1, 50), relevant=True)
        for url in range(1, 50):
            seen.add_fetch(url, 0, 0.5, [], relevant=seen is plain)
            if seen is moved:
                seen.add_fetch(url + 100, url, None, [], relevant=True)
    assert moved.estimate(np.full(98, 0.0), 10).undiscovered < 0.3 * 99


def test_nothing_is_left_where_nothing_waits() -> None:
    done = estimator([True] * 30).estimate(np.zeros(0), 100)
    assert done.recall == 1.0
    assert done.interval == (1.0, 1.0)
    assert done.next_harvest == 0.0


@pytest.mark.parametrize(
    "written",
    [
        *("recall", "recall 0", "recall 1.5", "recall nan", "next 100 > 0.1", "next 0 < 0.1"),
        *("8h", "time 8", "time -1h", "recall 0.9 time 8h", "recall 0.8, recall 0.9"),
    ],
)
def test_what_is_no_rule_is_refused_with_what_is(written: str) -> None:
    with pytest.raises(UserError, match=r"stop must be .*`recall 0.9`.*`time 8h`"):
        STOP_EXPRESSION.parse("stop", written)


def test_the_first_rule_that_applies_ends_the_crawl() -> None:
    rules = StopExpression.parse("recall 0.9, next 50<.1, TIME 1.5 h")
    here = RecallEstimate(100, 50, 10, 1.0, 1.0, 0.2, 50, 0.5)
    assert rules.reason(None, 0.0) is None
    assert rules.reason(None, 5400.0) == "time_over"
    assert rules.reason(here, 0.0) == "recall_reached"
    # an interval that is too wide: hardly a page has been seen
    assert rules.reason(RecallEstimate(20, 3, 10, 0.1, 0.1, 0.05, 50, 0.5), 0.0) is None
    assert rules.reason(RecallEstimate(100, 50, 10, 50.0, 1.0, 0.2, 50, 0.5), 0.0) is None
    assert (
        rules.reason(RecallEstimate(100, 50, 10, 50.0, 1.0, 0.2, 50, 0.05), 0.0)
        == "little_expected"
    )
    # too few fetches to say anything of the next ones
    assert rules.reason(RecallEstimate(99, 50, 10, 50.0, 1.0, 0.2, 50, 0.05), 0.0) is None
    assert not StopExpression.parse(" ")


def test_what_is_behind_the_frontier_counts_among_the_next_fetches() -> None:
    """Links that promise little lead on while the harvest lasts."""
    seen = estimator([True] * 14 + [False] * 6)
    low = np.full(300, 0.05)
    assert seen.estimate(low, 100).next_harvest > 0.1
    for url in range(100, 300):
        seen.add_fetch(url, None, None, [], relevant=False)
    assert seen.estimate(low, 100).next_harvest < 0.1
    assert seen.estimate(low[:1], 100).next_harvest <= 1.0


def test_a_rule_is_named_with_its_numbers() -> None:
    rules = StopExpression.parse("recall 0.9, next 50<.1, TIME 1.5 h")
    at = RecallEstimate(350, 233, 1333, 10.0, 8.0, 0.16, 50, 0.08)
    assert rules.describe("recall_reached", at) == (
        "stopped by the rule `recall 0.9`: estimated recall 93 % (74–99 %)"
    )
    assert rules.describe("little_expected", at) == (
        "stopped by the rule `next 50 < 0.1`: 4 of the next 50 pages are expected to be relevant"
    )
    assert rules.describe("time_over", None) == (
        "stopped by the rule `time 5400s`: this run has reached its time"
    )


def test_a_record_ends_at_a_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / ESTIMATES_FILE
    record = EstimateLog(path, 0)
    for fetched in (20, 30, 40):
        record.add(RecallEstimate(fetched, 5, 10, 1.25, 0.1, 1 / 3, 100, 0.1))
    kept = read_estimates(path)
    assert [each.fetched for each in kept] == [20, 30, 40]
    assert kept[0] == RecallEstimate(20, 5, 10, 1.25, 0.1, 1 / 3, 100, 0.1)
    path.write_text(path.read_text()[:-60])
    assert [each.fetched for each in read_estimates(path)] == [20, 30]
    resumed = EstimateLog(path, 25)  # the store does not know of a fetch after these
    assert resumed.latest is not None
    assert resumed.latest.fetched == 20
    resumed.add(RecallEstimate(30, 6, 10, 1.0, 0.1, 0.3, 100, 0.1))
    assert [each.relevant for each in read_estimates(path)] == [5, 6]
    path.write_text(path.read_text()[:-3])  # no telling what the last number was
    again = EstimateLog(path, 30)
    for fetched in (40, 50):
        again.add(RecallEstimate(fetched, 7, 10, 1.0, 0.1, 0.3, 100, 0.1))
    assert [each.fetched for each in read_estimates(path)] == [20, 40, 50]


@pytest.fixture
def web() -> Shelf:
    """Forty pages on the topic in a ring with leaps, and two hundred that are not, in a chain."""
    shelf = Shelf()
    for i in range(40):
        shelf.page(
            f"/jazz{i}", "jazz", f"/jazz{(i + 1) % 40}", f"/jazz{(i * 7 + 3) % 40}", "/dull0"
        )
    for i in range(200):
        shelf.page(f"/dull{i}", "nothing", f"/dull{i + 1}", f"/dull{i + 2}")
    return shelf


def test_a_crawl_that_was_interrupted_estimates_and_stops_as_one_that_was_not(
    web: Shelf, tmp_path: Path
) -> None:
    rules = StopExpression.parse("recall 0.9")
    for name, pieces in (("whole", (1000,)), ("resumed", (33, 2, 1000)), ("again", (1000, 1000))):
        for most in pieces:
            crawl = open_crawl(tmp_path / name, web, "/jazz0", stop=rules)
            run(crawl, most)
            crawl.close(crawl.stop_reason or "interrupted")
        assert crawl.stop_reason == "recall_reached"
        store = CrawlStore.open(tmp_path / name / "crawl.db", read_only=True)
        assert Summary.of(store).stopped.startswith("by the rule `recall 0.9`: estimated recall 9")
        store.close()
        assert 40 <= crawl.fetched < 80
    whole = (tmp_path / "whole" / ESTIMATES_FILE).read_text()
    assert (tmp_path / "resumed" / ESTIMATES_FILE).read_text() == whole
    assert (tmp_path / "again" / ESTIMATES_FILE).read_text() == whole
    assert read_estimates(tmp_path / "whole" / ESTIMATES_FILE)[-1].fetched == crawl.fetched


def test_a_crawl_without_rules_goes_on_and_its_metrics_are_the_last_estimate(
    web: Shelf, tmp_path: Path
) -> None:
    crawl = open_crawl(tmp_path, web, "/jazz0")
    assert not [*recall_metrics(crawl)]  # there is none yet
    assert len(run(crawl)) == 240
    last = read_estimates(tmp_path / ESTIMATES_FILE)[-1]
    told = {metric.name: metric.samples[0].value for metric in recall_metrics(crawl)}
    assert (told["focuscrawl_recall_low"], told["focuscrawl_recall_high"]) == last.interval
    assert told["focuscrawl_recall"] == last.recall
    assert told["focuscrawl_relevant_discovered"] == last.discovered
    assert told["focuscrawl_relevant_undiscovered"] == last.undiscovered
    crawl.close("frontier_empty")


def test_a_crawl_that_has_nothing_left_has_all_that_is_in_reach(tmp_path: Path) -> None:
    web = Shelf()
    for i in range(47):
        web.page(f"/jazz{i}", "jazz", f"/jazz{i + 1}")
    crawl = open_crawl(tmp_path, web, "/jazz0")
    run(crawl, 46)
    crawl.close("interrupted")
    assert read_estimates(tmp_path / ESTIMATES_FILE)[-1].fetched == 40  # as if it had not been
    crawl = open_crawl(tmp_path, web, "/jazz0")
    run(crawl)
    crawl.close("frontier_empty")
    last = read_estimates(tmp_path / ESTIMATES_FILE)[-1]
    assert (last.fetched, last.relevant, last.recall) == (47, 47, 1.0)
