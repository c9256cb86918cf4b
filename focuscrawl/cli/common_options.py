"""Options, output files, progress bars and crawls in child processes, for several commands."""

from __future__ import annotations

import math
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from tqdm import tqdm

from focuscrawl.errors import UserError
from focuscrawl.foundation.files import reporting_write_errors, write_atomically
from focuscrawl.foundation.model_folder import MANIFEST
from focuscrawl.foundation.processes import start_python
from focuscrawl.foundation.user_input import Progress, is_sqlite_file
from focuscrawl.store.history import History

if TYPE_CHECKING:
    from focuscrawl.store import CrawlStore

#: click command, or the function that click turns into a command
Decorated = TypeVar("Decorated", bound="Callable[..., Any] | click.Command")

#: click type of a file or folder, converted to `pathlib.Path`
PATH = click.Path(path_type=Path)

CRAWL_DIR = click.argument("crawl_dir", metavar="CRAWL_DIR")
CRAWL_DIRS = click.argument("crawl_dirs", metavar="CRAWL_DIR...", nargs=-1, required=True)
SETTINGS = click.option(
    "-s",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Scrapy setting of the crawl, such as DOWNLOAD_DELAY=2; repeatable.",
)
DEFINITION = click.argument("definition", metavar="TOPIC.toml", type=PATH)
STUDY = click.argument("study_file", metavar="STUDY.toml", type=PATH)
RESULTS = click.argument("folder", metavar="DIR", type=PATH)
BOOKMARKS = click.option(
    "--bookmarks",
    type=PATH,
    metavar="FILE",
    help="File of browser bookmarks (bookmarks.html) of pages on the topic.",
)
BOOKMARK_FOLDER = click.option(
    "--folder",
    metavar="NAME",
    help="With --bookmarks: use only the bookmarks in the bookmark folder NAME.",
)
WORDS = click.option(
    "--words", metavar="PHRASES", help="Phrases that describe the topic, separated by commas."
)
DESCRIPTION = click.option(
    "--description",
    metavar="TEXT",
    help="Description of the topic: one paragraph, or a text file that contains the paragraph.",
)
NAME = click.option(
    "--name",
    metavar="CLASS",
    help="Name of the class that the critic predicts for relevant pages.  [default: /good]",
)
LANGUAGE = click.option(
    "--language",
    metavar="CODES",
    help="Export only pages in these languages: language codes separated by commas, such as "
    "en,de.  [default: all languages]",
)
CRITIC_OUT = click.option(
    "--out",
    metavar="FOLDER",
    required=True,
    help="Folder in which the command saves the critic, such as models/NAME.",
)
EXAMPLES_WEB = (
    "Recording that contains the pages: a .warc, .warc.gz or .wacz file, an index of WARC files, "
    "or `demo` (a synthetic web)."
)
SEEDS_UNREACHABLE = 3  #: exit code of a crawl that could fetch none of its start pages


def path_option(
    name: str, text: str, metavar: str = "FILE", **options: Any
) -> Callable[[Decorated], Decorated]:
    """Return a click option whose value is a path; `options` are passed to `click.option`."""
    return click.option(name, type=PATH, metavar=metavar, help=text, **options)


def out_option(text: str, metavar: str = "PATH") -> Callable[[Decorated], Decorated]:
    """Return the required click option ``--out``."""
    return path_option("--out", text, metavar, required=True)


def web_option(text: str) -> Callable[[Decorated], Decorated]:
    """Return the click option ``--web``; `text` ends the sentence about the recording."""
    return click.option("--web", help=f"Recording (WARC file or index) {text}")


def urls_option(name: str, pages: str) -> Callable[[Decorated], Decorated]:
    """Return a repeatable click option that takes URLs or a file of URLs."""
    text = f"{pages}: URLs or a file of URLs; repeatable."
    return click.option(name, multiple=True, metavar="URLS|FILE", help=text)


def integer_option(
    name: str, text: str, default: int, *, least: int = 1, most: int | None = None
) -> Callable[[Decorated], Decorated]:
    """Return a click option that takes an integer from `least` to `most`."""
    kind = click.IntRange(least, most)
    return click.option(
        name, default=default, show_default=True, type=kind, metavar="N", help=text
    )


class FiniteFloat(click.FloatRange):
    """Click type of a finite number within a range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert the value of an option to a number, or report a usage error."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def float_option(
    name: str, text: str, default: float, *, metavar: str = "NUMBER", **limits: Any
) -> Callable[[Decorated], Decorated]:
    """Return a click option for a number of at least 0; `limits` are those of `FiniteFloat`."""
    kind = FiniteFloat(0, **limits)
    return click.option(
        name, default=default, show_default=True, type=kind, metavar=metavar, help=text
    )


def seconds_option(
    name: str, text: str, default: float, *, least: float = 0.0
) -> Callable[[Decorated], Decorated]:
    """Return a click option that takes a duration in seconds."""
    shown: dict[str, Any] = {"default": default, "show_default": True, "metavar": "SECONDS"}
    return click.option(name, type=FiniteFloat(least), help=text, **shown)


def top_option(
    text: str = "Maximum number of rows in each list that the command prints.",
) -> Callable[[Decorated], Decorated]:
    """Return the click option ``--top``, the number of rows that a command prints."""
    return integer_option("--top", text, 10)


def random_state_option() -> Callable[[Decorated], Decorated]:
    """Return the click option ``--random-state``, the seed of all random choices of a command."""
    return click.option(
        "--random-state",
        default=0,
        show_default=True,
        type=click.IntRange(0, 2**32 - 1),
        metavar="N",
        help="Seed of the random number generator.",
    )


def processes_option(text: str) -> Callable[[Decorated], Decorated]:
    """Return the click option ``--processes``, by default the number of processor cores."""
    return click.option(
        "--processes",
        default=len(os.sched_getaffinity(0)),
        show_default="number of cores",
        type=click.IntRange(min=1),
        metavar="N",
        help=text,
    )


def check_output_folder(folder: Path) -> None:
    """Raise `UserError` if the folder given with ``--out`` cannot be created or written."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"{existing} is a file, not a folder: name another folder with --out")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(
            f"Folder {existing} cannot be written (no permission): name another folder with --out"
        )


