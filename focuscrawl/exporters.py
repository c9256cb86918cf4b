"""Feed exporters."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.exporters import BaseItemExporter, CsvItemExporter, XmlItemExporter

from focuscrawl.crawl.visit import Visit
from focuscrawl.foundation.extras import needs
from focuscrawl.report.plain_text import cell

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter
    from scrapy.item import Field
    from scrapy.settings import BaseSettings

_ROWS = 10_000  # items a row group
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class PlainCsvItemExporter(CsvItemExporter):
    """Exports items as CSV that no spreadsheet takes for formulas: ``-O pages.csv``."""

    def serialize_field(self, field: Mapping[str, Any] | Field, name: str, value: Any) -> Any:
        """Return a value as it is written."""
        serialized = super().serialize_field(field, name, value)
        return cell(_whole(serialized)) if isinstance(serialized, str) else serialized


class PlainXmlItemExporter(XmlItemExporter):
    """Exports items as XML that can be read: without characters that XML has not."""

    def serialize_field(self, field: Mapping[str, Any] | Field, name: str, value: Any) -> Any:
        """Return a value as it is written."""
        return _in_xml(super().serialize_field(field, name, value))


class ParquetItemExporter(BaseItemExporter):
    """Exports items as Parquet: ``-O pages.parquet``.

    Fetches, and feeds without items, have the columns and types of `Visit`, whatever was
    fetched. Items of other kinds have those of the first row group. Memory is bounded by one row
    group.
    """

    def __init__(self, file: IO[bytes] | Path, **options: Any) -> None:
        super().__init__(dont_fail=True, **options)
        self._file = file
        self._rows: list[dict[str, Any]] = []
        self._only_fetches = True
        self._writer: ParquetWriter | None = None

    def export_item(self, item: Any) -> None:
        """Take in one item."""
        row = ItemAdapter(item).asdict()
        if isinstance(item, Visit):
            row["fetched_at"] = datetime.fromisoformat(item.fetched_at)
        else:
            self._only_fetches = False
        if self.fields_to_export is not None:
            row = {name: row.get(name) for name in self.fields_to_export}
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._write()

    def finish_exporting(self) -> None:
        """Write what is left and the file's footer."""
        self._write()
        assert self._writer is not None
        self._writer.close()

    def _write(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - an extra; see `check_feeds`
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

        if self._writer is None:
            self._writer = ParquetWriter(self._file, self._schema())
        if self._rows:
            table = pa.Table.from_pylist(self._rows, schema=self._writer.schema)
            self._writer.write_table(table)
            self._rows = []

    def _schema(self) -> pa.Schema:
        import pyarrow as pa  # noqa: PLC0415

        if not self._only_fetches:
            return _inferred(self._rows)
        types = _types_of_fetches()
        return pa.schema(
            {name: types.get(name, pa.string()) for name in self.fields_to_export or types}
        )


def check_feeds(settings: BaseSettings) -> None:
    """Raise `UserError` if a feed is to be Parquet and what that takes is not installed."""
    ours = settings.getdict("FEED_EXPORTERS").get("parquet", "")
    wanted = [feed.get("format") for feed in settings.getdict("FEEDS").values()]
    if "parquet" in wanted and str(ours).startswith("focuscrawl."):
        with needs("parquet", "a feed in Parquet"):
            importlib.import_module("pyarrow.parquet")


def _types_of_fetches() -> dict[str, pa.DataType]:
    """Return the types of the columns of `Visit`."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    types = {each.name: kinds[str(each.type).partition(" ")[0]] for each in fields(Visit)}
    return types | {"fetched_at": pa.timestamp("ms", tz="UTC")}


def _inferred(rows: list[dict[str, Any]]) -> pa.Schema:
    """Infer the columns' types; a column that is empty so far becomes text."""
    import pyarrow as pa  # noqa: PLC0415

    inferred = pa.Table.from_pylist(rows).schema
    return pa.schema(
        [
            field.with_type(pa.string()) if pa.types.is_null(field.type) else field
            for field in inferred
        ]
    )


def _whole(text: str) -> str:
    """Return a text that can be encoded: a stranger's title may hold half a character."""
    return text.encode("utf-8", "replace").decode()


def _in_xml(value: Any) -> Any:
    """Return a value with a space for every character that XML has not."""
    if isinstance(value, str):
        return _NOT_IN_XML.sub(" ", value)
    if isinstance(value, Mapping):
        return {name: _in_xml(each) for name, each in value.items()}
    return [_in_xml(each) for each in value] if isinstance(value, list | tuple | set) else value
