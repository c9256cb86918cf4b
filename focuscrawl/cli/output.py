"""Files that commands write where the user says."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.errors import UserError
from focuscrawl.foundation.drafts import write_whole
from focuscrawl.foundation.input_files import is_store
from focuscrawl.foundation.model_folder import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Mapping


def check_folder(folder: Path, option: str = "--out") -> None:
    """Raise `UserError` if a folder that the user has named with `option` cannot be written."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "it may not be written" if there.is_dir() else "it is a file"
        raise UserError(f"{there}: {why}; name another folder with {option}")


def check_file(path: Path, option: str) -> None:
    """Refuse what a user has named with `option` for a file if that is an input of the command.

    Raises
    ------
    UserError
        It is named in another argument, or a file of a crawl or a model.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if option in parameter.opts or not isinstance(value, str | Path):
            continue
        with suppress(OSError, ValueError):
            if Path(value).samefile(path):
                raise UserError(f"{path} is what is read: name another file with {option}")
    if is_store(path) or (path.name == MANIFEST and path.exists()):
        raise UserError(f"{path} is part of a crawl or a model: name another file with {option}")


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
