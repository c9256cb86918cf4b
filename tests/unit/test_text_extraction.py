"""The main text of pages, what they say of themselves, and where both are kept."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import psutil
import pytest

from focuscrawl.errors import UserError, WorkerError
from focuscrawl.text import EXTRACTORS, ExtractorPool, PageText, extract_text
from focuscrawl.text.extraction import LONGEST_TEXT, VISIBLE, RawPage
from focuscrawl.text.text_store import FILE, TextStore

pytest.importorskip("trafilatura")
pytest.importorskip("resiliparse")

STORY = "The old bridge over the river was built of stone, and carried carts for a long time."
PAGE = f"""<html lang=de><head><title>Bridges</title>
<meta name=description content="On bridges."><meta name=author content="Ada Miller">
<meta property="article:published_time" content="2020-03-04T05:06:07Z">
<link rel=canonical href="https://a.example/bridges">
<script type="application/ld+json">{{"@graph": [{{"@type": ["Article"]}}]}}</script></head>
<body><nav><a href=/>Home</a> <a href=/all>All</a></nav><article><h1>Bridges</h1>
{f"<p>{STORY}</p>" * 5}<ul><li>A <b>list</b> of things</li></ul></article>
<footer><a rel=license href="https://creativecommons.org/licenses/by/4.0/">CC BY</a></footer>
</body></html>""".encode()


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_text_and_what_the_page_says_of_itself(extractor: str) -> None:
    found = extract_text(PAGE, "https://a.example/b", extractor=extractor)
    assert STORY in found.text
    assert STORY in found.markdown
    assert "Home" not in found.text
    assert extractor != EXTRACTORS[0] or "# Bridges" in found.markdown
    assert "# Bridges" not in found.text
    assert found.extractor == extractor
    says = (found.title, found.description, found.author, found.date, found.language, found.kind)
    day = date(2020, 3, 4)
    assert says == ("Bridges", "On bridges.", "Ada Miller", day, "en", "Article")
    assert 0.9 < found.confidence <= 1
    assert found.canonical == "https://a.example/bridges"
    assert found.license == "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.parametrize("extractor", EXTRACTORS)
@pytest.mark.parametrize(
    ("sentences", "language"),
    [
        (
            "自行车是一种由人力驱动的交通工具，通常有两个轮子。越来越多的城市修建了自行车专用道。",
            "zh",
        ),
        (
            "自転車は人間の力で動く乗り物です。ふつうは二つの車輪があり、ペダルをこいで進みます。",
            "ja",
        ),
        ("การปั่นจักรยานเป็นกิจกรรมที่ดีต่อสุขภาพและช่วยลดมลพิษในเมืองใหญ่ของประเทศไทย", "th"),
    ],
)
def test_an_article_without_spaces_is_main_text(
    sentences: str, language: str, extractor: str
) -> None:
    menu = "".join(f"<li><a href=/{n}>菜单 {n}</a>" for n in range(30))
    article = "".join(f"<p>{sentences}{n}</p>" for n in range(8))
    page = f"<html><title>T</title><body><nav><ul>{menu}</ul></nav><article>{article}</article>"
    found = extract_text(
        page.encode(), "https://a.example/", encoding="utf-8", extractor=extractor
    )
    assert found.extractor == extractor
    assert sentences in found.text
    assert "菜单" not in found.text
    assert found.language == language


def test_xml_lang_declares_the_language() -> None:
    assert extract_text(b"<html xml:lang=de-AT><p>Jazz", "https://a.example/").language == "de"
    both = b"<html lang=fr xml:lang=de><p>Jazz"
    assert extract_text(both, "https://a.example/").language == "fr"


def test_a_page_without_main_text_gives_what_is_visible() -> None:
    words = " ".join(f"<a href=/{n}>word{n}</a>" for n in range(30))
    page = f"<body><nav>{words}</nav>".encode()
    found = extract_text(page, "https://a.example/", extractor="resiliparse")
    assert "word29" in found.text
    assert found.extractor == VISIBLE
    assert extract_text(b"", "https://a.example/").text == ""


def test_texts_are_extracted_apart_also_of_50_mb() -> None:
    long = b"<p>" + b"some words of a very long page. " * 1_600_000
    pages = [RawPage("https://a.example/", body, None) for body in (PAGE, long, PAGE)]
    with ExtractorPool() as extractor:
        first, cut, last = extractor.extract(pages)
    assert first == last == extract_text(PAGE, "https://a.example/")
    assert cut is not None
    assert len(cut.text) == pytest.approx(LONGEST_TEXT, abs=40)


def test_a_page_that_takes_too_long_has_no_text_and_the_next_one_has() -> None:
    long = b"<p>Some words of it are here in a row.</p>" * 20_000
    pages = [RawPage("https://a.example/", body, None) for body in (PAGE, long, PAGE)]
    with ExtractorPool(longest=0.3) as extractor:
        first, ended, last = extractor.extract(pages)
    assert ended is None
    assert first == last == extract_text(PAGE, "https://a.example/")


def test_a_page_that_takes_too_much_memory_has_no_text_and_the_next_one_has() -> None:
    page = RawPage("https://a.example/", PAGE, None)
    large = RawPage("https://a.example/", PAGE + bytes(60 << 20), None)
    with ExtractorPool() as extractor:
        assert extractor.extract_page(page) is not None
        enough = process_of_it().memory_info().vms + (32 << 20)
        assert extractor.extract_page(large) is not None
    with ExtractorPool(memory=enough) as extractor:
        assert extractor.extract_page(large) is None
        assert extractor.extract_page(page) is not None
        process = process_of_it()
        many_elements = page._replace(body=b"<p>a" * 500_000)
        assert extractor.extract_page(many_elements) is None
        assert extractor.extract_page(page) is not None
        assert process_of_it() == process  # it has freed the memory


def test_a_process_that_somebody_ends_is_replaced() -> None:
    page = RawPage("https://a.example/", PAGE, None)
    with ExtractorPool() as extractor:
        text = extractor.extract_page(page)
        before = process_of_it()
        before.kill()
        before.wait()
        assert extractor.extract_page(page) == text
        assert process_of_it() != before


def test_what_is_under_way_is_given_up_at_the_end() -> None:
    endless = RawPage("https://a.example/", b"<b>word " * 500_000, None)
    with ThreadPoolExecutor(2) as threads, ExtractorPool(longest=600.0) as extractor:
        assert extractor.extract_page(RawPage("https://a.example/", PAGE, None)) is not None
        at_it, next_one = (threads.submit(extractor.extract_page, endless) for _ in range(2))
        extractor.close()
        assert at_it.result() is None
        assert next_one.result() is None
    assert not processes()


def test_a_process_that_cannot_start_is_an_error_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = RawPage("https://a.example/", PAGE, None)
    (tmp_path / "justext.py").write_text("raise ImportError('lxml is elsewhere')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with ExtractorPool(processes=2) as extractor:
        with pytest.raises(WorkerError, match="cannot start: ImportError: lxml is elsewhere"):
            list(extractor.extract([page] * 3))
        (tmp_path / "justext.py").unlink()
        assert extractor.extract_page(page) == extract_text(PAGE, "https://a.example/")


def test_what_a_library_lacks_only_when_a_page_comes_is_no_fault_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pypdf").mkdir()
    (tmp_path / "pypdf" / "__init__.py").write_text("import a_missing_part\n")
    monkeypatch.syspath_prepend(tmp_path)
    page = RawPage("https://a.example/", b"%PDF-1.7", None, pdf=True)
    with (
        ExtractorPool() as extractor,
        pytest.raises(WorkerError, match="No module named 'a_missing_part'"),
    ):
        extractor.extract_page(page)


def process_of_it() -> psutil.Process:
    (process,) = processes()
    return process


def processes() -> list[psutil.Process]:
    of_us = psutil.Process().children()
    return [each for each in of_us if "focuscrawl.text.extraction" in " ".join(each.cmdline())]


def test_a_text_is_kept_once(tmp_path: Path) -> None:
    text = extract_text(PAGE, "https://a.example/")
    with TextStore(tmp_path) as store:
        for body in (b"1", b"2"):
            store.put(body, "trafilatura", text)
        store.put(b"3", "trafilatura", None)
    with TextStore(tmp_path) as store:
        assert store.get(b"2", "trafilatura") == text
        assert store.get(b"3", "trafilatura") is None
        with pytest.raises(KeyError):
            store.get(b"1", "resiliparse")
    database = sqlite3.connect(tmp_path / FILE)
    assert database.execute("SELECT count(*) FROM text").fetchone() == (1,)
    database.execute("UPDATE text SET content = x'00'")
    database.commit()
    database.close()
    with TextStore(tmp_path) as store, pytest.raises(UserError, match="damaged"):
        store.get(b"2", "trafilatura")


_FULL = """
import pathlib, resource, sys
from focuscrawl.errors import UserError
from focuscrawl.text import extract_text
from focuscrawl.text.text_store import TextStore

