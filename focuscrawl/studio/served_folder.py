"""Finds topics, critics, crawls and recordings in the folder that a studio serves."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import category

from focuscrawl.collection.corpus_folder import ORDER_FILE
from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.crawl_folder import FileControl
from focuscrawl.critic.critic_files import FORMAT, find_model
from focuscrawl.errors import UserError
from focuscrawl.foundation.files import read_regular, safe_join
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.foundation.urls import host, is_reserved
from focuscrawl.report.status import CurrentState
from focuscrawl.webs.synthetic.layout import DEMO_DOMAIN

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from focuscrawl.store import CrawlStore


_MAX_DEPTH = 3  # levels below the served folder
_TOML = ".toml"
_RECORDINGS = (".warc", ".warc.gz", ".wacz")
_MAX_NAMED = 5  # recordings in an error message
_MAX_NAME, _MAX_NAME_BYTES = 80, 200  # characters, bytes; suffixes are appended to a name
_PACKAGE_CRITIC = re.compile(r"models/[\w-]{1,80}", re.ASCII)
DEMO = "demo"  #: name of the demo web as a recording
_DEMO_WEB = re.compile(rf"{DEMO}(:[\d.]{{1,8}})?", re.ASCII)


class StudioFolder:
    """Finds crawls, topics, critics and recordings in the folder `root`, and nowhere else.

    The name of a crawl, topic, critic or recording is its path relative to the folder, with ``/``
    as the separator. The studio does not follow symbolic links, and skips hidden folders.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UserError(f"{root} is not a folder: create the folder, or name another")
        self.root = root.resolve()

    def crawl(self, name: str) -> Path:
        """Return the folder of a crawl, given its name in the studio."""
        path = self._find(name)
        if path is None or not CrawlFolder(path).exists:
            raise UserError(f"{self.root} has no crawl {name!r:.200}: see the list of crawls")
        return path

    def topic(self, name: str) -> Path:
        """Return the path of a topic definition, given its name in the studio."""
        path = self._find(name)
        if path is None or path.suffix != _TOML or not path.is_file():
            raise UserError(f"{self.root} has no topic {name!r:.200}: see the list of topics")
        return path

    def critic(self, name: str) -> Traversable:
        """Return the folder of a critic, which is in the studio's folder or part of focuscrawl."""
        path = self._find(name)
        if path is not None and self.is_critic(path):
            return path
        if _PACKAGE_CRITIC.fullmatch(name) and not os.path.lexists(self.root / name):
            return find_model(name)
        raise UserError(f"{self.root} has no critic {name!r:.200}: see the list of critics")

    def recording(self, name: str) -> str:
        """Return the recording with a given name as an argument of a command."""
        path = self._find(name)
        if path is not None and path.is_file():
            return f"./{self.name_of(path)}"
        if path is None and _DEMO_WEB.fullmatch(name):
            return name
        found = self.recordings()[:_MAX_NAMED]
        remedy = (
            f"use {', '.join(found)} or demo" if found else "copy a .warc file there, or use demo"
        )
        raise UserError(f"{self.root} has no recording {name!r:.200}: {remedy}")

    def recording_of(self, urls: Sequence[str], web: str) -> str | None:
        """Return the recording that contains given pages, as the argument of a command.

        Parameters
        ----------
        urls : sequence of str
            Normalised URLs of the pages.
        web : str
            Name of the recording that a person gave, or empty.

        Returns
        -------
        str or None
            The given recording, ``demo`` for pages of the demo web, or None for the live Web.

        Raises
        ------
        UserError
            The recording does not exist, or no recording is given and a page cannot be on the
            live Web.
        """
        if not web and urls and all(host(url).endswith(f".{DEMO_DOMAIN}") for url in urls):
            web = DEMO
        if web:
            return self.recording(web)
        for url in urls:
            if is_reserved(url):
                raise UserError(
                    f"{url:.200} is not on the live Web, because the host is reserved for "
                    "examples: name the recording that contains the page"
                )
        return None

    def recordings(self) -> list[str]:
        """Return the names of all recordings (saved web pages) in the studio's folder."""
        return [self.name_of(path) for path in self._files(_RECORDINGS)]

    def has_file(self, name: str) -> bool:
        """Return whether a name is the path of a file in the studio's folder."""
        path = self._find(name)
        return path is not None and path.is_file()

    def new_folder(self, name: str) -> Path:
        """Return the path of a new folder; raise `UserError` if the name is taken or invalid."""
        path = self.root / parse_name(name)
        if os.path.lexists(path):
            raise UserError(f"{path.name} exists already: choose another name")
        return path

    def safe_path(self, name: str) -> Path:
        """Return the path for a name; raise `UserError` if the path contains a symbolic link."""
        return safe_join(self.root, name)

    def name_of(self, path: Path) -> str:
        """Return the name in the studio of a file or folder, given its path."""
        return path.relative_to(self.root).as_posix()

    def crawls(self) -> list[Path]:
        """Return the folders of all crawls in the studio's folder."""
        return [path for path in self._folders() if CrawlFolder(path).exists]

    def corpora(self) -> list[str]:
        """Return the names of the folders in which `focuscrawl corpus` has written its files."""
        found = self._files(ORDER_FILE)
        return [self.name_of(path.parent) for path in found if path.name == ORDER_FILE]

    def critics(self) -> list[Path]:
        """Return the folders of all critics in the studio's folder, including damaged critics."""
        return [path for path in self._folders() if self.is_critic(path)]

    def is_critic(self, path: Path) -> bool:
        """Return whether a folder contains a critic (possibly damaged) and no symbolic links."""
        linked = path.is_symlink() or any(each.is_symlink() for each in _entries(path))
        return not linked and FORMAT.exists_in(path)

    def toml_files(self) -> list[Path]:
        """Return the TOML files in the studio's folder, which may be topic definitions."""
        return self._files(_TOML)

    def _files(self, ending: str | tuple[str, ...]) -> list[Path]:
        return [
            Path(entry.path)
            for folder in self._folders()
            for entry in _entries(folder)
            if entry.name.endswith(ending) and entry.is_file(follow_symlinks=False)
        ]

    def _find(self, name: str) -> Path | None:
        """Return an existing path; None if it does not exist or contains a link."""
        try:
            path = self.safe_path(name)
            path.lstat()
        except (OSError, UserError):
            return None
        return path

    def _folders(self) -> Iterator[Path]:
        """Yield the root and the folders below it, except folders in a crawl or a model."""
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


