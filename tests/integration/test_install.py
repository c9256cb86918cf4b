"""What is installed is what is used: extras that are not there, and other people's processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from focuscrawl.cli.main import COMMANDS, REQUIRED_EXTRAS
from focuscrawl.foundation.extras import EXTRAS

from . import warm
from .running import DEMO, ROOT, TOPIC, Kept, environment, refused, words

EXTRA_MODULES = sorted({module for modules in EXTRAS.values() for module in modules})
GIVEN = DEMO | {"budget": "20"}
FOCUSCRAWL = "from focuscrawl.cli.main import main; main(prog_name='focuscrawl')"

# Commands one after the other, those of a group in a fork of its own in which some modules are not
# installed: a finder before all others does not find them. Prints exit codes and what was said.
# What all groups import of other projects, and is no extra, is imported once.
_COMMANDS = """
import importlib.abc, json, os, sys, tempfile
import scipy.sparse, scrapy.cmdline, scrapy.core.engine, scrapy.crawler, tldextract, tomlkit
import twisted.internet.asyncioreactor, w3lib.encoding
from focuscrawl.cli import main

class Absent(importlib.abc.MetaPathFinder):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def run(program, *words):
    try:
        if program == "scrapy":
            scrapy.cmdline.execute(["scrapy", *words])
        main.main(words, prog_name="focuscrawl")
    except SystemExit as end:
        return end.code or 0

def run_all(absent, commands, told):
    assert not sys.modules.keys() & set(absent)
    sys.meta_path.insert(0, Absent(absent))
    for command in commands:
        with tempfile.TemporaryFile("w+") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            code = run(*command)
            sys.stdout.flush()
            out.seek(0)
            told.write(json.dumps([code, out.read()]) + "\\n")
            told.flush()

for group in json.load(sys.stdin):
    with os.fdopen(os.dup(1), "w") as told:
        if os.fork() == 0:
            try:
                run_all(*group, told)
            finally:
                os._exit(0)
        os.wait()
