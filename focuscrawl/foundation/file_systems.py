"""File systems that a path or a URI names: the local one, S3, HDFS and others of PyArrow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from focuscrawl.errors import UserError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.plain_files import refuse_links

if TYPE_CHECKING:
    from pyarrow import fs


def file_system_of(place: str) -> tuple[fs.FileSystem, str]:
    """Return the file system that a place is on, and the path there.

    Parameters
    ----------
    place : a local path, or a URI: ``s3://bucket/folder?endpoint_override=host:9000``,
        ``hdfs://...``

    Raises
    ------
    UserError
        There is no such file system, or a password is in the URI.
    """
    with needs("parquet", place if "@" not in place else "a URI"):
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import fs  # noqa: PLC0415
    if "://" not in place:
        return fs.LocalFileSystem(), place
    try:
        if urlsplit(place).password is not None:
            scheme = place.partition("://")[0]
            raise UserError(
                f"{scheme}://...: a URI is written down in many places, so it holds no password: "
                "leave keys to the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        found, path = fs.FileSystem.from_uri(place)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = first_line(error) if "@" not in place else "is it written as a URI?"
        shown = place if "@" not in place else f"{place.partition('://')[0]}://..."
        raise UserError(f"{shown} is on no file system: {why}") from None
    return found, path


def refuse_odd(files: fs.FileSystem, path: str, below: str | None = None) -> None:
    """Refuse a local file that is none: a pipe would keep who opens it waiting.

    Parameters
    ----------
    path : may not be there
    below : a folder that names the file, and lets nobody out: there may be no link on the way

    Raises
    ------
    UserError
        It is a pipe, a device or a folder, or there is a link.
    """
    if files.type_name != "local":
        return
    if below is not None:
        refuse_links(path, below)
    if Path(path).exists() and not Path(path).is_file():
        raise UserError(f"{path} is no plain file: remove it, or name another")


def first_line(error: BaseException) -> str:
    """Return what PyArrow says of an error, without what it adds for programmers."""
    return (str(error).splitlines() or [type(error).__name__])[0].partition(". Detail: ")[0]