def parse_name(text: str) -> str:
    """Return a valid folder name, with hyphens instead of spaces; raise `UserError` if invalid."""
    name = "-".join(text.split())
    letters = all(each in "._-" or category(each)[0] in "LMN" for each in name)
    short = len(name) <= _MAX_NAME and len(name.encode("utf-8", "replace")) <= _MAX_NAME_BYTES
    if not (letters and short and name[:1] not in {"", ".", "-"}):
        raise UserError(
            f"{name!r:.80} is not a valid name: use at most {_MAX_NAME} letters, digits and "
            ". _ -, and start with a letter, digit or _"
        )
    return name


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder by name; empty if the folder cannot be read."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def read_kind_and_classes(critic: Path) -> tuple[str, list[str]]:
    """Return the kind and the classes of a critic, read from its manifest."""
    manifest = json.loads(read_regular(critic / MANIFEST))
    classes = manifest.get("classes")
    return manifest["kind"], list(map(str, classes)) if isinstance(classes, list) else []


@dataclass(frozen=True)
class NamedCrawl:
    """A crawl, with its name in the studio and its folder."""

    name: str
    path: Path

    @property
    def control(self) -> FileControl:
        """Object that pauses, resumes and stops the crawl."""
        return FileControl(self.path)

    def read_state(self, store: CrawlStore) -> CurrentState:
        """Read the state of the crawl from the opened store, in words that name no command."""
        found = CurrentState.of(store, now=datetime.now(UTC))
        words = found.state.partition("; the same command")[0]
        return replace(found, state=words.replace("stopped by `focuscrawl stop`", "stopped"))
