"""An index of an archive as tables in Parquet, with the columns of Common Crawl's columnar index.

https://github.com/commoncrawl/cc-index-table has them all; those not in `_READ` are not read.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import first_line, refuse_special_file
from focuscrawl.webs.captures import Capture, parse_capture, parse_cdxj_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_KEY = "url_surtkey"
#: columns by the names that CDXJ has for the same
_COLUMNS = {
    "url": "url",
    "mime": "content_mime_type",
    "status": "fetch_status",
    "digest": "content_digest",
    "filename": "warc_filename",
    "offset": "warc_record_offset",
    "length": "warc_record_length",
    "redirect": "fetch_redirect",
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
    ]
)
_NEEDED = (
    *(_KEY, "url", "fetch_time", "fetch_status"),
    *("warc_filename", "warc_record_offset", "warc_record_length"),
)
_READ = (*_NEEDED, "fetch_redirect", "content_mime_type", "content_digest")
_ROWS = 10_000  # of a row group that is written: what a look-up reads
_MOST_ROWS = 4_000_000  # of a row group that is read
_HELD = 400_000  # rows that are held, about 100 MB
_OPEN = 8  # files
_AT = "%Y%m%d%H%M%S"
_DIGEST = "sha1:"


class _RowGroup(NamedTuple):
    low: str
    high: str
    path: str
    number: int
    rows: int


class ColumnarIndex:
    """Parquet files of captures (`CaptureIndex`).

    Opening them reads the footer of each. A look-up reads the columns of the row groups whose
    least and greatest key are around it: of one, where the rows are sorted by ``url_surtkey``.

    Parameters
    ----------
    files, path : a file, a folder of such, or ``FOLDER/*.parquet`` for all files below it
    name : for messages

    Raises
    ------
    UserError
        It cannot be read, lacks a column or is damaged; found out also later, where it is read.
    """

    def __init__(self, files: fs.FileSystem, path: str, name: str) -> None:
        self.name = name
        self._files = files
        self._open = lru_cache(_OPEN)(self._open_file)
        self._held: OrderedDict[int, pa.Table] = OrderedDict()
        groups: list[_RowGroup] = []
        digest = hashlib.blake2b(b"columnar\n", digest_size=16)
        for each in self._paths(path):
            for group in self._groups_of(each):
                groups.append(group)
                digest.update(f"{group.low} {group.high} {group.rows}\n".encode())
        if not groups:
            raise UserError(f"{name} is empty: it is no index of an archive")
        self._groups = sorted(groups)
        self._lows = [group.low for group in self._groups]
        # the greatest key of a group and all before it: beyond it no earlier one has the key
        self._highs = [*accumulate((group.high for group in self._groups), max)]
        self.fingerprint = digest.hexdigest()

    def find(self, keys: Sequence[str]) -> Iterator[Capture]:
        """Yield all captures that have one of the keys."""
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
        """Yield all captures, in the order of the least keys of their row groups."""
        for group in self._groups:
            for batch in self._batches(group):
                yield from self._captures(batch)

    def _paths(self, path: str) -> list[str]:
        folder = path.removesuffix("*.parquet").rstrip("/")
        try:
            kind = self._files.get_file_info(folder).type
            if kind == fs.FileType.NotFound:
                raise UserError(f"cannot read {self.name}: there is nothing")
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
        lacking = [name for name in _NEEDED if name not in names]
        if lacking:
            raise UserError(f"{self.name} is no index of an archive: it has no {lacking[0]}")
        column = file.schema.names.index(_KEY)
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            of_key = group.column(column).statistics
            if group.num_rows > _MOST_ROWS:
                raise UserError(
                    f"{self.name} has row groups of {group.num_rows:,} rows: write it anew, "
                    f"sorted by {_KEY}, with at most {_MOST_ROWS:,}"
                )
            if group.num_rows and (of_key is None or not isinstance(of_key.min, str)):
                raise UserError(
                    f"{self.name} does not say between which keys its rows are: write it anew, "
                    f"with statistics of {_KEY}"
                )
            if group.num_rows:
                yield _RowGroup(of_key.min, of_key.max, path, number, group.num_rows)

    def _table(self, at: int) -> pa.Table:
        """Return the rows of a group; those that were asked for last are held."""
        if at in self._held:
            self._held.move_to_end(at)
            return self._held[at]
        table = self._held[at] = pa.Table.from_batches(self._batches(self._groups[at]))
        while len(self._held) > 1 and sum(map(len, self._held.values())) > _HELD:
            self._held.popitem(last=False)
        return table

    def _batches(self, group: _RowGroup) -> Iterator[pa.RecordBatch]:
        file = self._open(group.path)
        columns = [name for name in _READ if name in file.schema_arrow.names]
        try:
            yield from file.iter_batches(_ROWS, [group.number], columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"cannot read {self.name}: {first_line(error)}") from None

    def _captures(self, batch: pa.RecordBatch) -> Iterator[Capture]:
        for row in batch.to_pylist():
            try:
                yield _capture(row)
            except ValueError as error:
                raise UserError(
                    f"{self.name} has a row that is no capture ({error}): {row['url']!s:.60}"
                ) from None


def _capture(row: dict[str, Any]) -> Capture:
    at, key = row["fetch_time"], row[_KEY]
    if not (isinstance(at, datetime) and isinstance(key, str)):
        raise ValueError("no time or no key")
    about = {name: row.get(column) for name, column in _COLUMNS.items()}
    return parse_capture(key, at.strftime(_AT).zfill(14), about)


def write_columnar(lines: Iterable[bytes], path: Path) -> None:
    """Write sorted lines of a CDXJ as one Parquet file, in row groups of 10,000 captures."""
    rows = map(_row, lines)
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        while group := [*islice(rows, _ROWS)]:
            writer.write_table(pa.Table.from_pylist(group, _SCHEMA))


def _row(line: bytes) -> dict[str, Any]:
    capture = parse_cdxj_line(line)
    row = {column: getattr(capture, name) for name, column in _COLUMNS.items()}
    return row | {
        _KEY: capture.key,
        "fetch_time": datetime.strptime(capture.timestamp, _AT).replace(tzinfo=UTC),
        "fetch_redirect": capture.redirect or None,
        "content_digest": capture.digest.removeprefix(_DIGEST) or None,
    }
