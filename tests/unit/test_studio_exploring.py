"""What the studio keeps at hand of crawls it looks at, and what it draws."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from parsel import Selector

from focuscrawl.errors import UserError
from focuscrawl.studio import crawl_analyses, explore_routes
from focuscrawl.studio.crawl_analyses import OpenCrawls
from focuscrawl.studio.drawings import draw_circle
from focuscrawl.studio.served_folder import StudioFolder

from .small_crawl import bees, being_written
from .studio_folders import ask, make_context, make_crawl

LONG = 300.0  # seconds after which something hangs


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl")


def test_a_crawl_is_sorted_and_one_in_its_place_is_another(crawl: Path) -> None:
    crawls = OpenCrawls()
    since = time.monotonic()
    while (found := explore_routes.read_table(crawls, crawl, "pages", {}))["sorting"]:
        assert time.monotonic() - since < LONG
    assert (found["rows"], found["total"]) == ([], 0)
    (crawl / "crawl.db").unlink()
    (crawl / "crawl.db").write_bytes(b"no database" * 1000)
    with pytest.raises(UserError):
        explore_routes.read_table(crawls, crawl, "pages", {})


@pytest.mark.parametrize(
    "query", [{"least": "x"}, {"most": "nan"}, {"status": "-1"}, {"order": "x"}, {"after": "x"}]
)
def test_a_query_without_sense_is_said_to_have_none(crawl: Path, query: dict[str, str]) -> None:
    crawls = OpenCrawls()
    while explore_routes.read_table(crawls, crawl, "pages", {})["sorting"]:
        pass
    with pytest.raises(UserError):
        explore_routes.read_table(crawls, crawl, "pages", query)


def test_a_studio_for_reading_has_nothing_to_press(tmp_path: Path) -> None:
    """What filters a table is asked for with GET, and stays."""
    with being_written(tmp_path / "crawl") as crawl:
        bees(crawl)
    context = replace(make_context(StudioFolder(tmp_path)), read_only=True)
    parts = ("live", "judge", "pages", "frontier", "hosts", "exports")
    asked = ["/", "/topics/new", "/crawls/new", "/corpora/new"]
    asked += [f"/crawls/crawl/{part}" for part in parts]
    for path in asked:  # grows by what the pages load
        status, page = ask(context, path)
        while "is sorting the rows" in page:
            status, page = ask(context, path)
        assert status == 200, path
        found = Selector(page)
        assert found.xpath("//*[@hx-post] | //form[not(@method='get')]").getall() == []
        buttons = "//button[not(@popovertarget) and not(ancestor::form[@method='get'])]"
        assert found.xpath(buttons).getall() == [], path
        loaded = found.xpath("//*[contains(@hx-trigger, 'load')]/@hx-get").getall()
        asked += [each for each in loaded if each not in asked]
    assert len(asked) > 12


def test_a_sum_whose_process_cannot_start_is_made_when_it_can(
    crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_analyses, "_MIN_AGE_FACTOR", 0)  # nobody waits to see it made anew
    broken = tmp_path / "sqlite3.py"
    broken.write_text("raise ImportError('half of it is missing')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sums = crawl_analyses.AnalysisRunner(crawl.parent)
    while (found := sums.get("hubs", crawl)).error is None:
        time.sleep(0.05)
    assert "The analysis failed" in found.error
    broken.unlink()
    since = time.monotonic()
    while (found := sums.get("hubs", crawl)).error is None or "The analysis" in found.error:
        assert time.monotonic() - since < LONG
        time.sleep(0.05)


def test_hosts_that_link_to_each_other_are_side_by_side() -> None:
    groups = [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    hosts = [{"name": f"h{n}", "relevant": n} for n in range(9)]
    links = [[a, b, 10] for group in groups for a in group for b in group if a != b]
    drawn = draw_circle(hosts, [*links, [0, 1, 1], [1, 2, 1]])
    around = sorted(drawn["hosts"], key=lambda host: (-host["flipped"], host["degrees"]))
    assert len({(host["x"], host["y"]) for host in around}) == 9
    for group in groups:
        places = [(drawn["hosts"][n]["x"], drawn["hosts"][n]["y"]) for n in group]
        spread = max(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a in places for b in places)
        assert spread < 500 * 1.5
    assert draw_circle([], [])["hosts"] == []
    assert len(draw_circle(hosts[:1], [])["hosts"]) == 1