folder, size = pathlib.Path(sys.argv[1]), int(sys.argv[2])
text = extract_text(b"<p>" + b"Words of a page. " * 50, "https://a.example/")
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
try:
    with TextStore(folder) as store:
        for number in range(1000):
            store.put(b"%d" % number, "trafilatura", text)
except UserError as error:
    print(error)
"""


@pytest.mark.parametrize("size", [1, 50_000])
def test_where_nothing_more_can_be_written_nobody_is_told_to_remove_texts(
    size: int, tmp_path: Path
) -> None:
    """At once, and after some texts."""
    done = subprocess.run(
        [sys.executable, "-c", _FULL, tmp_path, str(size)],
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stdout.splitlines()
    assert "check the free disk space" in line
    assert "remove" not in line


def test_what_is_no_store_of_texts_is_to_be_removed(tmp_path: Path) -> None:
    for content in (b"no database at all" * 100, b""):
        (tmp_path / FILE).write_bytes(content)
        if not content:
            database = sqlite3.connect(tmp_path / FILE)
            database.execute("CREATE TABLE page (other TEXT)")
            database.close()
        with (
            pytest.raises(UserError, match="texts are extracted again"),
            TextStore(tmp_path) as s,
        ):
            s.get(b"1", "trafilatura")


def test_two_can_keep_texts_at_the_same_time(tmp_path: Path) -> None:
    text = extract_text(PAGE, "https://a.example/")
    with TextStore(tmp_path) as of_the_crawl, TextStore(tmp_path) as of_a_collection:
        for number in range(10):
            of_the_crawl.put(b"%d" % number, "trafilatura", text)
            of_a_collection.put(b"%d" % number, "resiliparse", text)
        assert of_the_crawl.get(b"9", "resiliparse") == text
        assert of_a_collection.get(b"9", "trafilatura") == text


def test_a_link_in_place_of_the_store_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError):
        TextStore(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


BEFORE, AFTER = "The club meets in the old town hall. " * 5, "It rides for two hours a week. " * 5


def table_in_page(table: str) -> PageText:
    """Return the text of an article with a table between two paragraphs."""
    page = f"<body><article><p>{BEFORE}</p>{table}<p>{AFTER}</p></article>"
    return extract_text(page.encode(), "http://a.example/")


def lines_of_table(found: PageText) -> list[str]:
    text = found.text
    return text[text.index(BEFORE.strip()) + len(BEFORE) : text.index(AFTER.strip()) - 1].split(
        "\n"
    )


DATA = {
    "heading": (
        "<table><tr><th>Rider<th>Time<tr><td>Anna<td>3:05<tr><td>Ben<td>3:17</table>",
        ["Rider\tTime", "Anna\t3:05", "Ben\t3:17"],
    ),
    "groups": (
        "<table><caption>Results</caption><thead><tr><td>A<td>B</thead>"
        "<tbody><tr><td>1<td>2</tbody><tfoot><tr><td>3<td>4</tfoot></table>",
        ["Results", "A\tB", "1\t2", "3\t4"],
    ),
    "no heading": (
        "<table><tr><td>Anna<td>3:05<tr><td>Ben<td>3:17</table>",
        ["Anna\t3:05", "Ben\t3:17"],
    ),
    "empty cells": ("<table><tr><th>A<th><th>C<tr><td><td>v<td></table>", ["A\t\tC", "\tv"]),
    "bar": (r"<table><tr><th>Run<th>Use<tr><td>a|b<td>c\|d</table>", ["Run\tUse", "a|b\tc\\|d"]),
    "only a bar": ("<table><tr><th>|<th>||<tr><td>x<td>|y|</table>", ["|\t||", "x\t|y|"]),
    "markup": (
        "<table><tr><th>A<th>B<tr><td><p>one</p><td><b>two</b><br>three</table>",
        ["A\tB", "one\ttwo three"],
    ),
    "blocks below a heading": (
        "<table><tr><th>A<th>B<tr><td><p>one</p><p>two</p><td>three</table>",
        ["A\tB", "one two\tthree"],
    ),
}


@pytest.mark.parametrize(("table", "lines"), DATA.values(), ids=DATA)
def test_a_table_of_data_is_a_line_of_cells_for_each_row(table: str, lines: list[str]) -> None:
    found = table_in_page(table)
    assert lines_of_table(found) == lines
    assert "|" in found.markdown


ROWS = "<tr><td>One<td>Two<tr><td>Three<td>Four"
LAYOUT = {
    "blocks": "<table><tr><td><p>One</p><p>Two</p><td><p>Three</p><tr><td><td>Four</table>",
    "nested": "<table><tr><td>One<table><tr><td>Two<tr><td>Three</table><td><tr><td>Four</table>",
    "role": f"<table role=Presentation>{ROWS}</table>",
    "one row": "<table><tr><td>One<td>Two<td>Three<td>Four</table>",
    "one column": "<table><tbody><tr><td>One<tr><td>Two<tr><td>Three<tr><td>Four</table>",
    "list": "<table><tr><td>One<td><ul><li>Two<li>Three</ul><tr><td>Four<td></table>",
}


@pytest.mark.parametrize("table", LAYOUT.values(), ids=LAYOUT)
def test_a_table_for_layout_is_a_paragraph_for_each_block(table: str) -> None:
    found = table_in_page(table)
    lines = [line.removeprefix("- ") for line in lines_of_table(found)]
    assert lines == ["One", "Two", "Three", "Four"]
    assert "|" not in found.text + found.markdown


def test_a_page_in_a_table_is_read_like_any_page() -> None:
    long = "A long paragraph about the race and its riders. " * 12
    page = f"<table><tr><td><a href=/>Home</a><td>{long}<br><br>{long.upper()}</table>"
    found = extract_text(page.encode(), "http://a.example/")
    assert "|" not in found.text + found.markdown
    assert found.text.count("riders.") == 12


def test_a_table_of_data_in_a_table_for_layout() -> None:
    inner = DATA["heading"][0]
    found = table_in_page(f"<table><tr><td><p>One</p>{inner}<td>Two<tr><td>Three<td></table>")
    assert lines_of_table(found) == ["One", *DATA["heading"][1], "Two", "Three"]


def test_bars_that_a_page_has_itself_stay() -> None:
    found = table_in_page("<pre>a | b\n|---|---|\n| x | y |</pre>")
    assert "a | b\n|---|---|\n| x | y |" in found.text


def test_many_nested_tables() -> None:
    page = "<table><tr><td>" * 200 + BEFORE + "</table>" * 200 + "<table><tr><td>x</table>" * 5_000
    assert "old town hall" in extract_text(page.encode(), "http://a.example/").text
