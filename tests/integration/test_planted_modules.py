"""A folder with a file of every module's name in it: no command imports any of them there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import pytest
from unit import departments

from focuscrawl.cli.main import COMMANDS
from focuscrawl.foundation.processes import process_pool, safe_python_path, start_python

from .running import QUICK, ROOT, TOPIC, as_options, crawl
from .studio import NEW_CRAWL, Client, serving

if TYPE_CHECKING:
    from .conftest import LocalWeb

FOCUSCRAWL = str(Path(sys.executable).with_name("focuscrawl"))
MODELS = ROOT / "models" / "demo"
CRAWL = ["-a", "web=demo", "-a", f"topic={TOPIC}", "-a", f"critic={MODELS}"]
LABELS = ["--labels", "labels.csv", "--column", "kind", "--goal", "professor"]
STUDY = f"""
title = "small"
draws = 1
budget = 5
[[webs]]
name = "demo"
recording = "demo"
labels = "labels-of-topics.csv"
seeds = "{MODELS}/seeds.csv"
topics = ["{TOPIC}"]
critic = "{MODELS}"
[[strategies]]
strategy = "best-first"
"""
PLAN = f"""
topic = "{TOPIC}"
critic = "{MODELS}"
seeds = "{MODELS}/seeds.csv"
web = "demo"
budget = 4
round = 4
buckets = 2
"""
TOPIC_FILE = 'name = "/cycling"\nwords = ["cycling", "bicycle"]\nweb = "demo"\n'
#: of every command one that is cheap, and begins the processes that it begins
LINES = {
    "apprentice": ["train", "crawl", "--out", "apprentice"],
    "audit": ["departments.warc.gz", "--critic", "models/demo", "--topic", TOPIC],
    "collect": ["crawl", "--out", "rows.jsonl"],
    "crawl": [*CRAWL, "-a", "budget=5"],
    "corpus": ["cycling", "http://cycling.example/", "--web", "demo", "--out", "corpus.csv"],
    "critic": ["train", "--words", "cycling", "--out", "critic"],
    "distill": ["crawl"],
    "extend": ["crawl", "20"],
    "knowledge": ["learn", "crawl", "--topic", TOPIC, "--out", "knowledge.db"],
    "lab": ["run", "study.toml", "--out", "results"],
    "new": ["project"],
    "paths": [
        *("extract", "departments.warc.gz", *LABELS, "--starts", "starts.txt"),
        *("--out", "paths.jsonl"),
    ],
    "pause": ["crawl"],
    "plan": CRAWL,
    "recrawl": [TOPIC, "--budget", "5", "--web", "demo"],
    "report": ["crawl"],
    "resume": ["crawl"],
    "rounds": ["rounds.toml", "--out", "tables", "--master", "processes[2]"],
    "status": ["crawl"],
    "stop": ["crawl"],
    "studio": ["--help"],  # below, with what it begins
    "topic": ["train", "topic.toml", "--out", "trained"],
    "web": ["info", "demo"],
    "why": ["crawl", "http://cycling.example/"],
}
#: as the console command, each in a process of its own, which has what commands import
PROGRAM = """
import gc, json, os, sys
from importlib import import_module
from pkgutil import iter_modules
from focuscrawl.cli.main import main

def run(line):
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        main(line, prog_name="focuscrawl")
    finally:  # the command exits in the usual way, which ends the processes that it started
        assert not {"", ".", os.getcwd()} & set(sys.path), line

if __name__ == "__main__":  # processes that are begun import it, too
    import focuscrawl.cli, focuscrawl.commands, pandas, sklearn.linear_model
    for package in (focuscrawl.cli, focuscrawl.commands):
        for found in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(found.name)
    gc.freeze()  # a process copies what a collection looks at
    codes = {line[0]: run(line) for line in json.loads(sys.argv[1])}
    print(json.dumps(codes))
"""
#: commands that have nothing to do in the folder, and say so
REFUSED = {"corpus", "extend", "stop", "why"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl, a recorded web, a study and a plan; and with the modules."""
    folder = tmp_path_factory.mktemp("planted") / "theirs"
    folder.mkdir()
    given = {"topic": TOPIC, "web": "demo", "critic": "models/demo"}
    crawl(folder / "crawl", budget=20, **given)
    departments.make(folder)
    rows = (MODELS / "examples.csv").read_text().splitlines()
    (folder / "labels-of-topics.csv").write_text("\n".join([rows[0], *rows[1::25]]))
    (folder / "study.toml").write_text(STUDY)
    (folder / "rounds.toml").write_text(PLAN)
    (folder / "topic.toml").write_text(TOPIC_FILE)
    plant(folder)
    return folder


