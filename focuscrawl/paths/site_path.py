"""Training paths, and the file they are kept in: one JSON object a line."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from focuscrawl.errors import UserError
from focuscrawl.foundation.input_files import read_text
from focuscrawl.foundation.urls import normalize
from focuscrawl.paths.states import FAIL, GOAL

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class SitePath:
    """A walk over a site, from its front door on.

    Attributes
    ----------
    pages : URLs, each linked to by the one before; the first is the start of the site
    labels : one a page: a milestone, ``goal``, ``fail``, or None where nothing was said; the
        last is ``goal`` or ``fail``, the first is neither
    """

    pages: tuple[str, ...]
    labels: tuple[str | None, ...]

    @property
    def start(self) -> str:
        """The front door of the site."""
        return self.pages[0]

    @property
    def succeeds(self) -> bool:
        """Tell whether the path ends in a goal."""
        return self.labels[-1] == GOAL


def write_paths(paths: Iterable[SitePath], out: Path) -> int:
    """Write paths to a file, whole or not at all; return how many.

    Raises
    ------
    UserError
        The file cannot be written.
    """
    lines = [json.dumps({"pages": path.pages, "labels": path.labels}) + "\n" for path in paths]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
            unfinished = Path(scratch, out.name)
            unfinished.write_text("".join(lines), encoding="utf-8")
            unfinished.replace(out)
    except OSError as error:
        raise UserError(f"{out} cannot be written ({error.strerror}): name another") from None
    return len(lines)


def read_paths(source: Path) -> list[SitePath]:
    """Read a file of paths.

    Raises
    ------
    UserError
        There is no such file, or a line of it is no path; it names the line.
    """
    if not source.exists():
        raise UserError(
            f"{source} is not there: make paths with `focuscrawl paths extract` or `record`"
        )
    lines = read_text(source).splitlines()
    paths = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                paths.append(_path(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                reason = " ".join(str(error).split())
                raise UserError(f"{source}, line {number}: no path ({reason})") from None
    if not paths:
        raise UserError(f"{source} holds no path")
    return paths


def _path(found: object) -> SitePath:
    if not isinstance(found, dict):
        msg = "not an object with pages and labels"
        raise TypeError(msg)
    pages, labels = found["pages"], found["labels"]
    if not isinstance(pages, list) or not isinstance(labels, list) or len(pages) != len(labels):
        msg = "pages and labels must be lists of one length"
        raise ValueError(msg)
    if not pages:
        msg = "no page"
        raise ValueError(msg)
    urls = [normalize(url) if isinstance(url, str) else None for url in pages]
    if None in urls:
        msg = f"{pages[urls.index(None)]!r} is no http(s) URL"
        raise ValueError(msg)
    for label in labels:
        if label is not None and (not isinstance(label, str) or not label.isprintable()):
            msg = f"{label!r} is no label"
            raise ValueError(msg)
    if labels[0] in {GOAL, FAIL}:
        msg = f"its first page is where the site begins, neither {GOAL} nor {FAIL}"
        raise ValueError(msg)
    if labels[-1] not in {GOAL, FAIL}:
        msg = f"the last label must be {GOAL} or {FAIL}"
        raise ValueError(msg)
    return SitePath(tuple(map(str, urls)), tuple(labels))
