"""What is installed is what is used: extras that are not there, and other people's processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from longer import long

from focuscrawl.cli.main import COMMANDS, EXTRA_OF
from focuscrawl.foundation.extras import EXTRAS

from . import warm
from .running import ROOT, TOPIC, Kept, environment, words

if TYPE_CHECKING:
    from pathlib import Path

EXTRA_MODULES = sorted({module for modules in EXTRAS.values() for module in modules})
DEMO = {"web": "demo", "topic": TOPIC, "seeds": "models/demo/seeds.csv", "budget": "20"}
ROUNDS = ["rounds", "{crawl}/../rounds.toml", "--out", "{tmp}/tables"]

# a finder before all others: modules that are not installed
_ABSENT = """
import importlib.abc, os, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in os.environ["ABSENT"].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
SCRAPY = "import sys; from scrapy.cmdline import execute; execute(['scrapy', *sys.argv[1:]])"
FOCUSCRAWL = "from focuscrawl.cli.main import main; main(prog_name='focuscrawl')"


def run(
    program: str, *arguments: str, absent: list[str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a program of one line, after some modules have gone."""
    code = f"{_ABSENT}\n{program}"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=os.environ | {"ABSENT": " ".join(absent or []), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def crawl(
    folder: Path, *options: str, absent: list[str], **more: str
) -> subprocess.CompletedProcess[str]:
    """Crawl the synthetic web."""
    given = DEMO | {"crawl_dir": str(folder)} | more
    spider = [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
    return run(SCRAPY, "crawl", "focused", *spider, *options, absent=absent)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a crawl, made where no extra is installed, with a feed."""
    folder = tmp_path_factory.mktemp("bare")
    feed = folder / "pages.csv"
    done = crawl(folder / "crawl", "-O", str(feed), absent=EXTRA_MODULES)
    assert done.returncode == 0, done.stderr
    assert len(feed.read_text(encoding="utf-8").splitlines()) == 21
    plan = f'topic = "{TOPIC}"\nseeds = "models/demo/seeds.csv"\nweb = "demo"\nbudget = 20\n'
    (folder / "rounds.toml").write_text(plan, encoding="utf-8")
    return folder / "crawl"


# one command after the other: what is absent is so for each of them
_COMMANDS = """
import contextlib, io, json
from focuscrawl.cli.main import main

codes = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            main(words, prog_name="focuscrawl")
        except SystemExit as end:
            codes.append([end.code, said.getvalue()])
print(json.dumps(codes))
"""
HELPED = [
    *([name] for name in sorted(COMMANDS.keys() - EXTRA_OF.keys())),
    *([], ["topic", "apply"], ["paths", "forage"]),
]


@pytest.fixture(scope="module")
def helped() -> list[tuple[int, str]]:
    """The exit code and the output of each command's ``--help``, where no extra is installed."""
    return without_extras([[*each, "--help"] for each in HELPED])


def without_extras(commands: list[list[str]]) -> list[tuple[int, str]]:
    done = run(_COMMANDS, json.dumps(commands), absent=EXTRA_MODULES)
    assert done.returncode == 0, done.stderr
    return [(code, said + done.stderr) for code, said in json.loads(done.stdout)]


@pytest.mark.parametrize("number", range(len(HELPED)), ids=[" ".join(each) for each in HELPED])
def test_help_needs_no_extra(number: int, helped: list[tuple[int, str]]) -> None:
    code, said = helped[number]
    assert code == 0, said
    assert " ".join(["focuscrawl", *HELPED[number]]) in said


def test_what_needs_no_extra(crawled: Path, tmp_path: Path) -> None:
    commands = [
        ["status", "--once", str(crawled)],
        ["why", str(crawled), Kept(crawled).urls[3]],
        ["apprentice", "train", str(crawled), "--out", f"{tmp_path}/apprentice"],
        ["knowledge", "learn", str(crawled), "--topic", TOPIC, "--out", f"{tmp_path}/k.db"],
        ["web", "info", "demo"],
    ]
    for command, (code, said) in zip(commands, without_extras(commands), strict=True):
        assert code == 0, (command, said)


def test_pages_to_judge_are_chosen_without_the_report(crawled: Path, tmp_path: Path) -> None:
    questions = str(tmp_path / "questions.csv")
    absent = ["pandas", "matplotlib", "jinja2"]
    done = run(FOCUSCRAWL, "topic", "suggest", str(crawled), "--out", questions, absent=absent)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "module", "extra"),
    [
        (["report", "{crawl}"], "pandas", "report"),
        *long(
            (["lab", "run", "study.toml", "--out", "{tmp}/out"], "pyarrow", "lab"),
            (["report", "{crawl}"], "matplotlib", "report"),
            (["report", "{crawl}"], "jinja2", "report"),
            (["web", "info", "a.parquet"], "pyarrow", "parquet"),
        ),
        (["distill", "{crawl}"], "pandas", "report"),
        (["topic", "suggest", "{crawl}", "--kind", "hub", "--out", "{tmp}/q"], "pandas", "report"),
        (["lab", "--help"], "matplotlib", "lab"),
        (["web", "info", "a.cdxj"], "pyarrow", "parquet"),
        ([*ROUNDS, "--master", "local[2]"], "pyspark", "spark"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_without_its_extra_is_one_line(
    arguments: list[str], module: str, extra: str, crawled: Path, tmp_path: Path
) -> None:
    given = [each.format(crawl=crawled, tmp=tmp_path) for each in arguments]
    done = run(FOCUSCRAWL, *given, absent=[module])
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("focuscrawl: ")
    assert line.endswith(
        f" needs {module}, which is not installed: pip install 'focuscrawl[{extra}]'"
    )
    assert done.stdout == ""
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("options", "more", "module", "extra"),
    [
        (["-O", "{tmp}/pages.parquet"], {}, "pyarrow", "parquet"),
        *long(
            (["-s", "FOCUSCRAWL_METRICS_PORT=1"], {}, "prometheus_client", "metrics"),
            ([], {"languages": "en"}, "py3langid", "languages"),
            ([], {"discover": "feeds"}, "feedparser", "feeds"),
            (["-s", "FOCUSCRAWL_PDF=1"], {}, "pypdf", "pdf"),
        ),
    ],
    ids=["parquet", "metrics", "languages", "feeds", "pdf"],
)
def test_a_crawl_without_an_extra_is_one_line_and_nothing_written(
    options: list[str], more: dict[str, str], module: str, extra: str, tmp_path: Path
) -> None:
    given = [each.format(tmp=tmp_path) for each in options]
    done = crawl(tmp_path / "crawl", *given, absent=[module], **more)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("scrapy crawl focused: ")
    assert line.endswith(
        f" needs {module}, which is not installed: pip install 'focuscrawl[{extra}]'"
    )
    assert not [*tmp_path.iterdir()]


def test_a_setting_that_does_not_exist_is_one_line_and_nothing_written(tmp_path: Path) -> None:
    line = words(tmp_path / "crawl", "-s", "FOCUSCRAWL_STAGNATOIN=5", **DEMO)
    done = warm.run(line, cwd=ROOT, env=environment())
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "scrapy crawl focused: there is no setting FOCUSCRAWL_STAGNATOIN: "
        "do you mean FOCUSCRAWL_STAGNATION?"
    ]
    assert not [*tmp_path.iterdir()]


def test_other_commands_of_scrapy_do_not_mind(tmp_path: Path) -> None:
    misspelt = ("-s", "FOCUSCRAWL_BUGDET=5", "-s", "FOCUSCRAWL_LIMITS=maybe")
    for command in (["list"], ["settings", "--get", "BOT_NAME"], ["version"]):
        done = warm.run([*command, *misspelt], cwd=ROOT, env=environment())
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("program", "allowed"),
    [
        ("import focuscrawl", []),
        ("import focuscrawl.addon", ["scrapy", "twisted", "lxml", "parsel"]),
        (f"sys.argv = ['focuscrawl', '--help']\n    {FOCUSCRAWL}", ["click"]),
    ],
    ids=["package", "addon", "cli"],
)
def test_what_an_import_pulls_in(program: str, allowed: list[str]) -> None:
    heavy = [
        *EXTRA_MODULES,
        *("click", "joblib", "lxml", "numpy", "parsel", "scipy", "scrapy", "sklearn"),
        *("threadpoolctl", "tldextract", "tomlkit", "tqdm", "twisted", "wordfreq"),
    ]
    done = run(
        f"try:\n    {program}\nexcept SystemExit:\n    pass\n"
        f"print('loaded', *sorted(set({heavy!r}) & sys.modules.keys()))"
    )
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.splitlines()[-1].split()[1:]
    assert set(loaded) <= set(allowed)


