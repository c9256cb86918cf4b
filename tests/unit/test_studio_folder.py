"""What a studio finds in its folder, and what it keeps out of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from focuscrawl.crawl.crawl_folder import Command
from focuscrawl.errors import UserError
from focuscrawl.studio import listing
from focuscrawl.studio.served_folder import StudioFolder

from .studio_folders import make_context, make_crawl


@pytest.fixture
def folder(tmp_path: Path) -> StudioFolder:
    root = tmp_path / "root"
    make_crawl(root / "crawls" / "one")
    make_crawl(root / "crawls" / ".hidden")
    make_crawl(tmp_path / "outside")
    (root / "linked").symlink_to(tmp_path / "outside")
    return StudioFolder(root)


def test_crawls_are_found_and_links_are_not_followed(folder: StudioFolder) -> None:
    (found,) = listing.list_crawls(folder)
    assert found["name"] == "crawls/one"
    assert (found["running"], found["wanted"], found["fetched"]) == (False, "run", 0)


def test_nothing_else_is_a_crawl(folder: StudioFolder) -> None:
    inside = ("linked", "crawls", "", ".", "nothing", "a\0b", "x" * 5000)
    for name in ("../outside", str(folder.root.parent / "outside"), *inside):
        with pytest.raises(UserError, match="no crawl"):
            folder.crawl(name)


def test_recordings_are_named_where_one_is_missing(folder: StudioFolder) -> None:
    with pytest.raises(UserError, match=r"copy a \.warc file there, or use demo"):
        folder.recording("pages")
    for path in ("pages.warc", "crawls/one/more.warc.gz", "crawls/.hidden/none.warc"):
        (folder.root / path).touch()
    (folder.root.parent / "outside.warc").touch()
    (folder.root / "linked.warc").symlink_to(folder.root.parent / "outside.warc")
    assert folder.recordings() == ["pages.warc", "crawls/one/more.warc.gz"]
    assert folder.recording("pages.warc") == "./pages.warc"
    with pytest.raises(UserError, match=r"use pages\.warc, crawls/one/more\.warc\.gz or demo"):
        folder.recording("pages")


def test_topics_are_what_can_be_read_as_one_or_is_meant_as_one(folder: StudioFolder) -> None:
    (folder.root / "birds.toml").write_text('words = ["birds"]\n')
    (folder.root / "pyproject.toml").write_text("[project]\n")
    (folder.root / "wrong").mkdir()
    (folder.root / "wrong" / "topic.toml").write_text("wrods = []\n")
    birds, wrong = listing.list_topics(folder)
    assert (birds["name"], birds["words"]) == ("birds.toml", ["birds"])
    assert wrong["name"] == "wrong/topic.toml"
    assert "unknown key wrods" in wrong["error"]


def test_critics_are_told_by_their_manifests(folder: StudioFolder) -> None:
    for name, kind in {"flat": "flat", "other": "apprentice"}.items():
        (folder.root / name).mkdir()
        manifest = {"kind": kind, "classes": ["/A", "/B"]}
        (folder.root / name / "manifest.json").write_text(json.dumps(manifest))
    assert listing.list_critics(folder) == [
        {"name": "flat", "kind": "flat", "classes": ["/A", "/B"]}
    ]


def test_a_damaged_crawl_is_one_line_of_the_list(folder: StudioFolder) -> None:
    (folder.root / "crawls" / "one" / "crawl.db").write_bytes(b"no database at all" * 100)
    (found,) = listing.list_crawls(folder)
    assert found["error"]


def test_a_pause_is_kept_for_a_crawl_at_rest_and_taken_back(folder: StudioFolder) -> None:
    crawl = make_context(folder).crawl("crawls/one")
    assert listing.send_command(crawl, Command.PAUSE)["wanted"] == "pause"
    assert listing.send_command(crawl, Command.RUN)["wanted"] == "run"
    for wanted in (Command.RUN, Command.STOP):
        with pytest.raises(UserError, match=r"is not (paused|running), so"):
            listing.send_command(crawl, wanted)


def test_names_are_in_any_letters(folder: StudioFolder) -> None:
    for name in ("birds", "été", "自転車", "पक्षी", "Bücher_2.1-b", "8"):
        assert folder.new_folder(name) == folder.root / name
    assert folder.new_folder("road  cycling\n") == folder.root / "road-cycling"
    wrong = ("", ".", "..", ".a", "-a", "a/b", "a\0b", " ", "\u202eabc", "x" * 81, "鳥" * 80)
    for name in (*wrong, "a\ud800"):
        with pytest.raises(UserError, match="is not a valid name"):
            folder.new_folder(name)
