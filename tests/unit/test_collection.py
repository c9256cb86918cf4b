"""What is taken home of pages, as files that others load."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest

from focuscrawl.collection.collection import CollectedPage, Collection, Wanted, collect
from focuscrawl.collection.files import arrow_schema, check_out, write_collection
from focuscrawl.collection.rows import COLUMNS
from focuscrawl.errors import UserError
from focuscrawl.store import CrawlStore
from focuscrawl.text.extraction import PageText
from focuscrawl.text.store import TextStore

if TYPE_CHECKING:
    from pathlib import Path

FETCHED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
TITLE = "=HYPERLINK(1)/../../x\n---\nurl: y"
TEXT = "One sentence of a page. And another one, \ud800 of the same page."


def collection(number: int = 1) -> Collection:
    text = PageText(
        TEXT, TEXT, TITLE, "", "|a|", date(2020, 1, 2), "en", 0.9, "", "", "", "trafilatura"
    )
    pages = [
        CollectedPage(n, f"http://a.example/{n}", FETCHED, 0.9, "/A", TITLE, text, "00")
        for n in range(number)
    ]
    return Collection({"topic": "/A|`#"}, Wanted(), pages, Counter({"<why>": 2}), number + 2)


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
    sheet = (tmp_path / "c.datasheet.md").read_text()
    assert r"\<why\>" in sheet
    assert r"/A\|\`\#" in sheet


def test_a_live_crawl_without_recording_has_to_have_texts(tmp_path: Path) -> None:
    store = CrawlStore.create(tmp_path / "crawl.db", {"web": "live", "topic": "/A"})
    try:
        with pytest.raises(UserError, match="no recording"):
            collect(store, tmp_path, Wanted())
        TextStore(tmp_path).close()
        assert collect(store, tmp_path, Wanted()).pages == []
    finally:
        store.close()


def test_what_cannot_be_written_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    for name in ("c.xlsx", "full", "none/c.csv"):
        with pytest.raises(UserError):
            check_out(tmp_path / name)
    broken = collection()
    broken.pages[0].relevance = "x"  # type: ignore[assignment]
    with pytest.raises(Exception, match=r"float|double|str"):
        write_collection(broken, tmp_path / "c.parquet")
    assert {path.name for path in tmp_path.iterdir()} == {"full"}
