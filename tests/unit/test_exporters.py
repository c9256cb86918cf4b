"""Parquet feeds: columns and types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from focuscrawl.crawl import Visit
from focuscrawl.exporters import ParquetItemExporter

if TYPE_CHECKING:
    from pathlib import Path


def visit(**fields: Any) -> Visit:
    needed = {"status": 200, "depth": 0, "score": None, "referrer": None, "content_type": None}
    times = {"fetched_at": "2026-03-01T08:00:00.250+00:00"}
    return Visit(url="http://a.example/", **{**needed, "bytes": 0, **times, **fields})


def exported(path: Path, *items: Any, fields: list[str] | None = None) -> pa.Table:
    with path.open("wb") as file:
        exporter = ParquetItemExporter(file, fields_to_export=fields)
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