"""


def run(program: str, *arguments: str, given: str = "") -> str:
    """Run a program of Python's; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input=given,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def without(*groups: tuple[list[str], list[list[str]]]) -> list[tuple[int, str]]:
    """Run programs with their words where modules are absent; return exit codes and outputs."""
    ended = map(json.loads, run(_COMMANDS, given=json.dumps(groups)).splitlines())
    return [(code, said) for code, said in ended]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a crawl, made where no extra is installed, with a feed."""
    folder = tmp_path_factory.mktemp("bare")
    feed = folder / "pages.csv"
    line = ["scrapy", *words(folder / "crawl", "-O", str(feed), **GIVEN)]
    ((code, said),) = without((EXTRA_MODULES, [line]))
    assert code == 0, said
    assert len(feed.read_text(encoding="utf-8").splitlines()) == 21
    return folder / "crawl"


def test_what_needs_no_extra(crawled: Path, tmp_path: Path) -> None:
    helped = [*([name] for name in sorted(COMMANDS.keys() - REQUIRED_EXTRAS.keys()))]
    helped += [[], ["topic", "apply"], ["paths", "forage"]]
    commands = [
        *([*name, "--help"] for name in helped),
        ["status", "--once", str(crawled)],
        ["why", str(crawled), Kept(crawled).urls[3]],
        ["apprentice", "train", str(crawled), "--out", f"{tmp_path}/apprentice"],
        ["knowledge", "learn", str(crawled), "--topic", TOPIC, "--out", f"{tmp_path}/k.db"],
        ["web", "info", "demo"],
    ]
    questions = ["topic", "suggest", str(crawled), "--out", f"{tmp_path}/q.csv"]
    typed = [["focuscrawl", *each] for each in commands]
    report = ["pandas", "matplotlib", "jinja2"]
    ended = without((EXTRA_MODULES, typed), (report, [["focuscrawl", *questions]]))
    for command, (code, said) in zip([*commands, questions], ended, strict=True):
        assert code == 0, (command, said)
    for name, (_, said) in zip(helped, ended, strict=False):
        assert " ".join(["focuscrawl", *name]) in said


#: by a module: commands that need it, and the extra that has it
LACKING = {
    "pandas": [
        ("report", "focuscrawl report {crawl}"),
        ("report", "focuscrawl distill {crawl}"),
        ("report", "focuscrawl topic suggest {crawl} --kind hub --out {tmp}/q"),
    ],
    "matplotlib": [("report", "focuscrawl report {crawl}"), ("lab", "focuscrawl lab --help")],
    "jinja2": [("report", "focuscrawl report {crawl}")],
    "pyarrow": [
        ("lab", "focuscrawl lab run study.toml --out {tmp}/out"),
        ("parquet", "focuscrawl web info a.parquet"),
        ("parquet", "focuscrawl web info a.cdxj"),
        ("parquet", "{scrapy} -O {tmp}/pages.parquet"),
    ],
    "pyspark": [("spark", "focuscrawl rounds {plan} --out {tmp}/t --master local[2]")],
    "prometheus_client": [("metrics", "{scrapy} -s FOCUSCRAWL_METRICS_PORT=1")],
    "py3langid": [("languages", "{scrapy} -a languages=en")],
    "feedparser": [("feeds", "{scrapy} -a discover=feeds")],
    "pypdf": [("pdf", "{scrapy} -s FOCUSCRAWL_PDF=1")],
}


def test_without_an_extra_it_is_one_line_and_nothing_written(
    crawled: Path, tmp_path: Path
) -> None:
    plan, empty = tmp_path / "rounds.toml", tmp_path / "empty"
    empty.mkdir()
    given = DEMO | {"budget": 20}
    plan.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items()))
    scrapy = " ".join(["scrapy", *words(empty / "crawl", **GIVEN)])
    places = {"crawl": crawled, "tmp": empty, "plan": plan, "scrapy": scrapy}
    groups = [
        ([module], [line.format(**places).split() for _, line in lacking])
        for module, lacking in LACKING.items()
    ]
    needs = [(module, extra) for module, lacking in LACKING.items() for extra, _ in lacking]
    for (module, extra), (code, said) in zip(needs, without(*groups), strict=True):
        assert code == 2, (module, said)
        (line,) = said.splitlines()
        assert line.startswith(("focuscrawl: ", "scrapy crawl focused: "))
        assert line.endswith(
            f" needs {module}, which is not installed: pip install 'focuscrawl[{extra}]'"
        )
    assert not [*empty.iterdir()]


def test_a_setting_that_does_not_exist_is_one_line_and_nothing_written(tmp_path: Path) -> None:
    assert refused(tmp_path / "crawl", FOCUSCRAWL_STAGNATOIN=5, **GIVEN) == (
        "scrapy crawl focused: unknown setting FOCUSCRAWL_STAGNATOIN: "
        "did you mean FOCUSCRAWL_STAGNATION?"
    )
    assert not [*tmp_path.iterdir()]
    misspelt = ("-s", "FOCUSCRAWL_BUGDET=5", "-s", "FOCUSCRAWL_LIMITS=maybe")
    for command in (["list"], ["settings", "--get", "BOT_NAME"], ["version"]):  # do not mind
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
    said = run(
        f"import sys\ntry:\n    {program}\nexcept SystemExit:\n    pass\n"
        f"print('loaded', *sorted(set({heavy!r}) & sys.modules.keys()))"
    )
    loaded = said.splitlines()[-1].split()[1:]
    assert set(loaded) <= set(allowed)


_ONE_THREAD = """
import os
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.pop(name, None)
import click
from focuscrawl.cli.main import main
main.get_command(click.Context(main), "critic")
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
print(*(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"))
"""


def test_commands_compute_with_one_thread() -> None:
    assert set(run(_ONE_THREAD).split()) == {"1"}


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
    execute(["scrapy", *sys.argv[1:]])
except SystemExit as end:
    assert not end.code
ours = [name for name in sys.modules if name.endswith("own_process")]
"""
_SAY = "print(json.dumps([before, state(), ours]))"


def states(program: str, *arguments: str) -> tuple[list[Any], list[Any], list[str]]:
    """Return how a process was before a crawl and after it."""
    said = run(f"{_STATE}\n{program}\n{_SAY}", *arguments)
    before, after, ours = json.loads(said.splitlines()[-1])
    return before, after, ours


def test_a_process_of_others_is_left_as_it_was(crawled: Path, tmp_path: Path) -> None:
    before, after, ours = states(_STRANGER, Kept(crawled).urls[0], str(tmp_path / "crawl"))
    assert len(Kept(tmp_path / "crawl").order) == 40
    assert Kept(tmp_path / "crawl").query("SELECT count(*) FROM models")[0][0] > 0
    assert after == before
    assert ours == []  # nor has anything been said to the C library


def test_our_own_process_is_set_up(tmp_path: Path) -> None:
    before, after, ours = states(_OURS, *words(tmp_path / "crawl", **GIVEN))
    assert before[2] == 0
    assert after[2] > 100_000  # objects that collections pass over
    assert after[1][0] == 10_000
    assert {threads for path, threads in after[3].items() if "blas" in path} == {1}
    assert ours
