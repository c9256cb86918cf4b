"""A corpus in a browser: from keywords to an exported file by one form."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from unit.test_studio_jobs import ended

from focuscrawl.collection.corpus_folder import CorpusFolder
from focuscrawl.errors import UserError
from focuscrawl.studio.corpora import Corpus, read_steps, start
from focuscrawl.studio.jobs import Jobs, JobState
from focuscrawl.studio.page_rendering import FieldErrorsError, StudioContext
from focuscrawl.studio.served_folder import StudioFolder

from . import warm
from .accessibility import assert_accessible
from .studio import PHONE, Watched, assert_fits, expect, serving, tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GOOD = "https://exploit-20.demo.example/people/112.html"
FORM = {"keywords": "road cycling, bicycle, peloton", "urls": GOOD, "web": "demo"}


def context(root: Path) -> StudioContext:
    return StudioContext(StudioFolder(root), Jobs(root), read_only=False)


def test_a_corpus_is_created_with_one_form_and_continued(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path) as address, tab(browser) as page:
        watched = Watched(page, address)
        page.get_by_role("link", name="Create a corpus").click()
        page.fill("#keywords", FORM["keywords"])
        page.fill("#urls", "no url")
        page.fill("#web", "demo")
        page.fill("#pages", "20")
        page.get_by_role("button", name="Create a corpus").click()
        expect(page.locator(".field-error")).to_have_count(1)
        page.fill("#urls", GOOD)
        assert_accessible(page)
        page.get_by_role("button", name="Create a corpus").click()
        page.wait_for_url("**/corpora/road_cycling")
        # the same where all is imported
        done = warm.run(stop(tmp_path), cwd=tmp_path, env=os.environ, program="focuscrawl")
        assert done.returncode == 0, done.stderr
        page.reload()
        expect(page.locator("#steps")).to_contain_text("has fetched 20 pages")
        expect(page.locator(".way .done")).to_have_count(5)
        assert_accessible(page)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download corpus.parquet").click()
        assert download.value.suggested_filename == "corpus.parquet"
        with page.expect_navigation():
            page.get_by_role("link", name="Other formats").click()
        expect(page.locator("#made")).to_contain_text("corpus.parquet")
        page.go_back()
        page.fill("#pages", "300")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("button", name="Continue")).to_have_count(0)
        assert "--pages=300" in stop(tmp_path)
        expect(page.get_by_role("button", name="Continue")).to_be_visible()
        page.get_by_role("link", name="The topic").click()
        expect(page.get_by_label("Start pages")).to_have_value(GOOD)
        page.goto(f"{watched.root}corpora/new")
        expect(page.get_by_role("link", name="road_cycling")).to_be_visible()
        assert_fits(page, PHONE)
        watched.wrong = [each for each in watched.wrong if "400" not in each]  # the wrong URL
        watched.check()


def stop(root: Path) -> list[str]:
    """Stop the corpus that is being created; return the arguments of its command."""
    studio = context(root)
    (job,) = studio.jobs.latest(1)
    corpus = Corpus.read(studio.folder, "road_cycling")
    assert corpus == Corpus("road_cycling", FORM["keywords"], [GOOD], "demo")
    with pytest.raises(UserError, match="is being created already"):
        start(studio, corpus, 300)
    studio.jobs.stop(job.id)
    assert ended(studio.jobs, job.id).state is JobState.FAILED
    return job.arguments


def test_wrong_fields_are_named_and_planted_orders_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = StudioFolder(tmp_path)
    with pytest.raises(FieldErrorsError) as raised:
        Corpus.from_form(folder, {"keywords": "the", "web": "other.warc"})
    assert set(raised.value.fields) == {"keywords", "urls", "web"}
    (tmp_path / "planted").mkdir()
    order: dict[str, object] = {
        "keywords": "jazz",
        "urls": [],
        "web": None,
        "search": "evil:search",
    }
    (tmp_path / "planted" / "corpus.json").write_text(json.dumps(order))
    assert CorpusFolder(tmp_path / "planted").known_source() is None
    assert folder.corpora() == ["planted"]
    assert "evil" not in " ".join(Corpus.read(folder, "planted").arguments(5))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "planted" / ".examples").symlink_to(elsewhere)
    (tmp_path / "planted" / "topic.toml").symlink_to(tmp_path / "missing.toml")
    assert read_steps(context(tmp_path), "planted")["topic"] is None
    with pytest.raises(UserError, match="link"):
        start(context(tmp_path), Corpus.read(folder, "planted"), 5)
    (tmp_path / "planted" / "corpus.json").write_text('{"keywords": 1, "urls": [], "web": null}')
    with pytest.raises(UserError, match="has no corpus 'planted'"):
        Corpus.read(folder, "planted")
