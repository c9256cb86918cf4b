"""Files that appear whole or not at all: written under another name first."""

from __future__ import annotations

import glob
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Give the name of a draft, which takes the place of `path` if nothing goes wrong.

    Nobody can know the name before: no link waits there to be followed, and no journal to be
    rolled back. A link at `path` is replaced, and what it leads to stays as it is.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    try:
        yield draft
        if draft.is_file():  # a power cut must not leave the new name and no content
            with draft.open("rb") as written:
                os.fsync(written.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all; a text as UTF-8."""
    with draft_of(path) as draft:
        draft.write_bytes(content if isinstance(content, bytes) else content.encode())


def discard_drafts(path: Path) -> None:
    """Remove the drafts of processes that were killed; while no other can write one."""
    for left_behind in path.parent.glob(f".{glob.escape(path.name)}.*.draft*"):
        if left_behind.is_symlink() or left_behind.is_file():
            left_behind.unlink()
