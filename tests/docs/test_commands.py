"""Every command of the documentation does what is printed, or is marked here with the reason.

A command is a line of an indented block, or of one fenced as ``sh``, that begins with one of
`PROGRAMS`. Those of a document are run one after the other in a folder of its own, in which lies
what a reader has by then: crawls, critics, recordings, made once. Files that a document writes
(```` ```python mycritic.py ````) are written before. Budgets are cut, and ``https://example.org``
is a server on loopback. What needs more than a test has is in `NOT_RUN`, and is checked as far as
words go: programs, options, arguments, settings, files.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading
import tomllib
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest
from integration import warm
from scrapy.settings import Settings

from focuscrawl.cli.main import main
from focuscrawl.engine.settings_table import ARGUMENTS, check_settings
from focuscrawl.webs.synthetic import SyntheticWeb
from focuscrawl.webs.warc_recorder import WarcRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = (
    *("focuscrawl", "scrapy", "python", "python3", "pip", "make", "pytest", "sed", "export", "cd"),
    *("mkdir", "scrapyd-deploy", "curl", "podman", "docker", "systemctl", "cp"),
)
BUDGET = 25
#: beginnings of commands that are not run, and why not
_SHARED = "needs PostgreSQL: tests/integration/test_workers.py does it"
_UNDER_WAY = "needs a crawl under way: tests/integration/test_operations.py does it"
_SCRAPYD = "Scrapyd: tests/integration/test_scrapyd.py does it"
NOT_RUN = {
    "make ": "makes environments from a package index, and runs these tests",
    "pip install": "needs a package index",
    "python3 -m venv": "needs a package index; tests/integration/test_scrapyd.py does it",
    "mkdir data": _SCRAPYD,
    "scrapyd-deploy": _SCRAPYD,
    "curl ": _SCRAPYD,
    "podman ": "needs a container engine",
    "export PGPASSWORD": "a password",
    "export FOCUSCRAWL_TEACHER_KEY": "a key",
    "focuscrawl topic suggest crawls/cycling --teacher": "needs a model: "
    "tests/integration/test_cli_topic_teacher.py does it",
    "scrapy crawl focused -a store=": _SHARED,
    'focuscrawl status "postgresql': _SHARED,
    "focuscrawl pause": _UNDER_WAY,
    "focuscrawl studio": "serves until Ctrl-C: tests/integration/test_studio.py does it",
    "focuscrawl resume": _UNDER_WAY,
    "focuscrawl extend": _UNDER_WAY,
    "focuscrawl stop": _UNDER_WAY,
    "focuscrawl lab ": "hours on recorded real webs: tests/integration/test_cli_lab.py does it",
    "python benchmarks/": "minutes to hours: make bench",
    "focuscrawl paths ": "a person's walk: tests/unit/test_paths_recording.py does it",
    "scrapy crawl focused -a critic=models/people": "needs a person's walk",
    "focuscrawl why crawls/cycling https://larder-0": "needs a crawl that was held back there",
    "focuscrawl critic train labels.csv --web crawls/examples": "needs thousands of live pages",
    "scrapy crawl focused -s FOCUSCRAWL_PRIVATE_ADDRESSES": "says only what matters",
}

_OF_A_SHELL = re.compile(r"[|<>*?$`;&~#\\]")
_FENCED = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_QUICK = """
from focuscrawl.settings import *
DOWNLOAD_DELAY = RETRY_TIMES = 0
AUTOTHROTTLE_ENABLED = False
FOCUSCRAWL_PRIVATE_ADDRESSES = "127.0.0.0/8"
FOCUSCRAWL_BUDGET = 25
"""
_IN_PLACE = "in-place"  # folder of what stands in for packages
# what scrapy-playwright is for a crawl: a handler that looks at the meta of a request
_BROWSER = """
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler


class ScrapyPlaywrightDownloadHandler(HTTP11DownloadHandler):
    async def download_request(self, request):
        response = await super().download_request(request)
        if not request.meta.get("playwright"):
            return response
        return response.replace(body=response.body + b"<p>made by a script")
