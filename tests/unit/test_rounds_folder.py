"""Crawls in rounds as folders: what reads those, and samples of large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

from focuscrawl.cli.main import main
from focuscrawl.report.measures import load_pages
from focuscrawl.report.status import open_store
from focuscrawl.rounds.folders import write_folder
from focuscrawl.store.history import History

from .rounds import crawl, plan

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 90


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rounds") / "tables"
    crawl(plan("apprentice", BUDGET, 30, 3), path)
    return path


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    write_folder(str(root), root.with_name("crawl"))
    return root.with_name("crawl")


def run(*arguments: object) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def links(path: Path) -> dict[str, dict[str, float | None]]:
    """Return of each page where its links lead, and their scores."""
    store = open_store(str(path))
    urls = [row.url for row in History(store).urls()]
    found = {
        page.name: {urls[link.target]: link.score for link in page.links}
        for page in History(store).fetches()
    }
    store.close()
    return found


def test_why_a_page_of_it_was_fetched(folder: Path) -> None:
    url = load_pages(str(folder))["url"].iloc[-1]
    said = run("why", folder, url)
    assert f"fetched as number {BUDGET}" in said
    assert "reasons by the last model of the apprentice" in said
    assert said.splitlines()[-1].endswith(url)  # of the path that led there


def test_its_hubs_and_authorities(folder: Path) -> None:
    said = run("distill", folder)
    assert f"fetched  {BUDGET}\n" in said
    assert "demo.example" in said.partition("\nhubs ")[2].partition("\nauthorities ")[0]


def test_knowledge_is_learned_from_it(folder: Path, tmp_path: Path) -> None:
    said = run(
        *("knowledge", "learn", folder, "--topic", "/Sports/Cycling"),
        *("--out", tmp_path / "cycling.knowledge"),
    )
    assert f"cycling.knowledge: {BUDGET} fetches, " in said


def test_a_sample_has_some_pages_and_all_of_their_links(
    root: Path, folder: Path, tmp_path: Path
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    assert write_folder(str(root), small, 20) == 20
    assert write_folder(str(root), large, 60) == 60
    order = [*load_pages(str(folder))["url"]]
    drawn = [*load_pages(str(small))["url"]]
    more = [*load_pages(str(large))["url"]]
    assert drawn == sorted(drawn, key=order.index)
    assert {*drawn} < {*more} < {*order}
    assert order.index(drawn[-1]) - order.index(drawn[0]) > BUDGET / 2  # not all of one time
    every = links(folder)
    assert links(small) == {url: every[url] for url in drawn}
    whole = load_pages(str(folder)).set_index("url")
    found = load_pages(str(small)).set_index("url")
    assert np.array_equal(found["relevance"], whole.loc[drawn, "relevance"])
    assert "demo.example" in run("distill", small)
    assert f"fetched as number {len(drawn)}" in run("why", small, drawn[-1])


def test_of_a_sample_no_more_urls_are_held_than_it_names(root: Path, tmp_path: Path) -> None:
    write_folder(str(root), tmp_path / "sample", 3)
    store = open_store(str(tmp_path / "sample"))
    urls = {row.url for row in History(store).urls()}
    store.close()
    named = {url for page, to in links(tmp_path / "sample").items() for url in (page, *to)}
    assert named <= urls
    assert len(urls - named) <= 3  # whom they were first found on