def check_output_file(path: Path | None, option: str) -> None:
    """Raise `UserError` if the output file given with `option` would overwrite an input file.

    Input files are the files given with other arguments, the stores (databases) of crawls and the
    manifests of models.
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
                raise UserError(
                    f"{path} is an input file of this command: name another file with {option}"
                )
    if is_sqlite_file(path) or (path.name == MANIFEST and path.exists()):
        raise UserError(f"{path} belongs to a crawl or a model: name another file with {option}")


def write_file(path: Path, content: bytes, option: str) -> Path:
    """Write the output file that the user gave with `option`; return the path of the file."""
    with reporting_write_errors(path, f"name another file with {option}"):
        path.write_bytes(content)
    return path


def write_files(folder: Path, files: Mapping[str, bytes], option: str = "--out") -> list[Path]:
    """Write several files into a folder, and create it if missing; return the files' paths."""
    with reporting_write_errors(folder, f"name another folder with {option}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(folder / name, content)
    return [folder / name for name in files]


class ProgressBar(Progress):
    """Progress bar that counts pages; without a terminal, prints a line every 30 seconds.

    Parameters
    ----------
    interval : float
        Seconds between two lines.
    """

    def __init__(self, title: str, unit: str = "pages", *, interval: float = 30.0) -> None:
        self._title = title
        self._unit = unit
        self._interval = interval
        self._bar: tqdm[NoReturn] | None = None
        self._done = self._total = 0
        self._printed_at = 0.0

    def start(self, pages: int) -> None:
        """Show the progress bar, with the total number of pages."""
        self._bar = tqdm(total=pages, desc=self._title, unit=f" {self._unit}", disable=None)
        self._done, self._total, self._printed_at = 0, pages, time.monotonic()
        if self._bar.disable:
            click.echo(f"{self._title}: {pages} {self._unit}", err=True)

    def advance(self, pages: int = 1) -> None:
        """Advance the progress bar by the number of processed pages."""
        if self._bar is None:
            return
        self._bar.update(pages)
        self._done += pages
        if self._bar.disable and time.monotonic() >= self._printed_at + self._interval:
            click.echo(f"{self._title}: {self._done} of {self._total} {self._unit}", err=True)
            self._printed_at = time.monotonic()

    def close(self) -> None:
        """Stop updating the bar."""
        if self._bar is not None:
            self._bar.close()


def command_line(*, without: str = "", **changed: object) -> str:
    """Return the running command with the options that differ from their defaults.

    Parameters
    ----------
    without : str
        Name of a parameter to leave out.
    **changed : object
        Other values of parameters.
    """
    context = click.get_current_context()
    words = ["focuscrawl", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        value = changed.get(name, context.params.get(name))
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            words += map(str, values)
        elif value is True and name != without:
            words.append(parameter.opts[0])
        elif value is not None and value is not True and value != parameter.get_default(context):
            for each in values:
                words += [parameter.opts[0], str(each)]
    return shlex.join(words)


def history_progress_bar(store: CrawlStore, title: str) -> tqdm[NoReturn]:
    """Return a progress bar that advances by one step for each fetch of a crawl."""
    return tqdm(total=History(store).n_fetches(), desc=title, unit=" pages", disable=None)


def run_crawl(
    arguments: Mapping[str, str | None],
    settings: Iterable[str],
    *,
    allow_unreachable_seeds: bool = False,
) -> None:
    """Run ``focuscrawl crawl`` in a child process; exit with the crawl's exit code if it fails.

    After Ctrl-C or SIGTERM the crawl stops cleanly, and the function returns. If Ctrl-C ends the
    crawl before its start, the function raises `KeyboardInterrupt`.

    Spider arguments with the value None are not passed; settings have the form ``NAME=VALUE``.
    With `allow_unreachable_seeds`, the function returns normally even if no start page could be
    fetched.
    """
    command = ["-m", "focuscrawl", "crawl"]
    for name, value in arguments.items():
        if value is not None:
            command += ["-a", f"{name}={value}"]
    for setting in settings:
        command += ["-s", setting]
    interrupted = False
    with start_python(command) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        while process.poll() is None:
            try:
                process.wait()
            except KeyboardInterrupt:  # the terminal interrupts the crawl as well
                interrupted = True
    code = process.returncode
    if code and not (allow_unreachable_seeds and code == SEEDS_UNREACHABLE):
        if interrupted:
            raise KeyboardInterrupt
        raise SystemExit(code if code > 0 else 1)
