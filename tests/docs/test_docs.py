"""The documentation says what the program does; `test_commands` runs its commands."""

from __future__ import annotations

import inspect
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from focuscrawl.apprentice.options import GROUPS as FEATURES
from focuscrawl.cli.collect_command import collect
from focuscrawl.cli.main import COMMANDS
from focuscrawl.collection.collection import COLUMNS
from focuscrawl.crawl_config import ARGUMENTS, SETTINGS, update_tables
from focuscrawl.engine import visits
from focuscrawl.store import CrawlStore
from focuscrawl.strategies.base import GROUP, find_strategy

from .printed_commands import DOCUMENTS, FENCED, ROOT

TEXTS = {path: path.read_text("utf-8") for path in (*DOCUMENTS, ROOT / "CHANGELOG.md")}
REFERENCE = ROOT / "docs" / "reference" / "settings.md"
STRATEGIES = ROOT / "docs" / "reference" / "strategies.md"
APPRENTICE = ROOT / "docs" / "explanation" / "apprentice.md"
CODE = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("focuscrawl/**/*.py"))

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def _prose(text: str) -> str:
    return FENCED.sub("", text)


def _anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _links() -> Iterator[tuple[Path, str]]:
    for path, text in TEXTS.items():
        for target in _LINK.findall(_prose(text)):
            if "://" not in target:
                yield path, target


def _named(pattern: str) -> set[str]:
    return {name for text in TEXTS.values() for name in re.findall(pattern, text)}


@pytest.mark.parametrize(
    ("document", "target"),
    [pytest.param(*link, id=f"{link[0].name}:{link[1]}") for link in _links()],
)
def test_relative_links_lead_somewhere(document: Path, target: str) -> None:
    name, _, anchor = target.partition("#")
    path = (document.parent / name).resolve() if name else document
    assert path.exists()
    if anchor:
        assert anchor in _anchors(path.read_text(encoding="utf-8"))


def test_the_readme_leads_to_places_that_are_there() -> None:
    """A name that is nobody's is for addresses that readers put their own in place of."""
    links = _LINK.findall(_prose(TEXTS[ROOT / "README.md"]))
    assert len(links) > 30
    assert [target for target in links if re.search(r"//example\.(org|net|com)", target)] == []


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/tutorials/corpus.md",
        "docs/tutorials/studio.md",
        "docs/get-started.md",
    ],
)
def test_whoever_begins_here_installs_from_a_checkout(name: str) -> None:
    """There is no release yet, so no index knows the name."""
    assert "pip install '." in TEXTS[ROOT / name]
    assert not re.search("pip install '?focuscrawl", TEXTS[ROOT / name])


def test_arguments_are_those_of_the_spider() -> None:
    named = _named(r"-a ([a-z_]+)=")
    assert named <= set(ARGUMENTS)
    table = re.findall(r"^\| `(\w+)` \|", TEXTS[REFERENCE].split("| `-a` |")[1], re.MULTILINE)
    assert table[: len(ARGUMENTS)] == list(ARGUMENTS)


def test_the_tables_of_settings_are_made_from_the_code() -> None:
    again = "python -m focuscrawl.crawl_config docs/reference/settings.md"
    assert update_tables(TEXTS[REFERENCE]) == TEXTS[REFERENCE], f"not as {again} writes them"


def test_settings_are_those_of_the_code() -> None:
    pattern = r"FOCUSCRAWL_[A-Z_]+"
    # variables of the environment; the last one says where the tests look for recorded webs
    variables = {"FOCUSCRAWL_CACHE", "FOCUSCRAWL_TEACHER_KEY", "FOCUSCRAWL_WEBS"}
    variables |= {"FOCUSCRAWL_SEARXNG_URL", "FOCUSCRAWL_SEARXNG_KEY"}
    known = {*SETTINGS, *variables}
    of_arguments = {setting for setting, name in SETTINGS.items() if name in ARGUMENTS}
    assert set(re.findall(pattern, CODE)) <= known
    assert _named(pattern) <= known
    assert known - of_arguments <= set(re.findall(pattern, TEXTS[REFERENCE]))


def test_statistics_are_those_of_the_code() -> None:
    pattern = r"[\"`](focuscrawl/\w+)[\"`]"
    assert set(re.findall(pattern, TEXTS[REFERENCE])) == set(re.findall(pattern, CODE))


