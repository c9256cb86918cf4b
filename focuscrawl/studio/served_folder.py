"""The folder that a studio serves: its topics, critics, crawls."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import category

from focuscrawl.crawl import CrawlFolder
from focuscrawl.critic.critic_files import FORMAT, find_model
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import plain_below
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.report.status import ControlledCrawl, CurrentState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from focuscrawl.store import CrawlStore


_DEEPEST = 3  # folders below the one that is served
_TOML = ".toml"
_WARC = (".warc", ".warc.gz")
_NAMED = 5  # recordings, where one is missing
_LONGEST_NAME = 80  # letters, of no more than 200 bytes: endings are added to it
_MOST_BYTES = 200
_COMES_ALONG = re.compile(r"models/[\w-]{1,80}", re.ASCII)  # with the package
_DEMO = re.compile(r"demo(:[\d.]{1,8})?", re.ASCII)


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

    def topic(self, name: str) -> Path:
        """Return the definition called so; UserError if it is not one in here."""
        path = self._inside(name)
        if path is None or path.suffix != _TOML or not path.is_file():
            raise UserError(f"no topic {name!r:.200} in {self.root}: see the list of topics")
        return path

    def critic(self, name: str) -> Traversable:
        """Return the folder of a critic in here, or of one that comes with the package.

        Raises
        ------
        UserError
            There is no such critic.
        """
        path = self._inside(name)
        if path is not None and self.is_critic(path):
            return path
        if _COMES_ALONG.fullmatch(name) and not os.path.lexists(self.root / name):
            return find_model(name)
        raise UserError(f"no critic {name!r:.200} in {self.root}: see the list of critics")

    def recording(self, name: str) -> str:
        """Return what a recorded web is called; UserError if it is not in here."""
        path = self._inside(name)
        if path is not None and path.is_file():
            return f"./{self.name_of(path)}"
        if path is None and _DEMO.fullmatch(name):
            return name
        found = self.recordings()[:_NAMED]
        way_out = f"take {', '.join(found)}" if found else "copy a .warc file into it"
        raise UserError(f"no recording {name!r:.200} in {self.root}: {way_out}, or demo")

    def recordings(self) -> list[str]:
        """Return what the recorded webs in here are called."""
        return [
            self.name_of(Path(entry.path))
            for folder in self._folders()
            for entry in _entries(folder)
            if entry.name.endswith(_WARC) and entry.is_file(follow_symlinks=False)
        ]

    def holds(self, name: str) -> bool:
        """Tell whether a path leads to a file in here."""
        path = self._inside(name)
        return path is not None and path.is_file()

    def new_folder(self, name: str) -> Path:
        """Return a folder that is not there yet.

        Raises
        ------
        UserError
            The name is none for a folder, or taken.
        """
        check_name(name)
        path = self.root / name
        if os.path.lexists(path):
            raise UserError(f"{name} is there already: take another name")
        return path

    def place(self, name: str) -> Path:
        """Return a path in here, there or not; `UserError` if a link is on the way to it."""
        return plain_below(self.root, name)

    def name_of(self, path: Path) -> str:
        """Return what `path`, which is in here, is called."""
        return path.relative_to(self.root).as_posix()

    def crawls(self) -> list[Path]:
        """Return the folders of crawls."""
        return [path for path in self._folders() if CrawlFolder(path).exists]

    def critics(self) -> list[Path]:
        """Return the folders of critics, sound or not."""
        return [path for path in self._folders() if self.is_critic(path)]

    def is_critic(self, path: Path) -> bool:
        """Tell whether a folder in here is a critic's, sound or not: no link, with none in it."""
        linked = path.is_symlink() or any(each.is_symlink() for each in _entries(path))
        return not linked and FORMAT.is_in(path)

    def toml_files(self) -> list[Path]:
        """Return the files that may define a topic."""
        return [
            Path(entry.path)
            for folder in self._folders()
            for entry in _entries(folder)
            if entry.name.endswith(_TOML) and entry.is_file(follow_symlinks=False)
        ]

    def _inside(self, name: str) -> Path | None:
        """Return what a path from the root leads to; None if nothing, or by a link."""
        try:
            path = self.place(name)
            path.lstat()
        except (OSError, UserError):
            return None
        return path

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


def check_name(name: str) -> None:
    """Raise `UserError` unless a new folder can be called so."""
    letters = all(each in "._-" or category(each)[0] in "LMN" for each in name)
    short = len(name) <= _LONGEST_NAME and len(name.encode("utf-8", "replace")) <= _MOST_BYTES
    if not (letters and short and name[:1] not in {"", ".", "-"}):
        raise UserError(
            f"{name!r:.80} is no name: begin with a letter or digit, go on with these, "
            "and . _ -, 80 at most"
        )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder by name; nothing of one that may not be read."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


@dataclass(frozen=True)
class NamedCrawl:
    """A crawl, and where it is.

    Attributes
    ----------
    name : in addresses and for people
    place : its folder
    """

    name: str
    place: Path

    @property
    def control(self) -> ControlledCrawl:
        """By which it is asked to pause, to end, ..."""
        return ControlledCrawl(str(self.place))

    def current(self, store: CrawlStore) -> CurrentState:
        """Read how it is doing from its store, which is open."""
        now = datetime.now(UTC)
        return CurrentState.of(store, now=now)
