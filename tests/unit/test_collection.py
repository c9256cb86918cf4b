"""What is taken home of pages, as files that others load."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import sqlite3
from collections import Counter
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from focuscrawl.collection.collection import (
    COLUMNS,
    Collection,
    ExportedPage,
    ExportOptions,
    _exported_page,
    collect,
    split_into_chunks,
    to_row,
)
from focuscrawl.collection.export_files import (
    arrow_schema,
    check_not_empty,
    check_output,
    write_collection,
    write_edges,
)
from focuscrawl.collection.origin import (
    FILE,
    CriticQuality,
    Origin,
    get_critic_quality,
    read_robots_signals,
)
from focuscrawl.completeness.recall_estimate import RecallEstimate
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import escape_csv_cell
from focuscrawl.store import CrawlStore
from focuscrawl.text.extraction import PageText
from focuscrawl.text.text_store import TextStore
from focuscrawl.webs.web_protocol import Answer

FETCHED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
TITLE = "=HYPERLINK(1)/../../x\n---\nurl: y"
TEXT = "One sentence of a page. And another one, \ud800 of the same page."


def collection(number: int = 1) -> Collection:
    text = PageText(
        TEXT, TEXT, TITLE, "", "|a|", date(2020, 1, 2), "en", 0.9, "", "", "", "trafilatura"
    )
    pages = [
        ExportedPage(n, f"http://a.example/{n}", FETCHED, 0.9, "/A", TITLE, text, "00")
        for n in range(number)
    ]
    return Collection(
        {"topic": "/A|`#"}, ExportOptions(), pages, Counter({"<why>": 2}), number + 2
    )


@pytest.mark.parametrize("number", [0, 1])
def test_a_collection_loads_in_one_line_with_types_that_do_not_depend_on_it(
    tmp_path: Path, number: int
) -> None:
    pandas, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    out = tmp_path / "c.parquet"
    write_collection(collection(number), out, chunk=30)
    frame = pandas.read_parquet(out)
    assert [*frame.columns] == [*COLUMNS]
    assert str(frame.fetched_at.dtype) == "datetime64[us, UTC]"
    found = duckdb.sql(f"SELECT fetched_at, relevance, date, chunks FROM '{out}'")
    assert [*map(str, found.types)] == [
        "TIMESTAMP WITH TIME ZONE",
        "DOUBLE",
        "DATE",
        'STRUCT("start" BIGINT, "end" BIGINT)[]',
    ]
    assert len(frame) == number
    for row in frame.itertuples():
        parts = [row.text[each["start"] : each["end"]] for each in row.chunks]
        assert len(parts) > 1
        assert all(0 < len(part) <= 30 for part in parts)
        assert "".join("".join(parts).split()) == "".join(row.text.split())


def test_a_collection_without_pages_is_refused_with_what_became_of_them() -> None:
    check_not_empty(collection())
    with pytest.raises(UserError, match=r"all of 2 pages with relevance ≥ 0\.5 were skipped \(2"):
        check_not_empty(collection(0))
    nothing = Collection({}, ExportOptions(), [], Counter(), 0)
    with pytest.raises(UserError, match=r"no page of the crawl has relevance ≥ 0\.5; lower --min"):
        check_not_empty(nothing)


# what a terminal obeys: escape sequences, in one byte, too; and what it does at once
OBEYED = "\0\x07\b\x0b\x1b]0;x\x07\x7f\x9b31m"


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ""])
def test_nothing_that_a_terminal_obeys_is_written(tmp_path: Path, ending: str) -> None:
    found = collection()
    (page,) = found.pages
    text = f"a{OBEYED}\tb\r\nc\r{TEXT}"
    page.content = dataclasses.replace(
        page.content, text=text, markdown=text, author=text, license=OBEYED
    )
    page.title, page.topic, page.duplicates = text, OBEYED, [f"http://a.example/{OBEYED}"]
    out = tmp_path / f"c{ending}"
    write_collection(found, out)
    if ending == ".parquet":
        rows = pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist()
        written = json.dumps(rows, default=str, ensure_ascii=False)
        assert "\\u00" not in written
    else:
        files = [out] if ending else [*out.iterdir()]
        written = "".join(path.read_text() for path in files if path.name != "datasheet.md")
    assert not set(written) & (set(map(chr, (*range(32), *range(127, 160)))) - {"\n", "\t"})
    assert re.search(r"a +\]0;x +31m(\t|\\t)b(\n|\\n)c", written)


def test_a_collection_loads_with_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    write_collection(collection(), tmp_path / "c.parquet")
    cache = str(tmp_path / "cache")
    found = datasets.Dataset.from_parquet(str(tmp_path / "c.parquet"), cache_dir=cache)
    assert found.features.arrow_schema.names == arrow_schema().names
    assert found[0]["fetched_at"] == FETCHED


def test_hostile_names_are_text_in_every_file(tmp_path: Path) -> None:
    for name in ("c.csv", "c.jsonl", "pages"):
        write_collection(collection(), tmp_path / name)
    assert "'=HYPERLINK" in (tmp_path / "c.csv").read_text()
    row = json.loads((tmp_path / "c.jsonl").read_text())
    assert row["title"] == TITLE
    assert row["fetched_at"] == FETCHED.isoformat()
    names = {path.name for path in (tmp_path / "pages").iterdir()}
    assert names == {"000001-hyperlink-1-x-url-y.md", "datasheet.md"}
    front = (tmp_path / "pages" / "000001-hyperlink-1-x-url-y.md").read_text().split("---\n")[1]
    assert front.count("\nurl: ") + front.startswith("url: ") == 1
    sheet = (tmp_path / "c.jsonl.datasheet.md").read_text()
    assert r"\<why\>" in sheet
    assert r"/A\|\`\#" in sheet


def test_hostile_names_are_names_in_graphs(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    hostile = 'http://a.example/"/><node id="x"/>&lol;<![CDATA[\x00\x1b\ud800\ufffe'
    found = collection(2)
    found.pages[1].url = hostile
    store = CrawlStore.create(tmp_path / "crawl.db", {})
    try:
        write_edges(store, found, tmp_path, "c")
    finally:
        store.close()
    graph = ET.parse(tmp_path / "c.links.graphml").getroot()[-1]
    first, second = (node.get("id") or "" for node in graph)
    assert first == found.pages[0].url
    assert second.startswith('http://a.example/"/><node id="x"/>&lol;<![CDATA[')
    assert parquet.read_table(tmp_path / "c.links.parquet").num_rows == 0


SCRIPTS = [
    "東京は日本の首都です。人口は約千四百万人で、世界でも大きな都市の一つです。" * 3,
    "Café na\u0308ive Zoe\u0308. " * 9,  # letters, and the marks on them
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea family. " * 9,
    "One line.\r\nAnother line.\r\n\r\nA paragraph. \r\n" * 4,
    "لغة عربية من اليمين. " * 9,
    "no-place-to-cut" * 9,
]


@pytest.mark.parametrize("text", SCRIPTS)
@pytest.mark.parametrize("most", [1, 7, 30])
def test_chunks_are_the_characters_that_their_offsets_say(text: str, most: int) -> None:
    splitter = pytest.importorskip("semantic_text_splitter").TextSplitter(most)
    chunks = split_into_chunks(text, most)
    assert [text[start:end] for start, end in chunks] == splitter.chunks(text)
    assert all(0 < end - start <= most for start, end in chunks)
    ends = [0, *(end for _, end in chunks)]
    starts = [*(start for start, _ in chunks), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    assert "".join(between).strip() == ""  # nothing is left out, nothing overlaps


def test_what_pages_ask_of_robots_is_told_wherever_they_say_it() -> None:
    headers = [
        ("Content-Type", "text/html"),
        ("X-Robots-Tag", "NoIndex; googlebot: nofollow, noai"),
        ("X-Robots-Tag", "unavailable_after: Wed, 03 Dec 2036 15:00:00 GMT"),
        ("TDM-Reservation", "1"),
    ]
    body = (
        b"<!-- <meta name=robots content=noarchive> --><meta name=Robots content='noai, noindex'>"
        b"<meta name=tdm-policy content='https://a.example/p\n\x1b[2J'><meta name=robots><meta>"
    )
    assert read_robots_signals(Answer("http://a.example/", 200, headers, body)) == [
        *("noindex", "googlebot: nofollow", "googlebot: noai"),
        *("unavailable_after: wed, 03 dec 2036 15:00:00 gmt", "tdm-reservation=1", "noai"),
        "tdm-policy=https://a.example/p [2J",
    ]
    assert read_robots_signals(Answer("http://a.example/", 200, [], b"")) == []
    many = b"<meta name=robots content='%s'>" % b",".join(b"%d" % n for n in range(9_000))
    assert len(read_robots_signals(Answer("http://a.example/", 200, [], many))) == 20


LIST = (
    'Results of the race;=first\n- "Anna", +3\n-\tBen; @home\n= all\n+1;-2\tof the team. The end.'
)


@pytest.mark.parametrize("ahead", ["", "=1+1 ", "- ", "\uff1d", "; =", "@"])
def test_offsets_and_hash_fit_the_text_of_a_csv_file(tmp_path: Path, ahead: str) -> None:
    pytest.importorskip("semantic_text_splitter")
    found = collection()
    (page,) = found.pages
    text = ahead + LIST
    page.content = dataclasses.replace(page.content, text=text, markdown=text, author=text)
    page.hash = sha256(text.encode()).hexdigest()
    out = tmp_path / "c.csv"
    write_collection(found, out, chunk=30)
    assert all(line.startswith('"') for line in out.read_text().splitlines()[:2])
    (row,) = csv.DictReader(io.StringIO(out.read_text(), newline=""))
    for name in ("text", "markdown"):
        assert row[name] == ("'" if ahead else "") + text
    assert row["author"] == escape_csv_cell(text)
    given = row["text"].removeprefix("'")
    assert sha256(given.encode()).hexdigest() == row["hash"]
    parts = [given[slice(*map(int, each.split("-")))] for each in row["chunks"].split()]
    assert len(parts) > 2
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert "apostrophe" in (tmp_path / "c.csv.datasheet.md").read_text()


def test_the_hash_is_of_the_text_as_written(tmp_path: Path) -> None:
    page = {"seq": 1, "url": "u", "fetched_at": "2024-05-06", "relevance": 1.0}
    text = dataclasses.replace(collection().pages[0].content, text=f"a{OBEYED}\ud800\r\nb")
    found = _exported_page({**page, "topic": "", "title": ""}, text)  # type: ignore[arg-type]
    row = to_row(found)
    assert row["hash"] == sha256(row["text"].encode()).hexdigest()


def test_what_is_not_known_of_pages_is_not_made_up(tmp_path: Path) -> None:
    found = collection(2)
    found.pages[0].robots = None
    found.identity |= {"web": "live", "web_name": "the live Web"}
    write_collection(found, tmp_path / "c.csv")
    sheet = (tmp_path / "c.csv.datasheet.md").read_text()
    assert "| unknown, response not recorded | 1 |\n" in sheet
    assert "Crawled on the live Web with" in sheet
    assert "the pages themselves are older" not in sheet
    assert "The column `duplicates` lists 0 URLs" in sheet
    rows = csv.DictReader((tmp_path / "c.csv").read_text().splitlines())
    assert [row["robots"] for row in rows] == ["unknown", ""]
    write_collection(collection(), tmp_path / "pages")  # whose files name no others
    assert "The column `duplicates`" not in (tmp_path / "pages" / "datasheet.md").read_text()
    with pytest.raises(UserError, match="no page of the export has a recorded response"):
        write_collection(found, tmp_path / "c.warc.gz")
    assert not list(tmp_path.glob("*c.warc.gz*"))


def test_the_datasheet_counts_the_target_pages_in_the_export(tmp_path: Path) -> None:
    found = collection(20)
    found.pages[0].duplicates = ["https://a.example/mirror"]
    targets = [f"https://a.example/{n}" for n in range(20)]  # recorded with http
    found.origin = Origin(targets=(*targets, "http://a.example/mirror", "http://a.example/no"))
    write_collection(found, tmp_path / "c.csv")
    sheet = (tmp_path / "c.csv.datasheet.md").read_text()
    assert "21 of 22 target pages found; recall at least 80 % with 95 % confidence" in sheet


def test_the_datasheet_names_a_host_of_most_pages(tmp_path: Path) -> None:
    found = collection(20)
    found.pages[:3] = [
        dataclasses.replace(page, url=f"http://b{page.seq}.example/") for page in found.pages[:3]
    ]
    write_collection(found, tmp_path / "c.csv")
    sheet = (tmp_path / "c.csv.datasheet.md").read_text()
    assert "- 17 of 20 pages are on the host a.example, so the texts may represent" in sheet
    found.pages[3] = dataclasses.replace(found.pages[3], url="http://b.example/")
    assert found.host_warning() is None


def test_the_datasheet_says_where_it_comes_from_and_what_every_column_is(tmp_path: Path) -> None:
    found = collection()
    found.pages[0].robots, found.pages[0].verdict = ["noindex", "<b>"], "good"
    found.origin = Origin(
        start_arguments=("topic=/A, `x`",),
        seeds=(("http://a.example/|", 0.5), ("http://b.example/", None)),
        stopped="the frontier is empty",
        fetched=9,
        outcomes={"page": 6, "HTTP 404": 3},
        forbidden=2,
        verdicts={"http://a.example/0": "good", "http://a.example/7": "bad"},
        completeness=RecallEstimate(9, 3, 5, 1.0, 0.5, 0.3, 100, 0.1),
    )
    write_collection(found, tmp_path / "c.parquet", command="focuscrawl collect a --out `b`")
    sheet = (tmp_path / "c.parquet.datasheet.md").read_text()
    said = [
        *("| noindex | 1 |", r"| \<b\> | 1 |", r"topic=/A, \`x\`", r"0.50 http://a.example/\|"),
        *("- http://b.example/", "the frontier is empty", "HTTP 404 | 3 |"),
        *(r"\<why\> | 2 |", "differ; 2 URLs", "recall: 0.67 (90 %"),
        "judged 2 pages of the crawl: 1 good, 1 not good. Judged pages in the export: 1 good, 0",
        *("`focuscrawl collect a --out b`", "not measured: no result is available"),
    ]
    assert [each for each in said if each not in sheet] == []
    # the numbers of exported and of skipped pages add up to that of fetches
    skipped = sheet.partition("Of 9 fetches, the export contains 1 page.")[2].partition("##")[0]
    assert sum(map(int, re.findall(r"\| (\d+) \|", skipped))) == 8
    assert all(f"| `{name}` | {meaning} |" in sheet for name, (_, meaning) in COLUMNS.items())


@pytest.mark.parametrize("count", ["Infinity", "-1e999", "NaN", "[]"])
def test_a_card_with_a_count_that_is_none_is_no_card(tmp_path: Path, count: str) -> None:
    (tmp_path / FILE).write_text(f'{{"critic": "aa", "on": {count}}}')
    card = get_critic_quality({"critic": "aa", "critic_name": "os:abort"}, tmp_path, [])
    assert card.why_not == "the critic is a Python callable"


def test_what_was_measured_of_a_critic_is_read_again_if_it_is_of_that_critic(
    tmp_path: Path,
) -> None:
    shares = {"precision": [0.9, 0.8, 1.0], "recall": None, "phrases": ["a b"], "why_not": ""}
    kept = {"critic": "aa", "on": 3, "off": 4, "others": 5, "called": 1, **shares}
    (tmp_path / FILE).write_text(json.dumps(kept))
    card = get_critic_quality({"critic": "aa", "critic_name": "os:abort"}, tmp_path, [])
    assert card == CriticQuality(3, 4, (0.9, 0.8, 1.0), None, 5, 1, ("a b",))
    for wrong in ("{", "[]", json.dumps({**kept, "recall": ["x"]}), json.dumps(kept)):
        (tmp_path / FILE).write_text(wrong)
        named = {"critic": "bb", "critic_name": "os:abort"}  # is not run
        assert get_critic_quality(named, tmp_path, []).why_not == "the critic is a Python callable"
    nowhere = {"critic": "bb", "critic_name": "models/none-of-this-name"}
    assert "models/none-of-this-name" in get_critic_quality(nowhere, tmp_path, []).why_not


def test_a_live_crawl_without_recording_has_to_have_texts(tmp_path: Path) -> None:
    store = CrawlStore.create(tmp_path / "crawl.db", {"web": "live", "topic": "/A"})
    try:
        with pytest.raises(UserError, match="no recording"):
            collect(store, tmp_path, ExportOptions())
        TextStore(tmp_path).close()
        assert collect(store, tmp_path, ExportOptions()).pages == []
    finally:
        store.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("自行车是一种由人力驱动的交通工具，通常有两个轮子。" * 50, 719),
        ("自転車は人間の力で動く乗り物で、車輪が二つある。", 14),
        ("จักรยานเป็นพาหนะที่ขับเคลื่อนด้วยแรงคนและมีล้อสองล้อ", 13),
        ("A bicycle is a vehicle with two wheels that people ride.", 11),
        ("자전거는 사람의 힘으로 움직이는 것이고 바퀴가 두 개 있는 아주 흔한 탈것이다.", 12),
    ],
)
def test_an_article_in_any_script_is_no_boilerplate(text: str, words: int, tmp_path: Path) -> None:
    store = CrawlStore.create(tmp_path / "crawl.db", {"web": "live", "topic": "/A"})
    texts = [text, "首页 关于我们", "Home, about us"]
    with sqlite3.connect(tmp_path / "crawl.db") as database, TextStore(tmp_path) as cache:
        database.execute("INSERT INTO host (id, name) VALUES (1, 'a.example')")
        for n, each in enumerate(texts):
            digest = bytes([n]) * 16
            found = dataclasses.replace(collection().pages[0].content, text=each)
            cache.put(digest, "trafilatura", found)
            url = f"http://a.example/{n}"
            database.execute("INSERT INTO url VALUES (?, ?, 1, 0, NULL, NULL, 0)", (n, url))
            database.execute(
                "INSERT INTO page VALUES (?, ?, 200, 0.9, '/A', NULL, ?, NULL, 9, NULL, NULL, ?,"
                " NULL, NULL, 0, 0)",
                (n, n, FETCHED.isoformat(), digest),
            )
    try:
        pages = collect(store, tmp_path, ExportOptions())
    finally:
        store.close()
    assert [page.content.text for page in pages.pages] == [text]
    assert pages.skipped["only boilerplate"] == 2
    assert to_row(pages.pages[0])["words"] == words


def test_what_cannot_be_written_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    for name in ("c.xlsx", "full", "none/c.csv"):
        with pytest.raises(UserError):
            check_output(tmp_path / name)
    broken = collection()
    broken.pages[0].relevance = "x"  # type: ignore[assignment]
    with pytest.raises(Exception, match=r"float|double|str"):
        write_collection(broken, tmp_path / "c.parquet")
    assert {path.name for path in tmp_path.iterdir()} == {"full"}
