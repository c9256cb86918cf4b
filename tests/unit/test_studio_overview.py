"""The studio's first page: what is done, what is next, and the numbers of crawls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from focuscrawl.crawl.rejudging import REDEFINED
from focuscrawl.store import CrawlStore
from focuscrawl.studio.crawl_form import free_name
from focuscrawl.studio.exports import create_export_folder
from focuscrawl.studio.overview import CrawlTally, read_steps
from focuscrawl.studio.served_folder import StudioFolder

from .small_crawl import put
from .studio_folders import make_crawl


def add_pages(store: CrawlStore, relevance: list[float], first: int = 1) -> None:
    """Write pages, from the fetch `first` on."""
    rows = [*enumerate(relevance, first)]
    put(
        store,
        {
            "url": [
                {"id": n, "url": f"http://a.example/{n}", "host": 1, "depth": 0, "state": 1}
                for n, _ in rows
            ],
            "page": [_page(n, each) for n, each in rows],
        },
    )


def _page(seq: int, relevance: float) -> dict[str, Any]:
    page = {"seq": seq, "url": seq, "status": 200, "relevance": relevance, "size": 1}
    return page | {"fetched_at": "2026-01-01T00:00:00+00:00", "links": 0, "dropped": 0}


def test_a_tally_reads_each_page_once_and_again_after_a_change_of_the_topic(
    tmp_path: Path,
) -> None:
    store = CrawlStore.create(tmp_path / "crawl.db", {"topic": "/A"})
    put(store, {"host": [{"id": 1, "name": "a.example"}]})
    tally = CrawlTally()
    tally.update(store)
    assert (tally.relevant, tally.draw()) == (0, None)
    add_pages(store, [1.0] * 10)
    tally.update(store)
    tally.update(store)
    assert tally.relevant == 10
    assert tally.draw() == {"line": "M0.0 0.0L100.0 0.0", "most": 1.0}
    add_pages(store, [0.5] * 1000, first=11)
    tally.update(store)
    drawn = tally.draw()
    assert tally.relevant == 10  # a relevance of 0.5 is not above 0.5
    assert drawn is not None
    assert 20 < drawn["line"].count("L") < 60
    assert drawn["line"].startswith("M0.0 ")
    assert drawn["line"].endswith("L100.0 15.0")
    with store.connection() as connection:
        connection.execute("UPDATE page SET relevance = 0.9")
        connection.execute("INSERT INTO events VALUES (1, '2026', 1010, ?, '')", (REDEFINED,))
    tally.update(store)
    assert tally.relevant == 1010
    store.close()


def test_the_steps_follow_what_the_folder_contains(tmp_path: Path) -> None:
    folder = StudioFolder(tmp_path)

    def next_step() -> str:
        return str(read_steps(folder)["next_step"])

    assert next_step() == "topic"
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "topic.toml").write_text('words = ["cycling"]\n')
    assert next_step() == "crawl"
    crawl = make_crawl(tmp_path / "crawls" / "a")
    assert next_step() == "judge"
    assert read_steps(folder)["first_topic"] == "t/topic.toml"
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "topic.toml").write_text('critic = "models/demo"\ntopics = ["/Sports"]\n')
    assert read_steps(folder)["first_topic"] == "u/topic.toml"  # it has a critic
    (crawl / "topic.toml").write_text('words = ["cycling"]\ngood = ["http://a.example/"]\n')
    assert next_step() == "export"
    (create_export_folder(crawl) / "hubs.csv").touch()
    steps = read_steps(folder)
    assert (steps["next_step"], steps["first_crawl"]) == ("", "crawls/a")
    assert [each["name"] for each in steps["topics"]] == ["t/topic.toml", "u/topic.toml"]
    assert free_name(folder, "a") == "a-2"
    assert free_name(folder, "b") == "b"