@pytest.fixture
def theirs(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "theirs"))


def plant(folder: Path) -> None:
    """Write a file of every module's name, which says that it was imported."""
    installed = {each.name for each in iter_modules() if "test" not in each.name}
    for name in {*sys.stdlib_module_names, *installed, "sitecustomize", "usercustomize"}:
        text = "open(__file__ + '.imported', 'w').close()\n"
        (folder / f"{name}.py").write_text(text)


def name_settings(folder: Path) -> None:
    """Have a ``scrapy.cfg`` name a module there; Scrapy finds modules there by it, too."""
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = evil.settings\n")
    (folder / "evil").mkdir()
    (folder / "evil" / "__init__.py").write_text("open(__file__ + '.imported', 'w').close()\n")
    (folder / "evil" / "settings.py").write_text("")


def imported(folder: Path) -> list[str]:
    return [each.name for each in folder.rglob("*.imported")]


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"FOCUSCRAWL_CACHE": str(folder.parent / "cache")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_no_command_imports_from_the_current_folder(theirs: Path) -> None:
    program = theirs.parent / "bin" / "program"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    lines = json.dumps([[name, *LINES[name]] for name in sorted(COMMANDS)])
    done = run(sys.executable, program, lines, folder=theirs)
    assert imported(theirs) == []
    codes = {name: 2 if name in REFUSED else 0 for name in COMMANDS}
    assert json.loads(done.stdout.splitlines()[-1]) == codes, done.stderr


def test_rounds_of_the_live_web_do_not(theirs: Path, local_web: LocalWeb) -> None:
    name_settings(theirs)
    plan = (
        PLAN.replace('web = "demo"', "")
        .replace("buckets = 2", "buckets = 1")
        .replace(f'seeds = "{MODELS}/seeds.csv"', f'seeds = "{local_web.origins["a"]}/end"')
    )
    settings = '[settings]\nFOCUSCRAWL_PRIVATE_ADDRESSES = "127.0.0.0/8"\nDOWNLOAD_DELAY = 0.1\n'
    (theirs / "rounds.toml").write_text(plan + settings)
    before = len(local_web.requests())
    run(FOCUSCRAWL, "rounds", *LINES["rounds"][:-1], "processes[1]", folder=theirs)
    assert imported(theirs) == []
    assert len(local_web.requests()) > before


def test_what_the_studio_begins_does_not(theirs: Path, local_web: LocalWeb) -> None:
    """Nor does it read settings there: they come from who starts the studio."""
    name_settings(theirs.parent)
    name_settings(theirs)
    (theirs / "evil" / "settings.py").write_text("USER_AGENT = 'evil'\n")
    before = len(local_web.requests())
    options = as_options(QUICK | {"USER_AGENT": "survey"})
    with serving(theirs, options=options, forks=False) as address:
        client = Client(address)
        new = NEW_CRAWL | {"name": "begun", "budget": "3"}
        new |= {"web": "", "seeds": f"{local_web.origins['a']}/"}
        client.until("/outlook", lambda found: not found["running"], new)
        client.ask("/crawls", new)
        job = client.until("/jobs", lambda jobs: jobs[0]["state"] != "running")[0]
        sum_ = client.until("/crawls/crawl/hosts", lambda found: not found["running"])
    assert job["state"] == "done", job["said"]
    assert sum_["value"]["hosts"]
    assert imported(theirs.parent) == []
    assert {each["agent"] for each in local_web.requests()[before:]} == {"survey"}


@pytest.mark.parametrize("variable", ["", ":/opt/more", "/opt/more:", ".", "src"])
def test_an_empty_entry_of_the_search_path_is_no_current_folder(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``PYTHONPATH=$PYTHONPATH:/opt/more`` makes one."""
    monkeypatch.setenv("PYTHONPATH", variable)
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "src"):
        folder.mkdir(exist_ok=True)
        for name in ("planted", "sitecustomize", "multiprocessing"):
            text = "open(__file__ + '.imported', 'w').close()\n"
            (folder / f"{name}.py").write_text(text)
    with start_python(["-c", "import planted"], stderr=subprocess.DEVNULL) as process:
        assert process.wait() == 1
    with safe_python_path():
        assert subprocess.run([sys.executable, "-c", "import multiprocessing"], check=False)
    with process_pool(1) as pool:
        assert pool.submit(len, "abc").result() == 3
    assert imported(tmp_path) == []
    assert os.environ["PYTHONPATH"] == variable
