"""The first rows of a file that is taken home; texts in it are those of strangers."""

from __future__ import annotations

import csv
import io
import json
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.plain_files import open_plain
from focuscrawl.report.plain_text import printable
from focuscrawl.studio.collecting.files import inside
from focuscrawl.webs.warc_scan import Scan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ROWS = 10
_READ = 1 << 20  # bytes
_CELL = 200  # characters
_TEXT = 3000


def preview(path: Path) -> dict[str, Any]:
    """Return what a file begins with.

    Returns
    -------
    ``columns`` and ``rows`` of texts; or ``text``; or ``note``, why there is nothing to show

    Raises
    ------
    UserError
        It is not what its name says.
    """
    if path.is_dir():
        files = inside(path)
        for each in files:
            if each.suffix in _PLAIN:
                return _text(each)
        return {"columns": ["file"], "rows": [[each.name] for each in files[:_ROWS]]}
    if path.suffix in _PLAIN:
        return _text(path)
    shown = _SHOWN.get(path.suffix)
    if shown is None:
        return {"note": "It has no rows to show: download it."}
    try:
        with open(path, "rb", opener=open_plain) as file:
            return shown(path, file)
    except (ValueError, OSError, csv.Error, RecursionError) as error:
        raise UserError(f"{path.name} cannot be read: {error!s:.200}") from None


def _csv(_: Path, file: BinaryIO) -> dict[str, Any]:
    rows = [*islice(csv.reader(io.StringIO(_head(file, _READ))), _ROWS + 1)]
    return _table(rows[0] if rows else [], rows[1:])


def _jsonl(_: Path, file: BinaryIO) -> dict[str, Any]:
    lines = _head(file, _READ).split("\n")[:-1][:_ROWS]  # the last may be cut
    records = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(each, dict) for each in records):
        raise ValueError("a line is no JSON object")
    names = list(dict.fromkeys(name for each in records for name in each))
    return _table(names, [[each.get(name) for name in names] for each in records])


def _parquet(path: Path, file: BinaryIO) -> dict[str, Any]:
    with needs("parquet", f"a preview of {path.name}"):
        import pyarrow.parquet as pq  # noqa: PLC0415 - only where asked for
    with pq.ParquetFile(file) as table:
        batch = next(table.iter_batches(batch_size=_ROWS), None)
        names = list(map(str, table.schema_arrow.names))
    return _table(names, [list(row.values()) for row in batch.to_pylist()] if batch else [])


def _warc(path: Path, file: BinaryIO) -> dict[str, Any]:
    records = [*islice(Scan(path, file), _ROWS)]
    return _table(
        ["record", "URL", "date", "bytes"],
        [[r.type, r.target, r.headers.get("warc-date", ""), len(r.block)] for r in records],
    )


def _table(columns: Iterable[Any], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    return {
        "columns": [_cell(each) for each in columns],
        "rows": [[_cell(c) for c in r] for r in rows],
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text[:_CELL] + ("…" if len(text) > _CELL else "")


def _text(path: Path) -> dict[str, Any]:
    with open(path, "rb", opener=open_plain) as file:
        return {"text": printable(_head(file, _TEXT))}


def _head(file: BinaryIO, most: int) -> str:
    return file.read(most).decode(errors="replace")


_PLAIN = (".md", ".txt")
_SHOWN = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet, ".gz": _warc, ".warc": _warc}
