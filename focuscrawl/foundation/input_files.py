"""Files that people give: plain or gzipped, tables; what is wrong with one is said in a line."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_source(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; gzip is known by its first bytes, not by the name.

    Raises
    ------
    UserError
        If the file cannot be opened, or, while it is read, proves damaged.
    """
    try:
        with Path(path).open("rb") as raw:
            packed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            raw.seek(0)
            if packed:
                with gzip.open(raw) as unpacked:
                    yield cast("BinaryIO", unpacked)
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: damaged gzip file ({error}); fetch or pack it again") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path}: cannot be read ({reason}); check the path") from error


def read_rows(
    path: str | Path, columns: Sequence[str], *, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number, from 1, and the cells of each row of a CSV table; blank lines are none.

    Parameters
    ----------
    path : UTF-8 file with a header, plain or gzipped
    columns : that must be there, in any order and case; their names are the keys of the cells
    optional : that are read, too; empty where they are not there

    Raises
    ------
    UserError
        While rows are read: the file is none, or no CSV, or lacks a column.
    """
    needed = f"it needs the columns {','.join([*columns, *(f'[{name}]' for name in optional)])}"
    with open_source(path) as source:
        rows = csv.DictReader(io.TextIOWrapper(source, encoding="utf-8-sig", newline=""))
        try:
            rows.fieldnames = [name.strip().lower() for name in rows.fieldnames or ()]
            if not rows.fieldnames:
                raise UserError(f"{path}: empty file; {needed}")
            if not {name.lower() for name in columns} <= set(rows.fieldnames):
                raise UserError(f"{path}: has the columns {','.join(rows.fieldnames)}; {needed}")
            names = [*columns, *optional]
            for number, row in enumerate(rows, start=1):
                yield number, {name: (row.get(name.lower()) or "").strip() for name in names}
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}: not UTF-8 text ({error.reason}); save the table as UTF-8 CSV"
            ) from error
        except csv.Error as error:
            raise UserError(
                f"{path}: line {rows.line_num} is not CSV ({error}); save the table as UTF-8 CSV"
            ) from error
