"""Feed exporters for CSV, XML and Parquet, and a feed storage that writes Parquet atomically."""

from __future__ import annotations

import csv
import importlib
import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter
from scrapy.exporters import BaseItemExporter, CsvItemExporter, XmlItemExporter
from scrapy.extensions.feedexport import FileFeedStorage
from scrapy.settings import SETTINGS_PRIORITIES

from focuscrawl.crawl.visit import Visit
from focuscrawl.engine.component import config_of
from focuscrawl.engine.page_texts import TextVisit
from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import replace_atomically
from focuscrawl.foundation.user_input import is_sqlite_file
from focuscrawl.report.plain_text import escape_csv_field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.item import Field
    from scrapy.settings import BaseSettings

# a row group ends at so many items or characters of text
_ROWS, _CHARACTERS = 10_000, 16_000_000
_PARQUET = "parquet"
_SPIDER = SETTINGS_PRIORITIES["spider"]
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class PlainCsvItemExporter(CsvItemExporter):
    """Feed exporter for CSV (``-O pages.csv``); no spreadsheet treats its values as formulas."""

    def __init__(self, file: BytesIO, **options: Any) -> None:
        super().__init__(file, **{"quoting": csv.QUOTE_NONNUMERIC, **options})

    def serialize_field(self, field: Mapping[str, Any] | Field, name: str, value: Any) -> Any:
        """Return a field's value, changed so that no spreadsheet treats it as a formula."""
        serialized = super().serialize_field(field, name, value)
        if isinstance(serialized, str):
            serialized = _without_surrogates(serialized)
        return escape_csv_field(name, serialized)


class PlainXmlItemExporter(XmlItemExporter):
    """Feed exporter for well-formed XML; leaves out characters that XML does not allow."""

    def serialize_field(self, field: Mapping[str, Any] | Field, name: str, value: Any) -> Any:
        """Return the value of a field without characters that XML does not allow."""
        return _without_invalid_xml(super().serialize_field(field, name, value))


class ParquetItemExporter(BaseItemExporter):
    """Feed exporter for Parquet (``-O pages.parquet``).

    Feeds of fetches, and feeds without items, have the columns and types of the class `Visit`.
    With the setting ``FOCUSCRAWL_TEXT``, the columns are the fields of `TextVisit`. For items of
    other classes, the first row group determines the columns. Memory holds one row group at a
    time: 10,000 items, or 16 million characters.

    Parameters
    ----------
    fetches : type[Visit]
        Class of the items that are fetches.
    """

    def __init__(
        self, file: IO[bytes] | Path, *, fetches: type[Visit] = Visit, **options: Any
    ) -> None:
        super().__init__(dont_fail=True, **options)
        self._file = file
        self._fetches = fetches
        self._rows: list[dict[str, Any]] = []
        self._characters = 0
        self._only_fetches = True
        self._writer: ParquetWriter | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **options: Any) -> Self:
        """Create the exporter of a feed."""
        fetches = TextVisit if config_of(crawler).text else Visit
        return cls(file, fetches=fetches, **options)

    def export_item(self, item: Any) -> None:
        """Add an item to the current row group of the Parquet file."""
        row = ItemAdapter(item).asdict()
        if isinstance(item, Visit):
            row["fetched_at"] = datetime.fromisoformat(item.fetched_at)
        else:
            self._only_fetches = False
        if self.fields_to_export is not None:
            row = {name: row.get(name) for name in self.fields_to_export}
        texts = {k: _without_surrogates(v) for k, v in row.items() if isinstance(v, str)}
        self._rows.append(row | texts)
        self._characters += sum(map(len, texts.values()))
        if len(self._rows) >= _ROWS or self._characters >= _CHARACTERS:
            self._write()

    def finish_exporting(self) -> None:
        """Write the last row group and the footer of the Parquet file."""
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
            self._rows, self._characters = [], 0

    def _schema(self) -> pa.Schema:
        import pyarrow as pa  # noqa: PLC0415

        if not self._only_fetches:
            return _infer_schema(self._rows)
        types = _column_types(self._fetches)
        return pa.schema(
            {name: types.get(name, pa.string()) for name in self.fields_to_export or types}
        )


class WholeFileFeedStorage(FileFeedStorage):
    """Feed storage for files, in which a complete Parquet file replaces an earlier file.

    A Parquet file cannot be read before its footer is written.
    """

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        super().__init__(uri, feed_options=feed_options)
        self._is_parquet = (feed_options or {}).get("format") == _PARQUET
        self._draft = ExitStack()

    def open(self, spider: Spider) -> IO[bytes]:
        """Open the file of a feed; for Parquet, open a draft file."""
        if not self._is_parquet:
            return super().open(spider)
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return self._draft.enter_context(replace_atomically(path)).open("wb")

    def store(self, file: IO[bytes]) -> None:
        """Close the file of a feed; for Parquet, rename the draft to its final name."""
        file.close()
        self._draft.close()


def check_feeds(settings: BaseSettings) -> None:
    """Raise `UserError` if a feed cannot be written.

    A feed cannot be written to a folder, to a path below a file, to a crawl database, or to the
    end of a Parquet file. Parquet feeds also need PyArrow.
    """
    feeds = settings.getdict("FEEDS")
    for feed in map(str, feeds):
        if "://" not in feed or feed.startswith("file://"):
            _check_file(Path(feed.removeprefix("file://")))
    exporter = settings.getdict("FEED_EXPORTERS").get(_PARQUET, "")
    parquet = {str(uri): feed for uri, feed in feeds.items() if feed.get("format") == _PARQUET}
    if not parquet or not str(exporter).startswith("focuscrawl."):
        return
    with require_extra("parquet", "a feed in Parquet"):
        importlib.import_module("pyarrow.parquet")
    for uri, feed in parquet.items():
        if not feed.get("overwrite") and Path(uri.removeprefix("file://")).is_file():
            raise UserError(
                f"{uri} exists, and Parquet files cannot be appended to: replace the file with -O"
            )


def skip_empty_feeds(settings: BaseSettings) -> None:
    """Keep existing feeds when a finished crawl runs again and exports no items.

    The setting ``FEED_STORE_EMPTY`` and the option ``store_empty`` of a feed apply to new crawls
    only.
    """
    feeds = {
        uri: {**feed, "store_empty": False} for uri, feed in settings.getdict("FEEDS").items()
    }
    settings.set("FEEDS", feeds, priority=max(settings.getpriority("FEEDS") or 0, _SPIDER))


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file for the feed")
    parent = next(each for each in path.absolute().parents if each.exists())
    if not parent.is_dir():
        raise UserError(f"{parent} is a file: name another folder for the feed {path.name}")
    if is_sqlite_file(path):
        raise UserError(f"{path} is the database of a crawl: name another file for the feed")
    target = path if path.exists() else parent
    if not os.access(target, os.W_OK):
        raise UserError(f"{target} cannot be written: name another file for the feed {path.name}")


def _column_types(item: type[Visit]) -> dict[str, pa.DataType]:
    import pyarrow as pa  # noqa: PLC0415

    kinds = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "date": pa.date32()}
    types = {each.name: kinds[str(each.type).partition(" ")[0]] for each in fields(item)}
    return types | {"fetched_at": pa.timestamp("ms", tz="UTC")}


def _infer_schema(rows: list[dict[str, Any]]) -> pa.Schema:
    """Infer the types of columns; a column without values becomes text."""
    import pyarrow as pa  # noqa: PLC0415

    inferred = pa.Table.from_pylist(rows).schema
    return pa.schema(
        [
            field.with_type(pa.string()) if pa.types.is_null(field.type) else field
            for field in inferred
        ]
    )


def _without_surrogates(text: str) -> str:
    # the titles of pages may contain unpaired surrogates
    return text.encode("utf-8", "replace").decode()


def _without_invalid_xml(value: Any) -> Any:
    if isinstance(value, str):
        return _NOT_IN_XML.sub(" ", value)
    if isinstance(value, Mapping):
        return {name: _without_invalid_xml(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_without_invalid_xml(each) for each in value]
    return value
