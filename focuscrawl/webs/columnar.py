"""Parquet indexes of archives, with the columns of Common Crawl's columnar index.

https://github.com/commoncrawl/cc-index-table lists all columns, of which the module `columnar`
reads a few.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import first_line, refuse_special_file
from focuscrawl.webs.captures import Capture, field_of, parse_capture, parse_cdxj_line

_KEY = "url_surtkey"
#: names of Parquet columns by the equivalent field of CDXJ
_COLUMNS = {
    "url": "url",
    "mime": "content_mime_type",
    "status": "fetch_status",
    "digest": "content_digest",
    "filename": "warc_filename",
    "offset": "warc_record_offset",
    "length": "warc_record_length",
    "redirect": "fetch_redirect",
    # columns of our own: the original of a revisit record
    "orig.filename": "orig_filename",
    "orig.offset": "orig_offset",
    "orig.length": "orig_length",
}
_SCHEMA = pa.schema(
    [
        (_KEY, pa.string()),
        ("url", pa.string()),
        ("fetch_time", pa.timestamp("ms", tz="UTC")),
        ("fetch_status", pa.int16()),
        ("fetch_redirect", pa.string()),
        ("content_digest", pa.string()),
        ("content_mime_type", pa.string()),
        ("content_mime_detected", pa.string()),
        ("warc_filename", pa.string()),
        ("warc_record_offset", pa.int64()),
        ("warc_record_length", pa.int64()),
        ("orig_filename", pa.string()),
        ("orig_offset", pa.int64()),
        ("orig_length", pa.int64()),
    ]
)
_NEEDED = (
    *(_KEY, "url", "fetch_time", "fetch_status"),
    *("warc_filename", "warc_record_offset", "warc_record_length"),
)
_READ = (_KEY, "fetch_time", *_COLUMNS.values())
_GROUP_ROWS = 10_000  # rows of a written row group; a look-up reads one group
_MAX_GROUP_ROWS = 4_000_000  # rows of a readable row group
_CACHED_ROWS = 400_000  # about 100 MB
_MAX_OPEN_FILES = 8
_TIMESTAMP = "%Y%m%d%H%M%S"
_DIGEST = "sha1:"


class _RowGroup(NamedTuple):
    low: str
    high: str
    path: str
    number: int
    rows: int


class ColumnarIndex:
    """An index in Parquet files, with one row per capture (recorded response).

    When the index is opened, the footer of each file is read. A look-up reads the row groups whose
    range of keys contains the URL's key. If the rows are sorted by ``url_surtkey``, a look-up
    reads a single row group.

    Parameters
    ----------
    path : str
        A file, a folder of files, or ``FOLDER/*.parquet`` for all files below the folder.
    name : str
        File name for messages.

    Raises
    ------
    UserError
        A file cannot be read, lacks a column or is damaged; later reads may raise the error, too.
    """

    requests = 0  # the files are on no web server

    def __init__(self, files: fs.FileSystem, path: str, name: str) -> None:
        self.name = name
        self._files = files
        self._open = lru_cache(_MAX_OPEN_FILES)(self._open_file)
        self._cached: OrderedDict[int, pa.Table] = OrderedDict()
        groups: list[_RowGroup] = []
        digest = hashlib.blake2b(b"columnar\n", digest_size=16)
        for each in self._paths(path):
            for group in self._groups_of(each):
                groups.append(group)
                digest.update(f"{group.low} {group.high} {group.rows}\n".encode())
        if not groups:
            raise UserError(f"{name} is empty: name an index of WARC files")
        self._groups = sorted(groups)
        self._lows = [group.low for group in self._groups]
        # largest key of each group and all groups before: the search for a larger key stops there
        self._highs = [*accumulate((group.high for group in self._groups), max)]
        self.fingerprint = digest.hexdigest()

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures (index entries) with one of the given URL keys."""
        wanted: dict[int, list[str]] = {}
        for key in keys:
            at = bisect_right(self._lows, key) - 1
            while at >= 0 and self._highs[at] >= key:
                if self._groups[at].high >= key:
                    wanted.setdefault(at, []).append(key)
                at -= 1
        for at, of_group in wanted.items():
            table, value_set = self._table(at), pa.array(of_group, pa.string())
            key = table[_KEY].cast(pa.string())
            for batch in table.filter(pc.is_in(key, value_set=value_set)).to_batches():
                yield from self._captures(batch)

    def __iter__(self) -> Iterator[Capture]:
        """Yield all captures in the order of the smallest keys of their row groups."""
        for group in self._groups:
            for batch in self._batches(group):
                yield from self._captures(batch)

    def _paths(self, path: str) -> list[str]:
        folder = path.removesuffix("*.parquet").rstrip("/")
        try:
            kind = self._files.get_file_info(folder).type
            if kind == fs.FileType.NotFound:
                raise UserError(f"cannot read {self.name}: the path does not exist")
            if kind in {fs.FileType.File, fs.FileType.Unknown}:
                refuse_special_file(self._files, path)
                return [path]
            found = self._files.get_file_info(fs.FileSelector(folder, recursive=True))
        except OSError as error:
            raise UserError(f"cannot read {self.name}: {first_line(error)}") from None
        paths = sorted(each.path for each in found if each.path.endswith(".parquet"))
        for each in paths:
            refuse_special_file(self._files, each, folder)
        return paths

    def _open_file(self, path: str) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(path, filesystem=self._files)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"cannot read {self.name}: {first_line(error)}") from None

    def _groups_of(self, path: str) -> Iterator[_RowGroup]:
        file = self._open_file(path)
        names = file.schema_arrow.names
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise UserError(
                f"{self.name} is not an index of WARC files: the column {missing[0]} is missing"
            )
        column = file.schema.names.index(_KEY)
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            key_range = group.column(column).statistics
            if group.num_rows > _MAX_GROUP_ROWS:
                raise UserError(
                    f"{self.name} has row groups of {group.num_rows:,} rows: write the file "
                    "again, "
                    f"sorted by {_KEY}, with at most {_MAX_GROUP_ROWS:,} rows a group"
                )
            if group.num_rows and (key_range is None or not isinstance(key_range.min, str)):
                raise UserError(
                    f"{self.name} has no statistics of the column {_KEY}: write the file again, "
                    "with statistics"
                )
            if group.num_rows:
                yield _RowGroup(key_range.min, key_range.max, path, number, group.num_rows)

    def _table(self, at: int) -> pa.Table:
        """Return the rows of a group; recently used groups are cached."""
        if at in self._cached:
            self._cached.move_to_end(at)
            return self._cached[at]
        table = self._cached[at] = pa.Table.from_batches(self._batches(self._groups[at]))
        while len(self._cached) > 1 and sum(map(len, self._cached.values())) > _CACHED_ROWS:
            self._cached.popitem(last=False)
        return table

    def _batches(self, group: _RowGroup) -> Iterator[pa.RecordBatch]:
        file = self._open(group.path)
        columns = [name for name in _READ if name in file.schema_arrow.names]
        try:
            yield from file.iter_batches(_GROUP_ROWS, [group.number], columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"cannot read {self.name}: {first_line(error)}") from None

    def _captures(self, batch: pa.RecordBatch) -> Iterator[Capture]:
        for row in batch.to_pylist():
            try:
                yield _capture(row)
            except ValueError as error:
                raise UserError(
                    f"{self.name} has an invalid row ({error}): {row['url']!s:.60}"
                ) from None


def _capture(row: dict[str, Any]) -> Capture:
    at, key = row["fetch_time"], row[_KEY]
    if not (isinstance(at, datetime) and isinstance(key, str)):
        raise ValueError("time or key is missing")
    about = {name: row.get(column) for name, column in _COLUMNS.items()}
    return parse_capture(key, at.strftime(_TIMESTAMP).zfill(14), about)


def write_columnar(lines: Iterable[bytes], path: Path) -> None:
    """Write sorted CDXJ lines as one Parquet file."""
    rows = map(_row, lines)
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        while group := [*islice(rows, _GROUP_ROWS)]:
            writer.write_table(pa.Table.from_pylist(group, _SCHEMA))


def _row(line: bytes) -> dict[str, Any]:
    capture = parse_cdxj_line(line)
    row = {column: getattr(capture, field_of(name)) for name, column in _COLUMNS.items()}
    return row | {
        _KEY: capture.key,
        "fetch_time": datetime.strptime(capture.timestamp, _TIMESTAMP).replace(tzinfo=UTC),
        "fetch_redirect": capture.redirect or None,
        "orig_filename": capture.orig_filename or None,
        "content_digest": capture.digest.removeprefix(_DIGEST) or None,
    }
