"""Options and arguments that several commands have, each said once."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Decorated = TypeVar("Decorated", bound="Callable[..., Any] | click.Command")


class Decorator(Protocol):
    """Adds an option or argument to a command."""

    def __call__(self, command: Decorated, /) -> Decorated:
        """Return the command with it."""
        ...


#: a file or folder, as a `pathlib.Path`
PATH = click.Path(path_type=Path)

CRAWL_DIR = click.argument("crawl_dir", metavar="CRAWL_DIR")
CRAWL_DIRS = click.argument("crawl_dirs", metavar="CRAWL_DIR...", nargs=-1, required=True)
SETTINGS = click.option(
    "-s", "settings", multiple=True, metavar="NAME=VALUE", help="A Scrapy setting."
)
DEFINITION = click.argument("definition", metavar="TOPIC.toml", type=PATH)
STUDY = click.argument("study_file", metavar="STUDY.toml", type=PATH)
RESULTS = click.argument("folder", metavar="DIR", type=PATH)
BOOKMARKS = click.option(
    "--bookmarks", type=PATH, help="A browser's bookmarks.html: examples of the topic."
)
BOOKMARK_FOLDER = click.option("--folder", help="Only bookmarks in a folder of this name.")
WORDS = click.option("--words", help="Comma-separated phrases of the topic.")
DESCRIPTION = click.option(
    "--description", metavar="TEXT", help="A paragraph on the topic, or a text file of it."
)
NAME = click.option("--name", help="What the class of the topic is called.  [default: /good]")
EXAMPLES_WEB = "Where the pages are: a .warc, .warc.gz, or `demo`."


def path(name: str, text: str, **more: Any) -> Decorator:
    """Return an option that takes a file or folder."""
    return click.option(name, type=PATH, help=text, **more)


def out(text: str) -> Decorator:
    """Return ``--out`` of a command that writes nothing without it."""
    return path("--out", text, required=True)


def number(
    name: str, text: str, default: int, *, least: int = 1, most: int | None = None
) -> Decorator:
    """Return an option that takes a whole number from `least` to `most`."""
    kind = click.IntRange(least, most)
    return click.option(name, default=default, show_default=True, type=kind, help=text)


class Number(click.FloatRange):
    """A number within a range; what is no number is in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return it, or fail."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


def share(name: str, text: str, default: float, **more: Any) -> Decorator:
    """Return an option that takes a number from 0 on; `more` as for `Number`."""
    kind = Number(0, **more)
    return click.option(name, default=default, show_default=True, type=kind, help=text)


def seconds(name: str, text: str, default: float, *, least: float = 0.0) -> Decorator:
    """Return an option that takes a time."""
    kind = Number(least)
    return click.option(
        name, type=kind, default=default, show_default=True, metavar="SECONDS", help=text
    )


def top(text: str = "Rows of each list.") -> Decorator:
    """Return ``--top``: how many rows are shown."""
    return number("--top", text, 10)


def random_state() -> Decorator:
    """Return ``--random-state``, of everything that a command draws."""
    return click.option(
        "--random-state", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1)
    )


def processes(of: str) -> Decorator:
    """Return ``--processes``: how many of something at a time, as many as there are cores."""
    return click.option(
        "--processes",
        default=len(os.sched_getaffinity(0)),
        show_default="cores",
        type=click.IntRange(min=1),
        help=f"{of} at a time.",
    )
