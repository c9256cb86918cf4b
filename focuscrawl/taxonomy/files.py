"""Opening the files taxonomies are read from, plain or gzipped, with one-line errors."""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from focuscrawl.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
