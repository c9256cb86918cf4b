"""Summary, table of pages, HTML page and comparison of small crawls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lxml.html
import pandas as pd
import pytest

from focuscrawl.crawl.target_pages import write_targets
from focuscrawl.errors import UserError
from focuscrawl.report import comparison, html_report
from focuscrawl.report.figures import loss_figure, png
from focuscrawl.report.measures import load_pages
from focuscrawl.report.outcomes import milestones
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.store import CrawlStore, VisitRecord
from focuscrawl.store.schema import ModelRow

from .small_crawl import BEGAN, Building, bees, being_written


@pytest.fixture
def building(tmp_path: Path) -> Iterator[Building]:
    with being_written(tmp_path / "crawl") as crawl:
        yield crawl


def test_summary_counts_what_came_of_every_fetch(building: Building) -> None:
    summary = Summary.of(bees(building))
    assert summary.fetched == 5
    assert summary.harvest_rate == pytest.approx(1.6 / 5)
    assert summary.loss_rate == pytest.approx(1 - 1.6 / 5)
    assert summary.relevant == 2
    assert summary.outcomes == {"page": 2, "duplicate": 1, "redirect": 1, "TimeoutError": 1}
    assert (summary.links, summary.dropped) == (50, 20)
    assert summary.states == {"queued": 3, "fetched": 5, "excluded": 2, "unfollowed": 1}
    assert [tuple(row) for row in summary.best_hosts] == [("hive.example", 3, pytest.approx(1.6))]
    text = summary.text()
    assert "harvest rate" in text
    assert "TimeoutError: 1" in text
    assert "the live Web" in text
    assert len(text.splitlines()) <= 20
    assert text.splitlines()[-2].endswith("crawl")


def test_recent_harvest_is_over_the_last_hundred(building: Building) -> None:
    for n in range(150):
        building.fetch(f"http://a.example/{n}", 1.0 if n < 60 else 0.0)
    summary = Summary.of(building.written())
    assert summary.harvest_rate == pytest.approx(0.4)
    assert summary.recent_harvest_rate == pytest.approx(0.1)


def test_an_empty_crawl_has_no_rates(building: Building) -> None:
    building.url("http://a.example/", 0)
    summary = Summary.of(building.written())
    assert summary.loss_rate is None
    assert summary.pages_per_second is None
    assert "no pages yet" in summary.text()
    assert "loss rate" not in summary.text()
    assert "1 URL queued" in summary.text()


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("budget", "the budget of 1 fetches is spent"),
        ("frontier_empty", "the frontier is empty"),
        ("no_relevant_page", "without a relevant page"),
        ("interrupted", "resumes the crawl"),
        ("store_error", "could not be written"),
        ("closespider_timeout", "closespider_timeout"),
        ("{odd", "{odd"),
    ],
)
def test_stop_reasons_are_said_in_words(building: Building, reason: str, words: str) -> None:
    building.fetch("http://a.example/")
    building.event("stop", reason)
    assert words in Summary.of(building.written()).stopped


def test_a_stop_event_before_the_last_page_is_of_an_earlier_run(building: Building) -> None:
    building.fetch("http://a.example/")
    building.event("stop", "interrupted")
    building.event("start", "topic=/Home/Bees")
    building.fetch("http://a.example/2")
    assert Summary.of(building.written()).stopped.startswith("killed")


def test_time_between_runs_does_not_count(building: Building) -> None:
    building.fetch("http://a.example/1")
    building.fetch("http://a.example/2", after=2)
    building.event("stop", "interrupted")
    building.fetch("http://a.example/3", after=60)  # resumed a minute later
    building.fetch("http://a.example/4", after=2)
    building.fetch("http://a.example/5", after=86_400)  # killed, resumed a day later
    building.fetch("http://a.example/6", after=2)
    summary = Summary.of(building.written())
    assert summary.time == timedelta(seconds=6)
    assert summary.pages_per_second == pytest.approx(0.5)


def test_what_is_recorded_after_later_fetches_takes_no_time(
    building: Building,
) -> None:
    for number, after in enumerate((1, 4, -3, 4, -3, 4)):
        building.fetch(f"http://a.example/{number}", after=after)
    summary = Summary.of(building.written())
    assert summary.time == timedelta(seconds=6)
    assert summary.timed_fetches == 5


def test_pages_are_loaded_with_types(building: Building, tmp_path: Path) -> None:
    bees(building)
    pages = load_pages(tmp_path / "crawl")
    assert pages.index.tolist() == [1, 2, 3, 4, 5]
    assert pages["outcome"].tolist()[2:] == ["duplicate", "redirect", "TimeoutError"]
    assert pages["host"].iloc[3] == "road.example"
    assert pages["referrer"].iloc[1] == "http://hive.example/"
    assert pages["referrer"].iloc[0] is None
    assert pages["relevance"].dtype == "float64"
    assert pages["fetched_at"].iloc[0] == pd.Timestamp(BEGAN) + pd.Timedelta(seconds=1)


def test_an_empty_crawl_is_loaded_with_the_same_types(building: Building, tmp_path: Path) -> None:
    building.writer.close()
    pages = load_pages(tmp_path / "crawl")
    assert len(pages) == 0
    assert {"relevance", "host", "outcome", "fetched_at"} <= set(pages.columns)
    assert pages["relevance"].dtype == "float64"


def test_a_folder_without_a_crawl_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no crawl"):
        open_store(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_html_is_self_contained_and_escapes_titles(building: Building) -> None:
    store = bees(building)
    pages, summary = load_pages(store), Summary.of(store)
    pages.loc[1, "depth"] = 1  # seeds are not listed among the best pages
    pages.loc[2, "url"] = "javascript:alert(1)"
    section = html_report.crawl_section("bees", store, summary, pages)
    compared = comparison.compare([summary], [pages])
    text = html_report.render_report(
        [section], compared, [("loss", png(loss_figure({"bees": pages})))]
    )
    page = lxml.html.document_fromstring(text)
    assert not page.xpath("//script | //link | //iframe | //object")
    sources = [str(image.get("src")) for image in page.iter("img")]
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert page.xpath("//a/@href") == ["http://hive.example/"]
    assert page.xpath("string(//a)") == "Hive </a><script>alert(1)</script> ]0;x"
    assert "\x1b" not in text
    assert "Forbidden by robots.txt" not in text  # excluded URLs are counted, not listed
    assert "1 URL so far" in text
    assert "unlisted" not in text
    assert "2 pages so far" in text


def _section(store: CrawlStore) -> dict[str, Any]:
    return html_report.crawl_section("bees", store, Summary.of(store), load_pages(store))


def test_html_lists_target_pages_and_whether_the_crawl_found_them(
    building: Building, tmp_path: Path
) -> None:
    write_targets(tmp_path / "crawl", ["http://a.example/found", "http://a.example/other"])
    building.fetch("http://a.example/")
    building.url("http://a.example/found", referrer="http://a.example/")
    building.fetch("http://a.example/found", 0.9)
    store = building.written()
    compared = comparison.compare([Summary.of(store)], [load_pages(store)])
    text = html_report.render_report([_section(store)], compared, [])
    items = [*lxml.html.document_fromstring(text).iter("li")]
    assert ["".join(map(str, each.itertext())) for each in items] == [
        "http://a.example/found: fetched",
        "http://a.example/other: not known",
    ]
    assert [link.get("href") for link in items[0].iter("a")] == ["http://a.example/found"]


def test_no_host_is_among_the_best_and_the_worst(building: Building) -> None:
    for host_name, relevance in (("rich", 0.9), ("fair", 0.6), ("poor", 0.2), ("none", 0.0)):
        for n in range(5):
            building.fetch(f"http://{host_name}.example/{n}", relevance)
    section = _section(building.written())
    assert [row.Index for row in section["best_hosts"]] == ["rich.example", "fair.example"]
    assert [row.Index for row in section["worst_hosts"]] == ["none.example", "poor.example"]


def test_best_pages_are_not_in_the_order_of_fetching(building: Building) -> None:
    """Of pages that are all relevant beyond doubt, those that relevant pages name come first."""
    building.fetch("http://a.example/", 1.0)
    names = ["first", "named", "junk", "sure"]
    for name in names:
        building.url(f"http://a.example/{name}", 1, "http://a.example/")
        building.link("http://a.example/", f"http://a.example/{name}", 0.5)
    for name, relevance in zip(names, (0.9, 0.9, 0.1, 1.0), strict=True):
        building.fetch(f"http://a.example/{name}", relevance)
    for source in ("sure", "named"):  # a page that names itself says nothing
        building.link(f"http://a.example/{source}", "http://a.example/named", 0.5)
    building.link("http://a.example/junk", "http://a.example/first", 0.5)
    best = _section(building.written())["best_pages"]
    found = [(row.url.rpartition("/")[2], row.named) for row in best]
    assert found == [("sure", 1), ("named", 2), ("first", 1), ("junk", 1)]


def test_metrics_of_lessons_are_whole(building: Building) -> None:
    """Every number has a column; what is no number is for machines."""
    metrics = {f"measure_{n}": n / 7 for n in range(12)}
    for version, more in (
        (1, {"histogram": [1, 2]}),
        (2, {"late": 2304.0, "unknown": float("nan")}),
    ):
        row = ModelRow(version, 0, 10, json.dumps({**metrics, **more}), b"")
        building.writer.put(VisitRecord(model=row))
    store = building.written()
    models = _section(store)["models"]
    assert models["names"] == [*metrics, "late", "unknown"]
    assert [row[0] for row in models["rows"]] == [1, 2]
    assert [row[-1][-2:] for row in models["rows"]] == [["", ""], ["2,304", "nan"]]


def test_milestones_are_what_a_curve_does_not_tell(building: Building) -> None:
    building.event("start", "")
    building.fetch("http://a.example/1")
    building.event("alarm", "harvest 0.00")
    building.event("excluded", "http://a.example/2: robots.txt")
    building.fetch("http://a.example/3")
    building.event("start", "")
    building.event("redefined", "another")
    found = milestones(building.written())
    assert found == [(1, "alarm"), (2, "restart"), (2, "topic changed")]


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (["slow"], "slow"),
        (["slow", "fast again"], None),
        (["slow", "start"], None),  # each run is watched by itself
        (["slow", "alarm"], "alarm"),
        (["alarm", "slow", "recovered"], "slow"),
    ],
)
def test_the_summary_says_what_alarm_is_not_over(
    building: Building, kinds: list[str], told: str | None
) -> None:
    for kind in kinds:
        building.event(kind, f"{kind}, it says")
    assert Summary.of(building.written()).alarm == (None if told is None else f"{told}, it says")


def test_two_crawls_from_other_start_pages_bound_their_recall(building: Building) -> None:
    def crawl(start: str, pages: range) -> pd.DataFrame:
        urls = [start, *map(str, pages), "dull"]
        depths, referrers = [0, *[1] * (len(urls) - 1)], [None, *[start] * (len(urls) - 1)]
        relevance = [0.9] * (len(urls) - 1) + [0.1]
        names = ("url", "depth", "referrer", "relevance")
        columns = (urls, depths, referrers, relevance)
        return pd.DataFrame(dict(zip(names, columns, strict=True)))

    found = [crawl("a", range(40)), crawl("b", range(20, 60))]
    same = [Summary.of(building.written())] * 2
    said = comparison.describe_overlap(same, found)
    assert said is not None
    assert said.startswith("both crawls found 20 of 60 relevant pages.")
    assert "at most 76%" in said  # of 41 * 41 / 21 - 1 = 79 pages
    assert comparison.describe_overlap(same, [found[0], found[0]]) is None  # one start page
    assert comparison.describe_overlap(same, [found[0], crawl("b", range(50, 60))]) is None
    other = replace(same[1], identity={"topic": "/Other"})
    assert comparison.describe_overlap([same[0], other], found) is None


def test_crawls_are_compared_where_all_have_been(tmp_path: Path) -> None:
    building = [
        Building(tmp_path / "one", strategy="breadth-first"),
        Building(tmp_path / "two", strategy="best-first"),
        Building(tmp_path / "three", strategy="best-first", topic="/Home/Wasps"),
    ]
    for crawl, relevance, fetches in zip(building, (0.5, 0.75, 0.75), (4, 8, 6), strict=True):
        for n in range(fetches):
            crawl.fetch(f"http://a.example/{n}", relevance if n < 4 else 0.0)
    summaries, pages = [], []
    for crawl in building:
        with closing(crawl.written()) as store:
            summaries.append(Summary.of(store))
            pages.append(load_pages(store))
    rows = comparison.compare(summaries, pages)
    assert [row.label for row in rows] == [
        "breadth-first, Bees",
        "best-first, Bees",
        "best-first, Wasps",
    ]
    assert [row.common_loss_rate for row in rows] == pytest.approx([0.5, 0.25, 0.25])
    assert [row.loss_rate for row in rows] == pytest.approx([0.5, 0.625, 0.5])
    assert [row.loss_reduction for row in rows] == [None, pytest.approx(0.5), None]
    assert "loss at 4" in comparison.format_comparison(rows)
    assert not comparison.have_same_topic_and_strategy(
        summaries[:2]
    )  # two strategies: none learns of the other
    assert not comparison.have_same_topic_and_strategy(summaries[1:])  # two topics
    assert not comparison.have_same_topic_and_strategy(summaries[:1])
    assert comparison.have_same_topic_and_strategy([summaries[0], summaries[0]])
    said = comparison.describe_relevant_counts(summaries[:2], pages[:2])
    assert said == ("relevant pages in 4 fetches each: 0 with breadth-first, 4 with best-first")
    assert (
        comparison.describe_relevant_counts(summaries, pages) is None
    )  # what is on the topic differs
    two_alike = comparison.crawl_labels([summaries[0], summaries[0]])
    assert two_alike == ["breadth-first"] * 2  # the same folder twice cannot be told apart