def test_meta_keys_are_those_of_the_code() -> None:
    assert set(re.findall(r"`(focuscrawl_\w+)`", TEXTS[REFERENCE])) == {
        visits.REFETCH,
        visits.COOKIES,
        visits.COOKIES_SENT,
        visits.FOLLOWED,
        visits.NOINDEX,
        visits.UNANSWERED,
        visits.OWN_REQUEST,
        visits.ROBOTS,
        visits.URL_ID,
        visits.VISIT,
    }


def test_commands_are_those_of_the_program() -> None:
    named = _named(r"(?:^|`|    )focuscrawl ([a-z]+)")
    assert named == set(COMMANDS)


def test_all_that_can_be_told_to_collect_is_told() -> None:
    text = TEXTS[ROOT / "docs" / "how-to" / "export.md"]
    options = {each for parameter in collect.params for each in parameter.opts if each[0] == "-"}
    assert {each for each in options if f"{each} " not in text and f"{each}`" not in text} == set()
    columns = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    assert [name for names in columns for name in re.findall(r"`(\w+)`", names)] == [*COLUMNS]


def test_strategies_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|.*\|([^|]*)\|$", TEXTS[STRATEGIES], re.MULTILINE)
    own = {each.name for each in entry_points(group=GROUP) if each.value.startswith("focuscrawl.")}
    assert {name for name, _ in rows} == own
    for name, options in rows:
        if name not in ("apprentice", "oracle"):
            assert set(re.findall(r"`(\w+)`", options)) == _options(name)


def test_options_of_the_apprentice_are_those_of_the_program() -> None:
    section = TEXTS[APPRENTICE].partition("## Options")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == _options("apprentice")
    groups = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", TEXTS[APPRENTICE], re.MULTILINE)
    named = {name for names in groups for name in re.findall(r"`(\w+)`", names)}
    assert named - _options("apprentice") == set(FEATURES)


def _options(strategy: str) -> set[str]:
    return {*[*inspect.signature(find_strategy(strategy)).parameters][1:]}


def test_views_have_the_columns_documented(tmp_path: Path) -> None:
    path = tmp_path / "crawl.db"
    CrawlStore.create(path, {}).close()
    store = sqlite3.connect(path)
    for name in ("pages", "links", "frontier", "revisits", "models", "events"):
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({name})")]
        section = re.split(
            rf"^The (?:view|table) `{name}` ", TEXTS[REFERENCE], flags=re.MULTILINE
        )[1]
        table = section.split("|---|---|\n")[1].split("\n\n")[0]
        assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == columns, name
    store.close()


def test_tests_that_the_docs_name_are_there() -> None:
    named = {
        each for text in TEXTS.values() for each in re.findall(r"(test_\w+\.py)::(test_\w+)", text)
    }
    there = {
        (path.name, test)
        for path in (ROOT / "tests").rglob("test_*.py")
        for test in re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))
    }
    assert len(named) > 100
    assert named - there == set()


LONG = "x" * 100
GOOD_PAGE = f"""# Crawl a topic
A crawl stops when its budget is spent. Ctrl-C stops it, and the same command resumes it. Relevance
is R(u) in formulas, what `is told` is code, and *Take home* is what the studio shows.

## Links
- [a link that no line can hold](https://example.org/{LONG})

    focuscrawl crawl -a web=demo -a topic={LONG}

| row of a table | {LONG} |
|---|---|
"""


def _check_prose(page: Path, text: str) -> tuple[int, str]:
    page.write_text(text, encoding="utf-8")
    command = [sys.executable, str(ROOT / ".ci" / "prose.py"), str(page)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    return run.returncode, run.stdout.replace(str(page), "page.md")


def test_the_prose_check_finds_each_kind_of_fault(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert _check_prose(page, GOOD_PAGE) == (0, "")
    faults = {
        f"A line {LONG}": "line of 107 characters, 100 at most",
        "It is\n" + "one word\n" * 20: "sentence of 42 words, 40 at most",
        "| pages that are left\n| taken home |": "“taken home”, better: export",
        "Its\nbest pages are taken\nhome, Whoever reads it.": "“taken home”, better: export",
        "Pages with R > 0.5.": "“R”, better: relevance",
        "### Export.": "heading that ends in punctuation",
        "#### Export": "heading of level 4 after level 2",
    }
    for fault, problem in faults.items():
        code, found = _check_prose(page, f"{GOOD_PAGE}\n{fault}\n")
        assert code == 1
        assert f": {problem}\n" in found, fault
        assert all(int(line.split(":")[1]) > GOOD_PAGE.count("\n") for line in found.splitlines())
    assert found == "page.md:13: heading of level 4 after level 2\n"
