"""Options, outputs and progress bars that several commands share; running a crawl."""

from __future__ import annotations

import math
import os
import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import write_atomically
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.foundation.processes import start_python
from focuscrawl.foundation.user_input import Progress, is_sqlite_file
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from focuscrawl.store import CrawlStore

#: a command, or the function that becomes one
Decorated = TypeVar("Decorated", bound="Callable[..., Any] | click.Command")

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
_UNREACHABLE = 3  # exit code of a crawl none of whose start pages could be fetched


def path(name: str, text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """Return an option that takes a file or folder."""
    return click.option(name, type=PATH, help=text, **more)


def out(text: str) -> Callable[[Decorated], Decorated]:
    """Return ``--out`` of a command that requires it."""
    return path("--out", text, required=True)


def number(
    name: str, text: str, default: int, *, least: int = 1, most: int | None = None
) -> Callable[[Decorated], Decorated]:
    """Return an option that takes a whole number from `least` to `most`."""
    kind = click.IntRange(least, most)
    return click.option(name, default=default, show_default=True, type=kind, help=text)


class Number(click.FloatRange):
    """A finite number within a range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


def share(name: str, text: str, default: float, **more: Any) -> Callable[[Decorated], Decorated]:
    """Return an option that takes a number of 0 or more; `more` is passed to `Number`."""
    kind = Number(0, **more)
    return click.option(name, default=default, show_default=True, type=kind, help=text)


def seconds(
    name: str, text: str, default: float, *, least: float = 0.0
) -> Callable[[Decorated], Decorated]:
    """Return an option that takes a time."""
    shown: dict[str, Any] = {"default": default, "show_default": True, "metavar": "SECONDS"}
    return click.option(name, type=Number(least), help=text, **shown)


def top(text: str = "Rows of each list.") -> Callable[[Decorated], Decorated]:
    """Return ``--top``, the number of rows shown."""
    return number("--top", text, 10)


def random_state() -> Callable[[Decorated], Decorated]:
    """Return ``--random-state``, the seed of every random choice of a command."""
    return click.option(
        "--random-state", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1)
    )


def processes(of: str) -> Callable[[Decorated], Decorated]:
    """Return ``--processes``: how many of something at a time; by default one for each core."""
    return click.option(
        "--processes",
        default=len(os.sched_getaffinity(0)),
        show_default="cores",
        type=click.IntRange(min=1),
        help=f"{of} at a time.",
    )


def check_folder(folder: Path) -> None:
    """Raise `UserError` if the folder that the user has named with ``--out`` cannot be written."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "it may not be written" if there.is_dir() else "it is a file"
        raise UserError(f"{there}: {why}; name another folder with --out")


def check_file(path: Path | None, option: str) -> None:
    """Raise `UserError` if a file to be written, named with `option`, is an input.

    That is one that another argument of the command names, or a file of a crawl or a model.
    """
    if path is None:
        return
    context = click.get_current_context()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if option in parameter.opts or not isinstance(value, str | Path):
            continue
        with suppress(OSError, ValueError):
            if Path(value).samefile(path):
                raise UserError(f"{path} is what is read: name another file with {option}")
    if is_sqlite_file(path) or (path.name == MANIFEST and path.exists()):
        raise UserError(f"{path} is part of a crawl or a model: name another file with {option}")


@contextmanager
def writing(path: Path, way_out: str) -> Iterator[None]:
    """Raise `UserError` if `path` cannot be written within the ``with`` block."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): {way_out}") from None


def write_file(path: Path, content: bytes, option: str) -> Path:
    """Write a file that the user has named with `option`, and return its path.

    Raises `UserError` if it cannot be written.
    """
    with writing(path, f"name another file with {option}"):
        path.write_bytes(content)
    return path


def write_files(folder: Path, files: Mapping[str, bytes], option: str = "--out") -> list[Path]:
    """Write files into a folder, which is created if it does not exist; return their paths.

    Raises `UserError` if they cannot be written.
    """
    with writing(folder, f"name another folder with {option}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(folder / name, content)
    return [folder / name for name in files]


class Bar(Progress):
    """Shows how many pages of how many are done, once it is started; close it at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bar: tqdm[NoReturn] | None = None

    def start(self, pages: int) -> None:
        """Show the bar, with the number of pages to come."""
        self._bar = tqdm(total=pages, desc=self._what, unit=" pages", disable=None)
        if self._bar.disable:
            click.echo(f"{self._what}: {pages} pages", err=True)

    def advance(self, pages: int = 1) -> None:
        """Count pages."""
        if self._bar is not None:
            self._bar.update(pages)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


def reading(store: CrawlStore, what: str) -> tqdm[NoReturn]:
    """Return a progress bar of the pages of a crawl."""
    return tqdm(total=History(store).n_fetches(), desc=what, unit=" pages", disable=None)


def crawl(
    arguments: Mapping[str, str | None], settings: Iterable[str], *, may_fail: bool = False
) -> None:
    """Run ``focuscrawl crawl``; exit with its exit code if it fails.

    After Ctrl-C or SIGTERM the crawl stops cleanly, and this returns.

    Parameters
    ----------
    arguments : of the spider; those that are None are not given
    settings : ``NAME=VALUE`` each
    may_fail : also return if no start page could be fetched
    """
    command = ["-m", "focuscrawl", "crawl"]
    for name, value in arguments.items():
        if value is not None:
            command += ["-a", f"{name}={value}"]
    for setting in settings:
        command += ["-s", setting]
    with start_python(command) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        while process.poll() is None:
            with suppress(KeyboardInterrupt):  # the terminal sends it to the crawl, too
                process.wait()
    if process.returncode and not (may_fail and process.returncode == _UNREACHABLE):
        raise SystemExit(process.returncode if process.returncode > 0 else 1)
