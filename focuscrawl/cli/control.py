"""``focuscrawl pause``, ``resume``, ``stop``: ask something of a crawl that runs."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl.crawl import CrawlFolder
from focuscrawl.crawl.control import Control, Wanted
from focuscrawl.errors import UserError
from focuscrawl.report.opening import open_crawl
from focuscrawl.report.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY = 0.2  # seconds between two looks

_folder = click.argument("crawl_dir", metavar="CRAWL_DIR", type=click.Path(path_type=Path))
_wait = click.option(
    "--wait",
    type=click.FloatRange(min=0.0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until it has happened.",
)


@click.command()
@_folder
@_wait
def pause(crawl_dir: Path, wait: float) -> None:
    """Let a crawl fetch nothing more until it is resumed.

    What is under way is finished. A crawl that is started while it is paused waits, too.
    """
    folder = _crawl(crawl_dir)
    Control(folder.path).ask(Wanted.PAUSE)
    if not folder.in_use:
        click.echo(f"{folder.path} is not running; it will wait when it does")
        return
    _await(folder, wait, "paused", lambda: _status(folder).paused)


@click.command()
@_folder
@_wait
def resume(crawl_dir: Path, wait: float) -> None:
    """Let a paused crawl go on. One that has ended is gone on with by `scrapy crawl`."""
    folder = _crawl(crawl_dir)
    control = Control(folder.path)
    if control.wanted is not Wanted.PAUSE:
        raise UserError(f"{folder.path} is not paused: nothing to resume")
    control.ask(Wanted.RUN)
    if not folder.in_use:
        click.echo(f"{folder.path} is not running; it will not wait when it does")
        return
    _await(folder, wait, "resumed", lambda: not _status(folder).paused)


@click.command()
@_folder
@_wait
def stop(crawl_dir: Path, wait: float) -> None:
    """End a crawl: what is under way is finished, everything is kept for the next run."""
    folder = _crawl(crawl_dir)
    if not folder.in_use:
        raise UserError(f"nobody crawls in {folder.path}: nothing to stop")
    Control(folder.path).ask(Wanted.STOP)
    _await(folder, wait, "stopped", lambda: not folder.in_use)


def _crawl(crawl_dir: Path) -> CrawlFolder:
    open_crawl(crawl_dir).close()  # says so if there is none
    return CrawlFolder(crawl_dir)


def _status(folder: CrawlFolder) -> Status:
    with closing(open_crawl(folder.path)) as store:
        return Status.of(store, running=folder.in_use)


def _await(folder: CrawlFolder, wait: float, what: str, done: Callable[[], bool]) -> None:
    """Wait until the crawl has done it; it may also end for a reason of its own."""
    until = time.monotonic() + wait
    while not done() and folder.in_use:
        if time.monotonic() >= until:
            raise UserError(
                f"{folder.path} is not {what} after {wait:g} s: it was asked and will be when it "
                "looks; see `focuscrawl status`"
            )
        time.sleep(_EVERY)
    status = _status(folder)
    click.echo(f"{folder.path} {what if done() else status.state}, {status.fetched:,} fetches")
