"""Files that people give: lines, tables, plain or gzipped; what is wrong is said in a line."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from importlib.resources.abc import Traversable

_GZIP_MAGIC = b"\x1f\x8b"
_STORE_MAGIC = b"SQLite format 3\0"


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


def is_store(path: Path) -> bool:
    """Tell whether there is a database of SQLite: a crawl, or knowledge."""
    if not path.is_file():  # to read from a terminal or a pipe would wait for somebody
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_STORE_MAGIC)) == _STORE_MAGIC
    except OSError:
        return False


def read_text(path: str | Path | Traversable) -> str:
    """Return the text of a file in UTF-8.

    Raises
    ------
    UserError
        It cannot be read, or is in another encoding.
    """
    path = Path(path) if isinstance(path, str) else path
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path}: cannot be read ({reason}); check the path") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8 text"
        ) from None


def lines_of(text: str) -> dict[int, str]:
    """Return the lines of a list by number, from 1, without blanks around.

    Blank lines and those that begin with ``#`` are passed over.
    """
    lines = {number: line.strip() for number, line in enumerate(text.splitlines(), start=1)}
    return {number: line for number, line in lines.items() if line and not line.startswith("#")}


def table_of(lines: Iterable[str]) -> csv.DictReader[str]:
    """Return the rows of a CSV table; the names of its columns are those of its header, in small.

    Cells have commas, semicolons or tabs between them, as spreadsheets of many countries write
    them: whatever the header has most of.
    """
    lines = iter(lines)
    header = next(lines, "")
    between = max(",;\t", key=header.count)
    try:
        names = next(csv.reader([header], delimiter=between), [])
    except csv.Error:  # far too long for one
        names = []
    return csv.DictReader(lines, [name.strip().lower() for name in names], delimiter=between)


def numbered(
    rows: csv.DictReader[str], path: str | Path | Traversable
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with their numbers, from 1.

    Raises
    ------
    UserError
        A row is no CSV, or has cells that no column is for.
    """
    try:
        for number, row in enumerate(rows, start=1):
            surplus: Any = row.get(None)
            if any(surplus or ()):
                raise UserError(
                    f"{path}, row {number}: more cells than the header has; put what has commas "
                    "in it in quotes"
                )
            yield number, row
    except csv.Error as error:
        line = rows.line_num + 1  # of the header, too
        raise UserError(
            f"{path}: line {line} is not CSV ({error}); save the table as UTF-8 CSV"
        ) from error


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
        try:
            rows = table_of(io.TextIOWrapper(source, encoding="utf-8-sig", newline=""))
            if not rows.fieldnames:
                raise UserError(f"{path}: empty file; {needed}")
            if not {name.lower() for name in columns} <= set(rows.fieldnames):
                raise UserError(f"{path}: has the columns {','.join(rows.fieldnames)}; {needed}")
            names = [*columns, *optional]
            for number, row in numbered(rows, path):
                yield number, {name: (row.get(name.lower()) or "").strip() for name in names}
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}: not UTF-8 text ({error.reason}); save the table as UTF-8 CSV"
            ) from error
