"""Summary, explanation and HTML page of small crawls, written through the store's own writer."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import lxml.html
import pandas as pd
import pytest

from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host
from focuscrawl.report import comparison, html
from focuscrawl.report.figure_style import png
from focuscrawl.report.figures import loss_figure
from focuscrawl.report.measures import load_pages
from focuscrawl.report.milestones import milestones
from focuscrawl.report.stores import open_store
from focuscrawl.report.summary import Summary
from focuscrawl.report.why import Explanation
from focuscrawl.store import CrawlStore, NewUrl, PageRow, StoreWriter, VisitRecord
from focuscrawl.store.records import LinkRow, ModelRow
from focuscrawl.store.schema import EXCLUDED, FETCHED, QUEUED, UNFOLLOWED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDENTITY = {"topic": "/Home/Bees", "strategy": "best-first", "web": "live", "critic": "c"}
BEGAN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
HOSTILE = "</a><script>alert(1)</script>\x1b]0;x\x07"


class Building:
    """A crawl being written, one record at a time."""

    def __init__(self, folder: Path, **identity: str) -> None:
        folder.mkdir()
        self.store = CrawlStore.create(folder / "crawl.db", IDENTITY | identity)
        self.writer = StoreWriter(self.store.engine)
        self.urls: dict[str, int] = {}
        self.hosts: dict[str, int] = {}
        self.links = 0
        self.seq = 0
        self.clock = BEGAN

    def url(
        self,
        url: str,
        depth: int = 1,
        referrer: str | None = None,
        score: float | None = None,
        state: int = QUEUED,
    ) -> int:
        record = VisitRecord()
        name = host(url)
        if name not in self.hosts:
            self.hosts[name] = len(self.hosts)
            record.hosts.append((self.hosts[name], name))
        number = self.urls[url] = len(self.urls)
        found_on = None if referrer is None else self.urls[referrer]
        row = NewUrl(number, url, self.hosts[name], depth, found_on, score, state)
        record.urls.append(row)
        self.writer.put(record)
        return number

    def link(self, source: str, target: str, score: float | None, anchor: str = "more") -> None:
        row = LinkRow(self.links, self.urls[source], self.urls[target], anchor, 7, score, 3)
        self.links += 1
        self.writer.put(VisitRecord(links=[row]))

    def fetch(
        self,
        url: str,
        relevance: float = 0.0,
        *,
        status: int = 200,
        error: str | None = None,
        title: str | None = None,
        duplicate_of: str | None = None,
        canonical: str | None = None,
        after: float = 1.0,
    ) -> None:
        self.seq += 1
        self.clock += timedelta(seconds=after)
        number = self.urls[url] if url in self.urls else self.url(url, depth=0)
        row = PageRow(
            seq=self.seq,
            url=number,
            status=status,
            relevance=relevance,
            topic="/Home/Bees",
            score=0.5,
            fetched_at=self.clock.isoformat(timespec="milliseconds"),
            content_type="text/html",
            size=100,
            title=title,
            canonical=canonical,
            duplicate_of=None if duplicate_of is None else self.urls[duplicate_of],
            error=error,
            links=10,
            dropped=4,
        )
        self.writer.put(VisitRecord(page=row, changes=[(number, 0.25, FETCHED)]))

    def event(self, kind: str, detail: str) -> None:
        self.writer.put(VisitRecord(events=[(self.seq, kind, detail)]))

    def written(self) -> CrawlStore:
        self.writer.close()
        assert self.writer.failure is None
        return self.store


@pytest.fixture
def building(tmp_path: Path) -> Iterator[Building]:
    crawl = Building(tmp_path / "crawl")
    yield crawl
    crawl.writer.close()
    crawl.store.close()


def bees(crawl: Building) -> CrawlStore:
    """Five fetches of five kinds, and one URL in every other state."""
    crawl.fetch("http://hive.example/", 0.9, title=f"Hive {HOSTILE}")
    crawl.url("http://hive.example/honey", 1, "http://hive.example/")
    crawl.link("http://hive.example/", "http://hive.example/honey", 0.9, "honey \x1b[1mnow")
    crawl.fetch("http://hive.example/honey", 0.7, title="Honey", canonical="http://hive.example/h")
    crawl.fetch("http://hive.example/copy", duplicate_of="http://hive.example/honey")
    crawl.fetch("http://road.example/moved", status=301)
    crawl.fetch("http://road.example/slow", status=0, error="TimeoutError: 30 s are over")
    crawl.url("http://hive.example/wax", 2, "http://hive.example/honey", 0.6)
    crawl.url("http://hive.example/comb", 2, "http://hive.example/honey", 0.6)
    crawl.url("http://hive.example/best", 2, "http://hive.example/honey", 0.8)
    crawl.url("http://hive.example/h", 1, "http://hive.example/", 0.1, EXCLUDED)
    crawl.url("http://hive.example/secret", 1, "http://hive.example/", 0.1, EXCLUDED)
    crawl.url("http://hive.example/login", 1, "http://hive.example/", None, UNFOLLOWED)
    crawl.event("excluded", "http://hive.example/secret: Forbidden by robots.txt")
    crawl.event("noindex", "Wax, unlisted")
    crawl.event("noindex", "Honey, unlisted")
    crawl.link("http://hive.example/honey", "http://hive.example/wax", 0.4, "wax")
    crawl.link("http://hive.example/", "http://hive.example/wax", None, "")
    crawl.link("http://hive.example/copy", "http://hive.example/honey", 0.99, "back")
    return crawl.written()


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
    assert text.splitlines()[-1].endswith("crawl")


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
    assert "nothing yet" in summary.text()
    assert "loss rate" not in summary.text()
    assert "1 URL waiting" in summary.text()


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("budget", "the budget of 1 fetches is spent"),
        ("frontier_empty", "the frontier is empty"),
        ("no_relevant_page", "no relevant page"),
        ("interrupted", "goes on from here"),
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
    assert "running, or was killed" in Summary.of(building.written()).stopped


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


def test_what_one_worker_records_after_later_fetches_of_others_takes_no_time(
    building: Building,
) -> None:
    for number, after in enumerate((1, 4, -3, 4, -3, 4)):  # two workers by turns
        building.fetch(f"http://a.example/{number}", after=after)
    summary = Summary.of(building.written())
    assert summary.time == timedelta(seconds=6)
    assert summary.timed == 5


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
    with pytest.raises(UserError, match="holds no crawl"):
        open_store(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://hive.example/honey", "fetched as number 2, relevance 0.700: Honey"),
        ("http://hive.example/copy", "a duplicate of http://hive.example/honey"),
        ("http://road.example/moved", "relevance 0.000: redirect"),
        ("http://road.example/slow", "TimeoutError: 30 s are over"),
        ("http://hive.example/best", "rank 1 of 3"),
        ("http://hive.example/wax", "rank 2 of 3, level with 1 other"),
        ("http://hive.example/h", "excluded: its page came as fetch 2, under http://hive.exam"),
        ("http://hive.example/secret", "excluded: Forbidden by robots.txt"),
        ("http://hive.example/login", "follows no link to it"),
    ],
)
def test_why_says_the_state(building: Building, url: str, words: str) -> None:
    assert words in Explanation.of(bees(building), url).state


def test_why_shows_links_and_the_path_from_the_seed(building: Building) -> None:
    found = Explanation.of(bees(building), "http://hive.example/wax")
    assert [(link.source, link.score) for link in found.links] == [
        ("http://hive.example/honey", 0.4),
        ("http://hive.example/", None),
    ]
    assert [(step.seq, step.url) for step in found.path] == [
        (1, "http://hive.example/"),
        (2, "http://hive.example/honey"),
        (None, "http://hive.example/wax"),
    ]
    assert found.links_before is None
    text = found.text()
    assert "2 to it:" in text
    assert "0.6" in text.splitlines()[2]


def test_why_puts_links_known_at_the_fetch_first(building: Building) -> None:
    found = Explanation.of(bees(building), "http://hive.example/honey")
    assert [link.score for link in found.links] == [0.9, 0.99]
    assert (found.links_found, found.links_before) == (2, 1)
    assert "score   0.5 when it left the frontier\n" in found.text()
    assert "\x1b" not in found.text()


def test_why_says_that_better_hosts_were_busy(building: Building) -> None:
    building.fetch("http://hive.example/", 0.9)
    for name in ("a.example/", "b.example/", "late.example/", "road.example/own"):
        building.url(f"http://{name}", 1, "http://hive.example/", 0.7)
    building.url("http://a.example/less", 1, "http://hive.example/", 0.3)
    building.fetch("http://road.example/", 0.1)
    building.url("http://found-later.example/", 1, "http://road.example/", 0.7)
    store = building.written()
    busy = Explanation.of(store, "http://road.example/").text()
    assert "3 URLs of busy hosts had better scores (a.example, b.example, late.example)" in busy
    assert "better scores" not in Explanation.of(store, "http://hive.example/").text()
    assert "better scores" not in Explanation.of(store, "http://a.example/").text()


def test_why_of_a_replay_knows_no_busy_hosts(tmp_path: Path) -> None:
    replay = Building(tmp_path / "replay", web="0" * 64, web_name="demo")
    replay.fetch("http://hive.example/", 0.9)
    replay.url("http://a.example/", 1, "http://hive.example/", 0.7)
    replay.fetch("http://road.example/", 0.1)
    store = replay.written()
    assert "busy" not in Explanation.of(store, "http://road.example/").text()
    with pytest.raises(UserError, match=r"links to it are dropped: demo does not have it"):
        Explanation.of(store, "http://elsewhere.example/")
    store.close()


def test_why_of_a_host_that_was_left_alone(building: Building) -> None:
    building.event("left", "hive.example: HTTP 429")
    best = Explanation.of(bees(building), "http://hive.example/best").state
    assert best.endswith("; its host is left alone: HTTP 429")


def test_why_shortens_long_paths_and_many_links(building: Building) -> None:
    urls = [f"http://deep.example/{n}" for n in range(40)]
    for n, url in enumerate(urls):
        building.url(url, n, urls[n - 1] if n else None)
        building.fetch(url, 0.5)
    for n in range(25):
        building.link(urls[n], urls[-1], n / 100)
    found = Explanation.of(building.written(), urls[-1])
    assert len(found.path) == 40
    assert [link.score for link in found.links] == [n / 100 for n in range(24, 14, -1)]
    text = found.text()
    assert "25 to it" in text
    assert "28 more" in text
    assert len(text.splitlines()) < 35


@pytest.mark.parametrize("url", ["https://hive.example/honey", "hive.example/honey#top"])
def test_why_takes_http_and_https_as_one(building: Building, url: str) -> None:
    assert Explanation.of(bees(building), url).url == "http://hive.example/honey"


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://hive.example/honey/", "did you mean http://hive.example/honey?"),
        ("https://www.hive.example/honey", "did you mean http://hive.example/honey?"),
        ("http://hive.example/honey?sort=1", "did you mean http://hive.example/honey?"),
        ("http://hive.example/wax.pdf", "links to it are dropped: its name promises no HTML"),
        (f"http://hive.example/{'x' * 3000}", "links to it are dropped: it is longer than 2,083"),
        ("http://hive.example/nothing", "or it was dropped, as pages ask"),
        ("http://hive.example/nothing", "it knows 9 URLs of hive.example"),
        ("http://other.example/", "it knows no URL of other.example"),
        ("mailto://bee@hive.example", "no http"),
    ],
)
def test_why_helps_to_find_the_url(building: Building, url: str, hint: str) -> None:
    with pytest.raises(UserError) as raised:
        Explanation.of(bees(building), url)
    assert hint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_html_is_self_contained_and_escapes_titles(building: Building) -> None:
    store = bees(building)
    pages, summary = load_pages(store), Summary.of(store)
    pages.loc[1, "depth"] = 1  # seeds are not listed among the best pages
    pages.loc[2, "url"] = "javascript:alert(1)"
    section = html.section("bees", store, summary, pages)
    compared = comparison.compare([summary], [pages])
    text = html.page([section], compared, [("loss", png(loss_figure({"bees": pages})))])
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
    return html.section("bees", store, Summary.of(store), load_pages(store))


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
    assert "loss at 4" in comparison.text(rows)
    assert not comparison.consecutive(summaries[:2])  # two strategies: none learns of the other
    assert not comparison.consecutive(summaries[1:])  # two topics
    assert not comparison.consecutive(summaries[:1])
    assert comparison.consecutive([summaries[0], summaries[0]])
    said = comparison.in_one_sentence(summaries[:2], pages[:2])
    assert said == (
        "of 4 fetches each, pages on the topic: 0 with breadth-first, 4 with best-first"
    )
    assert comparison.in_one_sentence(summaries, pages) is None  # what is on the topic differs
    two_alike = comparison.labels([summaries[0], summaries[0]])
    assert two_alike == ["breadth-first"] * 2  # the same folder twice cannot be told apart