"""
_Done = subprocess.CompletedProcess[str]
_PAGE = "<title>Cycling {0}</title><p>Road cycling, bicycle, peloton {0}. <a href='{0}a'>a</a>"


class _Command(NamedTuple):
    document: Path
    section: str
    text: str

    @property
    def why_not(self) -> str | None:
        """Why it is not run."""
        return next((why for start, why in NOT_RUN.items() if self.text.startswith(start)), None)


def _commands(document: Path) -> Iterator[_Command]:
    """Find the commands of a document, in their order."""
    section = "begin"
    for kind, text in _pieces(document.read_text(encoding="utf-8")):
        for line in text.splitlines():
            if not kind and line.startswith("## "):
                section = line[3:]
            command = line if kind == "sh" else line.removeprefix("    ")
            if command.startswith(_STARTS) and kind in ("", "sh") and (kind or command != line):
                yield _Command(document, section, command)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a document into (language, fenced block) and ("", what is between)."""
    at = 0
    for block in _FENCED.finditer(text):
        yield "", text[at : block.start()]
        yield block[1], block[3]
        at = block.end()
    yield "", text[at:]


_STARTS = (*(f"{program} " for program in PROGRAMS), "scrapyd-deploy")


ALL = [command for path in DOCUMENTS for command in _commands(path)]
RUN = [command for command in ALL if command.why_not is None]
SECTIONS = list(dict.fromkeys((command.document, command.section) for command in RUN))


class _Cyclists(BaseHTTPRequestHandler):
    """Answers every path with a page on cycling that links to two more."""

    def do_GET(self) -> None:
        body = _PAGE.format(self.path).encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Cyclists)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, origin: str) -> Path:
    """A folder with what a reader has from other pages, made once."""
    folder = tmp_path_factory.mktemp("shelf")
    shutil.copytree(ROOT / "models", folder / "models")
    shutil.copytree(ROOT / "studies", folder / "studies")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = quick\n")
    (folder / "quick.py").write_text(_QUICK)
    browser = folder / _IN_PLACE / "scrapy_playwright"
    browser.mkdir(parents=True)
    (browser / "__init__.py").touch()
    (browser / "handler.py").write_text(_BROWSER)
    (folder / "urls.txt").write_text("".join(f"{origin}/{n}\n" for n in range(3)))
    (folder / "seeds.txt").write_text(f"{origin}/\n")
    found = [{"link": f"{origin}/{n}", "title": "Road cycling"} for n in range(3)]
    (folder / "answers.json").write_text(json.dumps({"results": found}))
    _record(folder)
    _run(
        folder,
        "focuscrawl critic train --words 'road cycling, bicycle, peloton' --out models/words\n"
        "cp -r models/words models/cycling\n"
        "scrapy crawl focused -a web=demo -a topic=/Sports/Cycling -a seeds=models/demo/seeds.csv"
        f" -a budget={BUDGET} -a crawl_dir=crawls/first\n"
        "cp -r crawls/first crawls/cycling\n",
    )
    return folder


def _record(folder: Path) -> None:
    """Record the labelled pages of the synthetic web, with their table of labels."""
    web, at = SyntheticWeb(), datetime(2026, 1, 1, tzinfo=UTC)
    labels = [label for label in web.labels() if label.topic.startswith(("/Science", "/Comp"))]
    with WarcRecorder(folder / "pages.warc.gz") as recorder:
        for label in labels:
            answer = web.fetch(label.url)
            assert answer is not None
            recorder.record(
                request_method="GET",
                url=label.url,
                request_headers=[],
                request_body=b"",
                status=answer.status,
                reason="OK",
                response_headers=answer.headers,
                body_raw=answer.body,
                ip=None,
                at=at,
            )
    (folder / "pages.warc").write_bytes(gzip.decompress((folder / "pages.warc.gz").read_bytes()))
    rows = "".join(f"{label.url},{label.topic}\n" for label in labels)
    split = [
        f"{label.url},{label.topic},{'test' if n % 3 else 'train'}\n"
        for n, label in enumerate(labels)
    ]
    (folder / "labels.csv").write_text("url,topic,split\n" + "".join(split))
    (folder / "seeds.csv").write_text(f"url,topic\n{rows}")


