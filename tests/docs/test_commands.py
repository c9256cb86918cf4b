"""Every command of the documentation does what is printed, or is marked with the reason.

The commands of a document are run one after the other in a folder of its own, in which lies what
a reader has by then: crawls, critics, recordings, made once. Files that a document writes
(```` ```python title="mycritic.py" ````) are written before. Budgets are cut, and ``https://example.org``
is a server on loopback. What needs more than a test has is in `printed_commands.NOT_RUN`, and is
checked as far as words go: programs, options, arguments, settings, files.
"""

from __future__ import annotations

import functools
import gzip
import re
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import click
import pytest
from scrapy.settings import Settings

from focuscrawl.cli.main import main
from focuscrawl.crawl_config import ARGUMENTS
from focuscrawl.engine.config_from_settings import read_config
from studies.__main__ import studies

from .printed_commands import ALL, DOCUMENTS, FENCED, NOT_RUN, ROOT, RUN, SECTIONS
from .reader import Reader, type_commands
from .shelf import cyclists, fill_shelf


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with cyclists() as address:
        yield address


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, origin: str) -> Path:
    """A folder with what a reader has from other pages, made once."""
    folder = tmp_path_factory.mktemp("shelf")
    fill_shelf(folder, origin)
    return folder


@pytest.fixture(scope="module")
def readers(
    shelf: Path, origin: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Reader]:
    @functools.cache
    def reader_of(document: Path) -> Reader:
        folder = tmp_path_factory.mktemp("reader") / "folder"
        shutil.copytree(shelf, folder)
        return Reader(document, folder, origin)

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
    document: Path, section: str, readers: Callable[[Path], Reader]
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
        elif program == "python" and words[:2] == ["-m", "studies"]:
            _parse(words[2:], studies)
        elif program == "python":
            assert (ROOT / words[0]).is_file()
        elif program == "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE)


def _parse(words: list[str], group: click.Group = main) -> None:
    """Refuse what the commands would refuse before they begin."""
    command: click.Command = group
    context = click.Context(group)
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
    read_config(settings)


def test_every_page_is_fetched_by_the_browser_that_is_asked_for(
    readers: Callable[[Path], Reader],
) -> None:
    reader = readers(ROOT / "docs" / "how-to" / "documents.md")
    reader.read("Pages that need a browser")
    recordings = [*reader.folder.glob("crawls/good-*/pages.warc.gz")]
    kept = [gzip.decompress(path.read_bytes()) for path in recordings]
    assert max(each.count(b"made by a script") for each in kept) >= 3


def test_the_way_from_words_to_a_corpus_ends_by_itself(
    readers: Callable[[Path], Reader],
) -> None:
    reader = readers(ROOT / "docs" / "tutorials" / "corpus.md")
    reader.read("Corpus")
    _check_corpus(reader.folder, 1000)
    lines = (reader.folder / "cycling" / "crawl" / "crawl.log").read_text()
    assert "Traceback" not in lines


# a real web in place of the synthetic one
_BIRDS = {"road cycling, bicycle, peloton": "birds, ornithology, plumage, breeding season"}
# and a crawl that ends sooner than by the rules that it has
_SOON = {"--pages 1000": "--pages 300 --stop 'next 100 < 0.99'"}
_BIRD_PAGES = ("Freckled_duck", "Palaeeudyptinae", "Phasianidae")


@pytest.mark.webs
@pytest.mark.parametrize(
    ("instead", "budget"),
    [
        pytest.param(_SOON, 300, id="soon"),
        pytest.param({}, 1000, id="as documented", marks=pytest.mark.long),
    ],
)
def test_the_way_from_words_to_a_corpus_is_the_same_on_a_real_web(
    wikipedia_warc: Path, tmp_path: Path, instead: dict[str, str], budget: int
) -> None:
    document = ROOT / "docs" / "tutorials" / "corpus.md"
    folder = Reader(document, tmp_path, "").folder
    pages = [f"https://en.wikipedia.org/wiki/{name}\n" for name in _BIRD_PAGES]
    (folder / "seeds.txt").write_text("".join(pages))
    commands = [each.text for each in RUN if each.document == document]
    script = "\n".join(commands).replace("--web demo", f"--web {wikipedia_warc}")
    for there, here in {**_BIRDS, **instead}.items():
        assert there in script
        script = script.replace(there, here)
    type_commands(folder, script)
    sheet = _check_corpus(folder, budget)
    assert "https://creativecommons.org/licenses/by-sa/3.0/ |" in sheet


def _check_corpus(folder: Path, budget: int) -> str:
    """Look at what a crawl that ended by itself has brought; return its datasheet."""
    with closing(sqlite3.connect(folder / "cycling" / "crawl" / "crawl.db")) as store:
        (reason,) = store.execute("SELECT detail FROM events WHERE kind = 'stop'").fetchone()
        relevant = dict(store.execute("SELECT url, relevance FROM pages WHERE relevance >= 0.5"))
        (fetched,) = store.execute("SELECT count(*) FROM pages").fetchone()
    assert reason in {"recall_reached", "little_expected"}
    assert fetched < budget
    rows = pytest.importorskip("pyarrow.parquet").read_table(folder / "cycling.parquet")
    taken = {row["url"]: row for row in rows.to_pylist()}
    assert taken.keys() <= relevant.keys()
    assert len(taken) > 0.8 * len(relevant) > 10
    assert all(row["text"] and row["language"] == "en" for row in taken.values())
    sheet = (folder / "cycling.parquet.datasheet.md").read_text()
    assert "Estimated recall: " in sheet
    assert "Phrases of the topic: " in sheet
    return sheet


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_is_python(document: Path) -> None:
    for kind, _, body in FENCED.findall(document.read_text(encoding="utf-8")):
        if kind == "python":
            compile(body, document.name, "exec")


def test_no_reason_is_left_over() -> None:
    """What is gone from the documents goes from the list, too."""
    assert {start for start in NOT_RUN if any(c.text.startswith(start) for c in ALL)} == set(
        NOT_RUN
    )
