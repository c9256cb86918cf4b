"""A critic and a crawl of pages that are not in English."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from longer import long
from unit.language_pages import LANGUAGES, LanguagePages

from focuscrawl.cli.main import main

from .recording import record
from .running import crawl

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("language", [LANGUAGES[0], *long(*LANGUAGES[1:])])
def test_a_phrase_and_three_urls_lead_a_crawl(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCUSCRAWL_CACHE", str(tmp_path / "cache"))
    pages = LanguagePages(language, each=30, others=300)
    # pages say themselves in which charset they are
    record(tmp_path / "web.warc.gz", pages.web().items(), "text/html")
    about = {page.url for page in pages.pages if page.topic == "cycling"}
    good = tmp_path / "good.txt"
    good.write_text("\n".join(sorted(about)[:3]))
    web, critic = tmp_path / "web.warc.gz", tmp_path / "critic"
    topic = ["--words", pages.phrase("cycling"), "--good", str(good), "--name", "/Bikes"]
    train = ["critic", "train", *topic, "--web", str(web), "--out", str(critic)]
    trained = CliRunner().invoke(main, train)
    assert trained.exit_code == 0, trained.output
    done = crawl(tmp_path / "crawl", web=web, critic=critic, topic="/Bikes", seeds=good, budget=60)
    assert done.returncode == 0, done.stderr
    found = {url for (url,) in done.kept.query("SELECT url FROM pages WHERE relevance > 0.5")}
    assert len(found & about) >= 0.7 * len(about)  # of 60 pages drawn at random, four would be
    assert len(found & about) >= 0.9 * len(found)
