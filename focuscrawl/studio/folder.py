"""The folder that a studio serves, and what lies in it: topics, critics, crawls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.crawl import CrawlFolder
from focuscrawl.critic.files import FORMAT
from focuscrawl.errors import UserError
from focuscrawl.foundation.model_folder import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 3  # folders below the one that is served
_TOML = ".toml"


class StudioFolder:
    """Finds what is in a folder, and lets nobody out of it.

    Symbolic links are not followed, hidden folders are not looked into. What is found is called
    by its path from the folder, with ``/``.

    Parameters
    ----------
    root : the folder

    Raises
    ------
    UserError
        There is no such folder.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UserError(f"{root} is no folder: name one that is there, or make it")
        self.root = root.resolve()

    def crawl(self, name: str) -> Path:
        """Return the folder of the crawl called so; UserError if it is not one in here."""
        path = self._inside(name)
        if path is None or not CrawlFolder(path).exists:
            raise UserError(f"no crawl {name!r:.200} in {self.root}: see the list of crawls")
        return path

    def name_of(self, path: Path) -> str:
        """Return what `path`, which is in here, is called."""
        return path.relative_to(self.root).as_posix()

    def crawls(self) -> list[Path]:
        """Return the folders of crawls."""
        return [path for path in self._folders() if CrawlFolder(path).exists]

    def critics(self) -> list[Path]:
        """Return the folders of critics, sound or not."""
        return [path for path in self._folders() if FORMAT.is_in(path)]

    def toml_files(self) -> list[Path]:
        """Return the files that may define a topic."""
        return [
            Path(entry.path)
            for folder in self._folders()
            for entry in _entries(folder)
            if entry.name.endswith(_TOML) and entry.is_file(follow_symlinks=False)
        ]

    def _inside(self, name: str) -> Path | None:
        """Return what a path from the root leads to, links resolved; None if not in here."""
        try:
            path = (self.root / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            return None
        return path if path.is_relative_to(self.root) else None

    def _folders(self) -> Iterator[Path]:
        """Yield the root and the folders below it; those in a crawl or a model are its own."""
        waiting = [(self.root, 0)]
        while waiting:
            folder, depth = waiting.pop()
            yield folder
            if depth == _DEEPEST or CrawlFolder(folder).exists or (folder / MANIFEST).exists():
                continue
            below = [
                Path(entry.path)
                for entry in _entries(folder)
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]
            waiting += [(path, depth + 1) for path in reversed(below)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder by name; nothing of one that may not be read."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []
