"""Files that were made of a crawl to be taken home; nothing there leads out of their folder."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from focuscrawl.errors import UserError
from focuscrawl.foundation.plain_files import open_plain, plain_below

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "take-home"  #: in the crawl's
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_COUNTED = 10_000  # files of a folder; more are said to be more
_CHUNK = 1 << 18


def home_of(crawl: Path) -> Path:
    """Return the folder of what is taken home, made if need be.

    Raises
    ------
    UserError
        It is a link, or cannot be made.
    """
    home = plain_below(crawl, FOLDER)
    try:
        home.mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(f"{home} cannot be written: {error.strerror}") from None
    return home


def listed(crawl: Path) -> list[dict[str, Any]]:
    """Return what is there, the newest first.

    Returns
    -------
    ``name``, ``bytes``, ``made`` (ISO 8601, UTC), and ``files`` of a folder, None of a file
    """
    home = crawl / FOLDER
    if home.is_symlink():
        return []
    found: list[tuple[float, dict[str, Any]]] = []
    try:
        with os.scandir(home) as entries:
            named = [each for each in entries if _NAME.fullmatch(each.name)]
    except OSError:
        return []
    for each in named:
        about = each.stat(follow_symlinks=False)
        size, files = about.st_size, None
        if each.is_dir(follow_symlinks=False):
            held = inside(Path(each.path))
            size, files = sum(path.lstat().st_size for path in held), len(held)
        elif not each.is_file(follow_symlinks=False):
            continue
        made = datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds")
        row = {"name": each.name, "bytes": size, "made": made, "files": files}
        found.append((about.st_mtime, row))
    return [row for _, row in sorted(found, key=lambda each: (-each[0], each[1]["name"]))]


def find(crawl: Path, name: str) -> Path:
    """Return the file or folder called so; UserError if there is none."""
    if not _NAME.fullmatch(name):
        raise UserError(f"no file {name!r:.100} to take home: see the list")
    path = plain_below(crawl, f"{FOLDER}/{name}")
    if not path.exists():
        raise UserError(f"no file {name} to take home: see the list")
    return path


def opened(path: Path) -> tuple[IO[bytes], str]:
    """Open what `find` has found, and say what it is called: of a folder, a ZIP of its files."""
    if not path.is_dir():
        return open(path, "rb", opener=open_plain), path.name
    packed = tempfile.TemporaryFile()  # noqa: SIM115 - who sends it closes it
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in inside(path, most=None):
            with (
                open(each, "rb", opener=open_plain) as file,
                archive.open(each.relative_to(path.parent).as_posix(), "w") as into,
            ):
                while chunk := file.read(_CHUNK):
                    into.write(chunk)
    packed.seek(0)
    return packed, f"{path.name}.zip"


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file, and close it."""
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


def inside(folder: Path, most: int | None = _COUNTED) -> list[Path]:
    """Return the plain files in a folder and below it, by name; no link is followed."""
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):  # which follows no link to a folder
        folders.sort()
        paths = (Path(parent) / name for name in sorted(files))
        found += [path for path in paths if not path.is_symlink() and path.is_file()]
        if most is not None and len(found) >= most:
            return found[:most]
    return found
