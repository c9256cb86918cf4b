"""Parquet feeds: columns and types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scrapy import Spider
from scrapy.settings import Settings

from focuscrawl import exporters
from focuscrawl import settings as ours
from focuscrawl.crawl import Visit
from focuscrawl.engine.page_texts import TextVisit
from focuscrawl.errors import UserError
from focuscrawl.exporters import ParquetItemExporter, WholeFileFeedStorage, check_feeds
from focuscrawl.text import PageText

TEXT = PageText(
    text="A\ud800",
    markdown="# A",
    title="",
    description="",
    author="",
    date=date(2020, 3, 4),
    language="en",
    confidence=0.9,
    canonical="",
    license="",
    kind="",
    extractor="trafilatura",
)


def visit(**fields: Any) -> Visit:
    needed = {"status": 200, "depth": 0, "score": None, "referrer": None, "content_type": None}
    times = {"fetched_at": "2026-03-01T08:00:00.250+00:00"}
    return Visit(url="http://a.example/", **{**needed, "bytes": 0, **times, **fields})


def exported(
    path: Path,
    *items: Any,
    fields: list[str] | None = None,
    fetches: type[Visit] = Visit,
) -> pa.Table:
    with path.open("wb") as file:
        exporter = ParquetItemExporter(file, fields_to_export=fields, fetches=fetches)
        exporter.start_exporting()
        for item in items:
            exporter.export_item(item)
        exporter.finish_exporting()
    return pq.read_table(path)


def test_types_do_not_depend_on_what_was_fetched(tmp_path: Path) -> None:
    full = visit(score=0.5, referrer="http://a.example/", error="timed out", topic="/Jazz", seq=1)
    schema = exported(tmp_path / "full", full).schema
    assert exported(tmp_path / "bare", visit(relevance=1)).schema == schema
    assert exported(tmp_path / "nothing").schema == schema
    assert schema.field("score").type == pa.float64()
    assert schema.field("depth").type == pa.int64()
    assert schema.field("title").type == pa.string()


def test_a_row_group_is_bounded_by_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporters, "_CHARACTERS", 1000)
    exported(tmp_path / "long", *(visit(title="word " * 100) for _ in range(6)))
    assert pq.ParquetFile(tmp_path / "long").num_row_groups == 3


def test_texts_are_columns_of_their_own(tmp_path: Path) -> None:
    off_topic, on_topic = TextVisit.of(visit()), TextVisit.of(visit(title="Jazz"), TEXT)
    plain = exported(tmp_path / "some", off_topic, on_topic, fetches=TextVisit)
    nothing = exported(tmp_path / "nothing", fetches=TextVisit)
    assert plain.schema == nothing.schema
    assert plain.schema.field("date").type == pa.date32()
    row = plain.to_pylist()[1]
    assert (row["text"], row["date"], row["title"]) == ("A?", date(2020, 3, 4), "Jazz")
    assert row["hash"] == sha256(b"A\xed\xa0\x80").hexdigest()
    assert TextVisit.of(visit(), TEXT, markdown=True).text == "# A"
    assert TextVisit.of(visit(), "too hard to read").text_error == "too hard to read"


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "feeds" / "pages.parquet"
    options = {"format": "parquet", "overwrite": True}
    for content in (b"one", b"other"):
        storage = WholeFileFeedStorage(str(path), feed_options=options)
        file = storage.open(Spider("any"))
        file.write(content)
        assert path.exists() == (content == b"other")
        storage.store(file)
        assert path.read_bytes() == content
    unfinished = WholeFileFeedStorage(str(path), feed_options=options)
    unfinished.open(Spider("any")).close()
    del unfinished
    assert list(path.parent.iterdir()) == [path]


def test_nothing_is_added_to_parquet(tmp_path: Path) -> None:
    (tmp_path / "pages.parquet").touch()
    feeds = {str(tmp_path / "pages.parquet"): {"format": "parquet", "overwrite": False}}
    settings = Settings({"FEEDS": feeds, "FEED_EXPORTERS": ours.FEED_EXPORTERS})
    with pytest.raises(UserError, match="replace the file with -O"):
        check_feeds(settings)


def test_times_are_times(tmp_path: Path) -> None:
    column = exported(tmp_path / "times", visit())["fetched_at"]
    assert column.type == pa.timestamp("ms", tz="UTC")
    assert column.to_pylist() == [datetime(2026, 3, 1, 8, 0, 0, 250_000, tzinfo=UTC)]


@pytest.mark.parametrize("items", [[visit()], []], ids=["one", "none"])
def test_chosen_fields_alone_are_written_and_in_order(tmp_path: Path, items: list[Visit]) -> None:
    table = exported(tmp_path / "chosen", *items, fields=["relevance", "mine", "url"])
    assert table.column_names == ["relevance", "mine", "url"]
    assert table["url"].to_pylist() == [item.url for item in items]


def test_items_of_other_kinds_keep_their_columns(tmp_path: Path) -> None:
    table = exported(tmp_path / "others", {"name": "a", "empty": None}, {"name": "b", "n": 3})
    assert table.to_pylist() == [
        {"name": "a", "empty": None},
        {"name": "b", "empty": None},
    ]
