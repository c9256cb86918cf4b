"""The commands that the documentation prints, and which of them are not run, with the reason.

A command is a line of an indented block, or of one fenced as ``sh``, that begins with one of
`PROGRAMS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = (
    *("focuscrawl", "scrapy", "python", "python3", "pip", "make", "pytest", "sed", "export", "cd"),
    *("mkdir", "scrapyd-deploy", "curl", "podman", "docker", "systemctl", "cp"),
)
_UNDER_WAY = "needs a crawl under way: tests/integration/test_operations.py does it"
_SCRAPYD = "Scrapyd: tests/integration/test_scrapyd.py does it"
#: beginnings of commands that are not run, and why not
NOT_RUN = {
    "make ": "makes environments from a package index, and runs these tests",
    "pip install": "needs a package index",
    "python3 -m venv": "needs a package index; tests/integration/test_scrapyd.py does it",
    "mkdir data": _SCRAPYD,
    "scrapyd-deploy": _SCRAPYD,
    "curl ": _SCRAPYD,
    "podman ": "needs a container engine",
    "export FOCUSCRAWL_TEACHER_KEY": "a key",
    "export FOCUSCRAWL_SEARXNG_URL": "needs a search engine",
    'focuscrawl corpus "road cycling, bicycle racing" --pages 500 --out racing': "needs a search "
    "engine: tests/integration/test_cli_corpus.py has one",
    "focuscrawl topic suggest crawls/cycling --teacher": "needs a model: "
    "tests/integration/test_cli_topic_teacher.py does it",
    "focuscrawl pause": _UNDER_WAY,
    "focuscrawl studio": "serves until Ctrl-C: tests/integration/test_studio.py does it",
    "focuscrawl resume": _UNDER_WAY,
    "focuscrawl extend": _UNDER_WAY,
    "focuscrawl stop": _UNDER_WAY,
    "focuscrawl lab ": "hours on recorded real webs: tests/integration/test_cli_lab.py does it",
    "python -m studies ": "hours on recorded real webs: tests/unit/test_studies*.py do it",
    "python benchmarks/": "minutes to hours: make bench",
    "focuscrawl paths ": "a person's walk: tests/unit/test_paths_forage.py does it",
    "scrapy crawl focused -a critic=models/people": "needs a person's walk",
    "focuscrawl why crawls/cycling https://larder-0": "needs a crawl that was held back there",
    "focuscrawl critic train labels.csv --web crawls/examples": "needs thousands of live pages",
    "scrapy crawl focused -s FOCUSCRAWL_PRIVATE_ADDRESSES": "says only what matters",
}

#: language, name of the file if it is one, and the block
FENCED = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_STARTS = (*(f"{program} " for program in PROGRAMS), "scrapyd-deploy")


class Command(NamedTuple):
    """A line of a document that a reader types."""

    document: Path
    section: str
    text: str

    @property
    def why_not(self) -> str | None:
        """Why it is not run."""
        return next((why for start, why in NOT_RUN.items() if self.text.startswith(start)), None)


def _commands(document: Path) -> Iterator[Command]:
    """Find the commands of a document, in their order."""
    section = "begin"
    for kind, text in _pieces(document.read_text(encoding="utf-8")):
        for line in text.splitlines():
            if not kind and line.startswith("## "):
                section = line[3:]
            command = line if kind == "sh" else line.removeprefix("    ")
            if command.startswith(_STARTS) and kind in ("", "sh") and (kind or command != line):
                yield Command(document, section, command)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a document into (language, fenced block) and ("", what is between)."""
    at = 0
    for block in FENCED.finditer(text):
        yield "", text[at : block.start()]
        yield block[1], block[3]
        at = block.end()
    yield "", text[at:]


ALL = [command for path in DOCUMENTS for command in _commands(path)]
RUN = [command for command in ALL if command.why_not is None]
SECTIONS = list(dict.fromkeys((command.document, command.section) for command in RUN))
