"""The folder that a studio serves: its topics, critics, crawls."""

from __future__ import annotations

import json
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
from focuscrawl.foundation.files import plain_below, read_regular
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.report.status import ControlledCrawl, CurrentState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from focuscrawl.store import CrawlStore


_MAX_DEPTH = 3  # levels below the folder that is served
_TOML = ".toml"
_WARC = (".warc", ".warc.gz")
_MAX_NAMED = 5  # recordings that are proposed if one is missing
_MAX_NAME, _MAX_NAME_BYTES = 80, 200  # letters, bytes: endings are appended to a name
_PACKAGE_CRITIC = re.compile(r"models/[\w-]{1,80}", re.ASCII)
_DEMO_WEB = re.compile(r"demo(:[\d.]{1,8})?", re.ASCII)


class StudioFolder:
    """Finds what is in a folder, and leads nowhere else; UserError if there is no such folder.

    Symbolic links are not followed, hidden folders are skipped. The name of what is found is its
    path from the folder, with ``/``.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UserError(f"{root} is no folder: name one that is there, or make it")
        self.root = root.resolve()

    def crawl(self, name: str) -> Path:
        """Return the folder of a crawl in here; UserError if there is none of this name."""
        path = self._find(name)
        if path is None or not CrawlFolder(path).exists:
            raise UserError(f"no crawl {name!r:.200} in {self.root}: see the list of crawls")
        return path

    def topic(self, name: str) -> Path:
        """Return the path of a definition in here; UserError if there is none of this name."""
        path = self._find(name)
        if path is None or path.suffix != _TOML or not path.is_file():
            raise UserError(f"no topic {name!r:.200} in {self.root}: see the list of topics")
        return path

    def critic(self, name: str) -> Traversable:
        """Return the folder of a critic in here or in the package; UserError if there is none."""
        path = self._find(name)
        if path is not None and self.is_critic(path):
            return path
        if _PACKAGE_CRITIC.fullmatch(name) and not os.path.lexists(self.root / name):
            return find_model(name)
        raise UserError(f"no critic {name!r:.200} in {self.root}: see the list of critics")

    def recording(self, name: str) -> str:
        """Return a recording in here as commands take it; UserError if there is none."""
        path = self._find(name)
        if path is not None and path.is_file():
            return f"./{self.name_of(path)}"
        if path is None and _DEMO_WEB.fullmatch(name):
            return name
        found = self.recordings()[:_MAX_NAMED]
        way_out = f"take {', '.join(found)}" if found else "copy a .warc file into it"
        raise UserError(f"no recording {name!r:.200} in {self.root}: {way_out}, or demo")

    def recordings(self) -> list[str]:
        """Return the names of the recordings in here."""
        return [self.name_of(path) for path in self._files(_WARC)]

    def has_file(self, name: str) -> bool:
        """Tell whether a path leads to a file in here."""
        path = self._find(name)
        return path is not None and path.is_file()

    def new_folder(self, name: str) -> Path:
        """Return the path of a new folder; UserError if its name is taken or cannot be used."""
        check_name(name)
        path = self.root / name
        if os.path.lexists(path):
            raise UserError(f"{name} is there already: take another name")
        return path

    def safe_path(self, name: str) -> Path:
        """Return a path in here, which need not exist; UserError if a link leads to it."""
        return plain_below(self.root, name)

    def name_of(self, path: Path) -> str:
        """Return the name of a path in here."""
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
        return self._files(_TOML)

    def _files(self, ending: str | tuple[str, ...]) -> list[Path]:
        return [
            Path(entry.path)
            for folder in self._folders()
            for entry in _entries(folder)
            if entry.name.endswith(ending) and entry.is_file(follow_symlinks=False)
        ]

    def _find(self, name: str) -> Path | None:
        """Return an existing path in here; None if there is none, or a link leads to it."""
        try:
            path = self.safe_path(name)
            path.lstat()
        except (OSError, UserError):
            return None
        return path

    def _folders(self) -> Iterator[Path]:
        """Yield the root and the folders below it, except those in a crawl or a model."""
        pending = [(self.root, 0)]
        while pending:
            folder, depth = pending.pop()
            yield folder
            if depth == _MAX_DEPTH or CrawlFolder(folder).exists or (folder / MANIFEST).exists():
                continue
            below = [
                Path(entry.path)
                for entry in _entries(folder)
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]
            pending += [(path, depth + 1) for path in reversed(below)]


def check_name(name: str) -> None:
    """Raise `UserError` unless this can be the name of a new folder."""
    letters = all(each in "._-" or category(each)[0] in "LMN" for each in name)
    short = len(name) <= _MAX_NAME and len(name.encode("utf-8", "replace")) <= _MAX_NAME_BYTES
    if not (letters and short and name[:1] not in {"", ".", "-"}):
        raise UserError(
            f"{name!r:.80} is no name: begin with a letter or digit, go on with these, "
            "and . _ -, 80 at most"
        )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name; nothing if it may not be read."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def read_kind_and_classes(critic: Path) -> tuple[str, list[str]]:
    """Return the kind and the classes of a critic, from its manifest."""
    manifest = json.loads(read_regular(critic / MANIFEST))
    classes = manifest.get("classes")
    return manifest["kind"], list(map(str, classes)) if isinstance(classes, list) else []


@dataclass(frozen=True)
class NamedCrawl:
    """A crawl: its name in addresses and for people, and its folder."""

    name: str
    path: Path

    @property
    def control(self) -> ControlledCrawl:
        """What pauses, resumes and stops it."""
        return ControlledCrawl(str(self.path))

    def read_state(self, store: CrawlStore) -> CurrentState:
        """Read its state from its open store."""
        return CurrentState.of(store, now=datetime.now(UTC))