def _here(command: str, origin: str) -> str:
    """Return a command as it can be run on a machine without a network, in seconds."""
    command = re.sub(r"https://example\.(org|net)", origin, command)
    if "-a stop=" in command:  # a budget beside it is not what ends it
        return command
    return re.sub(
        r"(-a budget=|--budget )(\d+)", lambda m: m[1] + str(min(int(m[2]), BUDGET)), command
    ).replace("/var/lib/", "")


def _run(folder: Path, script: str) -> None:
    """Type commands one after another."""
    packages = [_as_installed(path) for path in folder.glob("*/pyproject.toml")]
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        # this tree, wherever the environment's own focuscrawl is
        "PYTHONPATH": os.pathsep.join(map(str, [*packages, folder / _IN_PLACE, ROOT])),
    }
    for line in script.splitlines():
        program, *words = shlex.split(line)
        if program == "cd":
            folder /= words[0]
        elif program in ("focuscrawl", "scrapy") and not _OF_A_SHELL.search(line):
            _check(warm.run(words, cwd=folder, env=environment, program=program))
        else:
            _check(_in_a_shell(line, folder, environment))


def _in_a_shell(line: str, folder: Path, environment: dict[str, str]) -> _Done:
    return subprocess.run(
        ["bash", "-e", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
    )


def _check(done: _Done) -> None:
    assert done.returncode == 0, f"{done.args}: {done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr


def _as_installed(pyproject: Path) -> Path:
    """Make the folder of a package look as if pip had installed it."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    info = pyproject.parent / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines.append(f"[{group}]")
        lines += [f"{entry} = {target}" for entry, target in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return pyproject.parent


class _Reader:
    """Reads a document from the beginning, and types every command."""

    def __init__(self, document: Path, folder: Path, origin: str) -> None:
        self._document, self.folder, self._origin = document, folder, origin
        self._left = [section for path, section in SECTIONS if path == document]
        for _, about, body in _FENCED.findall(document.read_text(encoding="utf-8")):
            if (name := about.strip()) and name != "runs":
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(body, encoding="utf-8")
        for command in RUN:
            for made in re.findall(r"--out (models/\S+)", command.text):
                if command.document == document:
                    shutil.rmtree(folder / made, ignore_errors=True)

    def read(self, section: str) -> None:
        """Run what leads to the end of a section and was not run yet."""
        while section in self._left:
            now = self._left.pop(0)
            commands = [c.text for c in RUN if (c.document, c.section) == (self._document, now)]
            _run(self.folder, "\n".join(_here(each, self._origin) for each in commands))


@pytest.fixture(scope="module")
def readers(
    shelf: Path, origin: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], _Reader]:
    @functools.cache
    def reader_of(document: Path) -> _Reader:
        folder = tmp_path_factory.mktemp("reader") / "folder"
        shutil.copytree(shelf, folder)
        return _Reader(document, folder, origin)

    return reader_of


@pytest.mark.parametrize(
    ("document", "section"),
    [
        pytest.param(
            *each,
            id=f"{each[0].name}: {each[1]}",
            marks=pytest.mark.xdist_group(each[0].name),  # one after the other
        )
        for each in SECTIONS
    ],
)
def test_commands_run_as_printed(
    document: Path, section: str, readers: Callable[[Path], _Reader]
) -> None:
    readers(document).read(section)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(each.text, id=f"{each.document.name}: {each.text[:40]}: {each.why_not}")
        for each in ALL
        if each.why_not is not None
    ],
)
def test_what_is_not_run_is_a_command_all_the_same(command: str) -> None:
    for part in command.split(" && "):
        program, *words = shlex.split(part)
        if program == "focuscrawl":
            _parse(words)
        elif program == "scrapy":
            _check_crawl([word for word in words if word != "..."])
        elif program == "python":
            assert (ROOT / words[0]).is_file()
        elif program == "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE)


def _parse(words: list[str]) -> None:
    """Refuse what the commands would refuse before they begin."""
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, name
        command = found
    command.make_context(command.name, words)


def _check_crawl(words: list[str]) -> None:
    given = [b for a, b in pairwise(words) if a == "-a"]
    assert {each.partition("=")[0] for each in given} <= set(ARGUMENTS)
    settings = Settings()
    for a, b in pairwise(words):
        if a == "-s":
            name, _, value = b.partition("=")
            assert name.startswith("FOCUSCRAWL_") or name in settings, name
            settings.set(name, value)
    check_settings(settings)


def test_every_page_is_fetched_by_the_browser_that_is_asked_for(
    readers: Callable[[Path], _Reader],
) -> None:
    reader = readers(ROOT / "docs" / "usage.md")
    reader.read("Pages that need a browser")
    recordings = [*reader.folder.glob("crawls/good-*/pages.warc.gz")]
    kept = [gzip.decompress(path.read_bytes()) for path in recordings]
    assert max(each.count(b"made by a script") for each in kept) >= 3


def test_the_way_from_words_to_a_corpus_ends_by_itself(
    readers: Callable[[Path], _Reader],
) -> None:
    reader = readers(ROOT / "docs" / "corpus.md")
    reader.read("Corpus")
    _check_corpus(reader.folder, 1000)


# a real web in place of the synthetic one
_BIRDS = {
    "road cycling, bicycle, peloton": "birds, ornithology, plumage, breeding season",
    "Cycling": "Birds",
}
# and a crawl that ends sooner than by the rule that stands there
_SOON = {"budget=1000": "budget=100", "recall 0.9, next 100 < 0.1": "next 100 < 0.9"}
_BIRD_PAGES = ("Freckled_duck", "Palaeeudyptinae", "Phasianidae")


@pytest.mark.webs
@pytest.mark.parametrize(
    ("instead", "budget"),
    [
        pytest.param(_SOON, 100, id="soon"),
        pytest.param({}, 1000, id="as documented", marks=pytest.mark.long),
    ],
)
def test_the_way_from_words_to_a_corpus_is_the_same_on_a_real_web(
    wikipedia_warc: Path, tmp_path: Path, instead: dict[str, str], budget: int
) -> None:
    document = ROOT / "docs" / "corpus.md"
    folder = _Reader(document, tmp_path, "").folder
    pages = [f"https://en.wikipedia.org/wiki/{name}\n" for name in _BIRD_PAGES]
    (folder / "seeds.txt").write_text("".join(pages))
    commands = [each.text for each in RUN if each.document == document]
    script = re.sub(r"web([ =])demo", rf"web\g<1>{wikipedia_warc}", "\n".join(commands))
    for there, here in {**_BIRDS, **instead}.items():
        assert there in script
        script = script.replace(there, here)
    _run(folder, script)
    sheet = _check_corpus(folder, budget)
    assert "https://creativecommons.org/licenses/by-sa/3.0/ |" in sheet


def _check_corpus(folder: Path, budget: int) -> str:
    """Look at what a crawl that ended by itself has brought; return its datasheet."""
    with closing(sqlite3.connect(folder / "crawls" / "corpus" / "crawl.db")) as store:
        (reason,) = store.execute("SELECT detail FROM events WHERE kind = 'stop'").fetchone()
        relevant = dict(store.execute("SELECT url, relevance FROM pages WHERE relevance >= 0.5"))
        (fetched,) = store.execute("SELECT count(*) FROM pages").fetchone()
    assert reason in {"recall_reached", "little_expected"}
    assert fetched < budget
    rows = pytest.importorskip("pyarrow.parquet").read_table(folder / "cycling.parquet")
    taken = {row["url"]: row for row in rows.to_pylist()}
    assert taken.keys() <= relevant.keys()
    assert len(taken) > 0.8 * len(relevant) > 10
    assert all(row["text"] and row["chunks"] and row["language"] == "en" for row in taken.values())
    sheet = (folder / "cycling.datasheet.md").read_text()
    assert "By its own estimate the crawl has" in sheet
    assert "The topic in words: " in sheet
    return sheet


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_is_python(document: Path) -> None:
    for kind, _, body in _FENCED.findall(document.read_text(encoding="utf-8")):
        if kind == "python":
            compile(body, document.name, "exec")


def test_no_reason_is_left_over() -> None:
    """What is gone from the documents goes from the list, too."""
    assert {start for start in NOT_RUN if any(c.text.startswith(start) for c in ALL)} == set(
        NOT_RUN
    )
