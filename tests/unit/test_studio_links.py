"""A folder with links in it: the studio reads, writes and removes nothing through them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from focuscrawl.crawl.page_source import LIVE, open_page_webs
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import safe_join
from focuscrawl.studio import jobs as jobs_module
from focuscrawl.studio import listing
from focuscrawl.studio.crawl_form import check_arguments, parse_crawl_form, start_crawl
from focuscrawl.studio.jobs import Jobs
from focuscrawl.studio.judging import JudgementApplier
from focuscrawl.studio.served_folder import NamedCrawl, StudioFolder
from focuscrawl.studio.topic_folder import TopicFiles
from focuscrawl.studio.topic_jobs import (
    read_quality,
    start_fetching,
    start_measuring,
    start_training,
)
from focuscrawl.topics import TopicDefinition, write_definition

from .studio_folders import make_context, make_crawl, write_job

if TYPE_CHECKING:
    from focuscrawl.studio.page_rendering import StudioContext

DEMO = {"name": "new", "critic": "models/demo", "topic": "/Sports/Cycling", "web": "demo"}
URL = "http://a.example/"


@pytest.fixture
def folder(tmp_path: Path) -> StudioFolder:
    (tmp_path / "served").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("precious")
    return StudioFolder(tmp_path / "served")


@pytest.fixture
def outside(folder: StudioFolder) -> Path:
    return folder.root.parent / "outside"


@pytest.fixture
def context(folder: StudioFolder) -> StudioContext:
    return make_context(folder)


def untouched(outside: Path) -> bool:
    return [each.name for each in outside.iterdir()] == ["precious"]


def topic_of(folder: StudioFolder, **said: Any) -> TopicFiles:
    (folder.root / "birds").mkdir(exist_ok=True)
    path = folder.root / "birds" / "topic.toml"
    named: dict[str, Any] = {} if "topics" in said else {"name": "/birds", "words": ("birds",)}
    write_definition(TopicDefinition(**named, **said), path)
    return TopicFiles(folder, path)


def copy_critic(to: Path) -> Path:
    """Copy a critic that comes with the package."""
    return Path(shutil.copytree(Path(__file__).parents[2] / "models" / "demo", to))


@pytest.mark.parametrize("linked", [".studio", ".studio/jobs"])
def test_jobs_behind_a_link_are_neither_listed_nor_removed(
    linked: str, folder: StudioFolder, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = outside / "jobs" if linked == ".studio" else outside
    for n in range(5):
        (theirs / f"2026-{n}").mkdir(parents=True)
        (theirs / f"2026-{n}" / "kept").touch()
    path = folder.root / linked
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside)
    monkeypatch.setattr(jobs_module, "_MAX_ENDED", 2)
    jobs = Jobs(folder.root)
    assert jobs.all() == []
    with pytest.raises(UserError, match="no job"):
        jobs.job("2026-1")
    with pytest.raises(UserError, match=r"is a link to .*outside"):
        jobs.start("look", "x", ["--version"])
    assert len([*theirs.glob("*/kept")]) == 5


def test_of_a_job_that_is_forgotten_what_a_link_leads_to_stays(
    folder: StudioFolder, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = folder.root / ".studio" / "jobs" / "2026-1"
    (old / "below").mkdir(parents=True)
    (old / "file").symlink_to(outside / "precious")
    (old / "folder").symlink_to(outside)
    other = old.with_name("2026-2")
    other.symlink_to(outside)
    monkeypatch.setattr(jobs_module, "_MAX_ENDED", 1)
    Jobs(folder.root).start("look", "x", ["--version"])
    assert not old.exists()
    assert other.is_symlink()
    assert (outside / "precious").read_text() == "precious"


def test_a_command_is_not_given_a_path_behind_a_link(folder: StudioFolder, outside: Path) -> None:
    (folder.root / "linked").symlink_to(outside)
    jobs = Jobs(folder.root)
    for argument in ("./linked", "./linked/x", "--out=./linked/x", "crawl_dir=./linked/new"):
        with pytest.raises(UserError, match="is a link"):
            jobs.start("look", "x", ["collect", argument])
    assert jobs.all() == []


def test_a_crawl_begins_behind_no_link(
    folder: StudioFolder, context: StudioContext, outside: Path
) -> None:
    new = parse_crawl_form(folder, {**DEMO, "seeds": URL})
    (folder.root / "crawls").symlink_to(outside)
    for act in (lambda: parse_crawl_form(folder, DEMO), lambda: start_crawl(context, new)):
        with pytest.raises(UserError, match="crawls is a link"):
            act()
    assert untouched(outside)


@pytest.mark.parametrize("name", ["models/mine", "mine", "models/demo"])
def test_a_critic_behind_a_link_is_none_whoever_names_it(
    name: str, folder: StudioFolder, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_critic(outside / "critic")
    path = folder.root / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside / "critic")
    monkeypatch.chdir(folder.root)
    assert listing.list_critics(folder) == []
    with pytest.raises(UserError, match="no critic"):
        folder.critic(name)
    crawl = NamedCrawl("x", folder.root / "x")
    with pytest.raises(UserError, match="no critic"):
        check_arguments(folder, crawl, ["crawl", "-a", f"critic={name}"])


def test_nor_is_one_with_a_link_in_it(folder: StudioFolder, outside: Path) -> None:
    critic = copy_critic(folder.root / "mine")
    (found,) = listing.list_critics(folder)
    assert found["name"] == "mine"
    for file in [*critic.iterdir()]:
        shutil.move(file, outside / file.name)
        file.symlink_to(outside / file.name)
        assert listing.list_critics(folder) == []
        with pytest.raises(UserError, match="no critic"):
            folder.critic("mine")
        file.unlink()
        shutil.move(outside / file.name, file)
    assert folder.critic("mine") == critic


def test_what_is_fetched_and_measured_for_a_topic_is_behind_no_link(
    folder: StudioFolder, context: StudioContext, outside: Path
) -> None:
    topic = topic_of(folder)
    critic = copy_critic(folder.root / "birds" / "critic-1")
    (folder.root / "birds" / ".examples").symlink_to(outside)
    for act in (
        lambda: start_training(context, topic),
        lambda: start_measuring(context, topic),
        lambda: start_fetching(context, topic, [URL], None),
        topic.fetched,
    ):
        with pytest.raises(UserError, match=r"\.examples is a link"):
            act()
    assert read_quality(critic) is None
    assert untouched(outside)
    assert context.jobs.all() == []


@pytest.mark.parametrize(
    "named", [{"web": "linked/precious"}, {"critic": "linked/x", "topics": ("/A",)}]
)
def test_what_a_definition_names_is_behind_no_link(
    named: dict[str, Any], folder: StudioFolder, context: StudioContext, outside: Path
) -> None:
    (folder.root / "linked").symlink_to(outside)
    topic = topic_of(folder, **named)
    with pytest.raises(UserError, match="linked is a link"):
        start_training(context, topic)
    assert context.jobs.all() == []


def test_a_definition_beside_a_crawl_is_no_link(
    folder: StudioFolder, context: StudioContext, outside: Path
) -> None:
    (outside / "topic.toml").write_text('words = ["secret"]\n')
    crawl = make_crawl(folder.root / "crawl")
    (crawl / "topic.toml").symlink_to(outside / "topic.toml")
    with pytest.raises(UserError, match=r"topic\.toml is a link"):
        JudgementApplier(context).state(crawl)
    with pytest.raises(UserError, match="no topic"):
        folder.topic("crawl/topic.toml")


def test_a_recording_beside_a_crawl_is_no_link(folder: StudioFolder, outside: Path) -> None:
    (folder.root / "pages.warc.gz").symlink_to(outside / "precious")
    with pytest.raises(UserError, match=r"pages\.warc\.gz is a link"):
        open_page_webs({"web": LIVE}, folder.root)


def test_a_path_below_a_folder_stays_there(tmp_path: Path) -> None:
    assert safe_join(tmp_path, "a/b/c") == tmp_path / "a" / "b" / "c"
    assert safe_join(tmp_path, "./a//b") == tmp_path / "a" / "b"
    for name in ("..", "a/../b", "/etc/passwd", "//etc", "a\0b"):
        with pytest.raises(UserError, match="leads out of"):
            safe_join(tmp_path, name)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    for name in ("dangling", "dangling/x", "loop/loop/x"):
        with pytest.raises(UserError, match="is a link"):
            safe_join(tmp_path, name)
    assert safe_join(tmp_path / "loop", "a") == tmp_path / "loop" / "a"  # as the user named it


def test_job_files_are_no_links(folder: StudioFolder, outside: Path) -> None:
    order = write_job(folder.root) / "order.json"
    shutil.move(order, outside / "order.json")
    order.symlink_to(outside / "order.json")
    assert Jobs(folder.root).all() == []
