"""Files that commands write where the user says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_file(path: Path, content: bytes, option: str) -> Path:
    """Write a file that the user has named with `option`, and return it.

    Raises
    ------
    UserError
        It cannot be written.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}): name another file with {option}"
        ) from None
    return path


def write_files(folder: Path, files: Mapping[str, bytes], option: str = "--out") -> list[Path]:
    """Write files into a folder that is made if need be, and return them.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(folder / name, content)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error.strerror}): name another folder with {option}"
        ) from None
    return [folder / name for name in files]