# how a process is, before and after
_STATE = """
import ctypes, gc, json, sys
import numpy, scipy.linalg, sklearn
from threadpoolctl import threadpool_info

def state():
    blas = {each["filepath"]: each["num_threads"] for each in threadpool_info()}
    return [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), blas]

before = state()
"""
_STRANGER = """
import scrapy
from scrapy.crawler import CrawlerProcess

class Stranger(scrapy.Spider):
    name = "stranger"
    start_urls = [sys.argv[1]]

    def parse(self, response):
        yield {"url": response.url}

process = CrawlerProcess({
    "ADDONS": {"focuscrawl.addon.FocusedCrawling": 500},
    "FOCUSCRAWL_WEB": "demo", "FOCUSCRAWL_TOPIC": "/Sports/Cycling", "FOCUSCRAWL_BUDGET": 40,
    "FOCUSCRAWL_CRAWL_DIR": sys.argv[2], "FOCUSCRAWL_STRATEGY_OPTIONS": {"batch": 10},
    "FOCUSCRAWL_FOLLOW": True, "LOG_LEVEL": "ERROR",
})
process.crawl(Stranger)
process.start()
ours = [name for name in sys.modules if name.endswith("own_process")]
"""
_OURS = """
from scrapy.cmdline import execute

try:
    execute(["scrapy", "crawl", "focused", *sys.argv[1:]])
except SystemExit as end:
    assert not end.code
ours = [name for name in sys.modules if name.endswith("own_process")]
"""
_SAY = "print(json.dumps([before, state(), ours]))"


def states(program: str, *arguments: str) -> tuple[list[Any], list[Any], list[str]]:
    """Return how a process was before a crawl and after it."""
    done = run(f"{_STATE}\n{program}\n{_SAY}", *arguments)
    assert done.returncode == 0, done.stderr
    before, after, ours = json.loads(done.stdout.splitlines()[-1])
    return before, after, ours


def test_a_process_of_others_is_left_as_it_was(crawled: Path, tmp_path: Path) -> None:
    before, after, ours = states(_STRANGER, Kept(crawled).urls[0], str(tmp_path / "crawl"))
    assert len(Kept(tmp_path / "crawl").order) == 40
    assert Kept(tmp_path / "crawl").query("SELECT count(*) FROM models")[0][0] > 0
    assert after == before
    assert ours == []  # nor has anything been said to the C library


def test_our_own_process_is_set_up(tmp_path: Path) -> None:
    given = DEMO | {"crawl_dir": str(tmp_path / "crawl")}
    spider = [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
    before, after, ours = states(_OURS, *spider)
    assert before[2] == 0
    assert after[2] > 100_000  # objects that collections pass over
    assert after[1][0] == 10_000
    assert {threads for path, threads in after[3].items() if "blas" in path} == {1}
    assert ours
