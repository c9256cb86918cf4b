"""Crawls that a studio has workers on PostgreSQL do; test_scrapyd.py has those of Scrapyd."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from .postgres import PASSWORD
from .studio import NEW_CRAWL, Client, serving
from .workers import query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .postgres import PostgresServer


@pytest.fixture
def shared(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """A studio that was told of a database, whose password it has from the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = postgres.url().replace(f":{PASSWORD}@", "@")
    with serving(tmp_path, options=["--store", url]) as address:
        yield Client(address)


def test_workers_are_begun_watched_and_ended(shared: Client, postgres: PostgresServer) -> None:
    begun = shared.ask("/crawls", {**NEW_CRAWL, "name": "hills", "run": "workers", "budget": "0"})
    assert begun["crawl"] == "postgresql:hills"
    one = f"/crawls/{quote('postgresql:hills')}"
    both = [job for job in shared.ask("/jobs") if job["subject"] == "postgresql:hills"]
    assert len(both) == 2
    assert PASSWORD not in json.dumps(both)
    live = shared.until(f"{one}/live", lambda state: state["read"] > 20)
    assert live["running"]
    assert live["state"] == "crawling"
    assert live["latest"][0]["seq"] == live["read"]
    listed = {each["name"]: each for each in shared.ask("/crawls")}
    assert listed["postgresql:hills"]["shared"]
    assert shared.ask(f"{one}/pause", {})["wanted"] == "pause"
    shared.until(one, lambda crawl: crawl["state"] == "paused")
    shared.ask(f"{one}/resume", {})
    shared.ask(f"{one}/go-on", {})  # one worker more
    joined = shared.until(one, lambda crawl: len(crawl["status"]["workers"]) == 3)
    assert joined["running"]
    assert "agreed on its budget" in shared.refused(f"{one}/budget", {"budget": "50"})
    assert "is a crawl already" in shared.refused(
        "/crawls", {**NEW_CRAWL, "name": "hills", "run": "workers"}
    )
    assert "begins with a letter" in shared.refused(
        "/crawls", {**NEW_CRAWL, "name": "Hills", "run": "workers"}
    )
    page = shared.page(f"{one}/live")
    assert "Add a worker" in page
    assert "/judge" not in page  # what cannot be is not offered
    assert "only crawls in folders" in shared.refused(f"{one}/judge", {"url": "http://a/"})
    shared.ask(f"{one}/stop", {})
    shared.until(one, lambda crawl: not crawl["running"])
    fetched = query(postgres.url("hills"), "SELECT count(*) FROM pages")[0][0]
    assert shared.until(f"{one}/live", lambda state: state["read"] == fetched)["running"] is False


def test_a_scrapyd_that_is_away_is_said_in_a_sentence(tmp_path: Path) -> None:
    with serving(tmp_path, options=["--scrapyd", "http://127.0.0.1:9"]) as address:
        client = Client(address)
        said = client.refused("/crawls", {**NEW_CRAWL, "name": "roads", "run": "scrapyd"})
        assert "does not answer" in said
        assert said in client.page("/parts/scrapyd").replace("&#39;", "'")
        assert "start the studio with --store" in client.refused(
            "/crawls", {**NEW_CRAWL, "name": "roads", "run": "workers"}
        )
