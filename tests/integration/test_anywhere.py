"""``focuscrawl crawl`` and ``focuscrawl new`` where there is nothing but what pip installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from . import warm
from .running import ROOT, Kept

BUDGET = 20
FOCUSCRAWL = ("-m", "focuscrawl")
SCRAPY = ("-m", "scrapy")
DEMO = ("-a", "web=demo", "-a", "topic=/Sports/Cycling", "-a", "seeds=models/demo/seeds.csv")


def run(cwd: Path, *arguments: str, fresh: bool = False) -> subprocess.CompletedProcess[str]:
    """Run Python as in an environment that focuscrawl is installed in, away from its tree."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")
    } | {"PYTHONPATH": str(ROOT)}
    if not fresh:
        _, program, *words = arguments
        return warm.run(words, cwd=cwd, env=environment, program=program)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def crawled(done: subprocess.CompletedProcess[str], folder: Path) -> list[str]:
    """Return what a crawl fetched that came to a good end."""
    assert done.returncode == 0, done.stderr
    assert f"the budget of {BUDGET} fetches is spent" in done.stderr
    return Kept(folder).urls


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as `focuscrawl new` writes it, with its critic."""
    folder = tmp_path_factory.mktemp("new") / "my crawls"
    made = run(folder.parent, *FOCUSCRAWL, "new", folder.name)
    assert made.returncode == 0, made.stderr
    # what it says comes next is what works
    _, change, *commands = made.stdout.splitlines()
    assert change.split(maxsplit=1) == ["cd", "'my crawls'"]
    train, crawl = (command.split() for command in commands)
    trained = run(folder, *FOCUSCRAWL, *train[1:])
    assert trained.returncode == 0, trained.stderr
    assert crawl == ["focuscrawl", "crawl"]
    return folder


def test_a_crawl_needs_no_project(tmp_path: Path) -> None:
    given = (*DEMO, "-a", f"budget={BUDGET}", "-O", "pages.jsonl", "-a")
    done = run(tmp_path, *FOCUSCRAWL, "crawl", *given, "crawl_dir=one", fresh=True)
    urls = crawled(done, tmp_path / "one")
    assert len((tmp_path / "pages.jsonl").read_text(encoding="utf-8").splitlines()) == BUDGET
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = focuscrawl.settings\n")
    inside = run(tmp_path, *SCRAPY, "crawl", "focused", *given, "crawl_dir=two")
    assert crawled(inside, tmp_path / "two") == urls


def test_the_project_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "stranger", tmp_path, dirs_exist_ok=True)
    given = (*DEMO, "-a", f"budget={BUDGET}", "-a", "crawl_dir=crawl")
    done = run(tmp_path, *FOCUSCRAWL, "crawl", *given)
    assert len(crawled(done, tmp_path / "crawl")) == BUDGET


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no topic given: add -a topic=TOPIC or set FOCUSCRAWL_TOPIC; the critic"),
        ((*DEMO, "-s", "FOCUSCRAWL_BUGDET=5"), "unknown setting FOCUSCRAWL_BUGDET"),
        (
            (*DEMO, "--budget", "5"),
            "unknown argument --budget: write arguments of the crawl as -a NAME=VALUE",
        ),
    ],
)
def test_slips_are_one_line(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run(tmp_path, *FOCUSCRAWL, "crawl", *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"focuscrawl crawl: {said}")
    assert not [*tmp_path.iterdir()]


def test_help_is_of_this_command(tmp_path: Path) -> None:
    done = run(tmp_path, *FOCUSCRAWL, "crawl", "--help")
    assert done.returncode == 0
    assert "focuscrawl crawl [options]" in done.stdout
    assert "scrapy crawl" not in done.stdout
    for named in ("-a NAME=VALUE", "-s NAME=VALUE", "-O FILE", "crawl_dir", "knowledge"):
        assert named in done.stdout


@pytest.mark.parametrize("crawl", [(*FOCUSCRAWL, "crawl"), (*SCRAPY, "crawl", "focused")])
def test_a_new_project_crawls_with_its_settings(
    project: Path, tmp_path: Path, crawl: tuple[str, ...]
) -> None:
    done = run(project, *crawl, "-a", f"budget={BUDGET}", "-a", f"crawl_dir={tmp_path / 'crawl'}")
    urls = crawled(done, tmp_path / "crawl")
    seeds = (project / "seeds.txt").read_text(encoding="utf-8").splitlines()
    assert urls[:2] == [line for line in seeds if not line.startswith("#")]
    relevance = [r for (r,) in Kept(tmp_path / "crawl").query("SELECT relevance FROM pages")]
    assert relevance[0] > 0.9  # the first seed, by the project's critic
    assert sum(r > 0.5 for r in relevance) > BUDGET // 3  # nearly a tenth of the web is relevant


def test_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for name in (".", "notes.txt"):
        done = run(tmp_path, *FOCUSCRAWL, "new", name)
        assert done.returncode == 2
        assert done.stderr == (
            f"focuscrawl: {name} exists and is not an empty folder: name a new folder\n"
        )
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"
