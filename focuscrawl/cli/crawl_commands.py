"""``focuscrawl status``, ``why``, ``pause``, ``resume``, ``extend``, ``stop``."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import closing, nullcontext, suppress
from typing import TYPE_CHECKING, TypeAlias

import click

from focuscrawl.cli import common_options
from focuscrawl.crawl.crawl_folder import Command
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import printable, shorten_middle
from focuscrawl.report.status import open_control, open_store, status_of
from focuscrawl.report.why import Explanation

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.report.status import ControlledCrawl, Status


_Found: TypeAlias = "dict[str, Status | UserError]"

_CLEAR = "\x1b[{}F\x1b[J"  # go up so many lines, and erase from there
_EVERY = 0.2  # seconds between two looks

_CRAWL = click.argument("crawl", metavar="CRAWL")
_WAIT = common_options.seconds("--wait", "How long to wait until it has happened.", 60.0)


@click.command()
@click.argument("crawls", metavar="CRAWL...", nargs=-1, required=True)
@common_options.seconds("--every", "How often a terminal shows it anew.", 2.0, least=0.1)
@click.option("--once", is_flag=True, help="Show it once, also in a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a crawl, once.")
def status(crawls: tuple[str, ...], every: float, once: bool, as_json: bool) -> None:
    """Show rates, harvest and lag of crawls.

    CRAWL is the folder of a crawl. In a terminal until all have ended, or Ctrl-C; else once. Read
    from the crawls' stores: a crawl does not notice.
    """
    if as_json:
        for crawl in crawls:
            click.echo(json.dumps({"crawl_dir": crawl, **status_of(crawl).to_dict()}))
        return
    live = sys.stdout.isatty() and not once
    # in a terminal, Ctrl-C is how one leaves
    with suppress(KeyboardInterrupt) if live else nullcontext():
        found: _Found = {crawl: status_of(crawl) for crawl in crawls}
        lines = _show(found, 0, live=live)
        while live and not _ended(found):
            time.sleep(every)
            found = {crawl: _try_again(crawl) for crawl in crawls}
            lines = _show(found, lines, live=live)


def _try_again(crawl: str) -> Status | UserError:
    """Return the status, or the error: the table of the other crawls continues."""
    try:
        return status_of(crawl)
    except UserError as error:
        return error


def _ended(found: _Found) -> bool:
    return all(not isinstance(each, UserError) and each.is_stopped for each in found.values())


def _show(found: _Found, above: int, *, live: bool) -> int:
    """Print the crawls in place of `above` lines; return the number of lines printed."""
    lines = []
    for crawl, each in found.items():
        text = printable(str(each)) if isinstance(each, UserError) else each.text()
        lines += [crawl, *(f"  {line}" for line in text.splitlines())]
    if live:  # of a line that wraps only a part would be erased
        width = shutil.get_terminal_size().columns
        lines = [shorten_middle(line, width - 1) for line in lines]
    click.echo((_CLEAR.format(above) if above else "") + "\n".join(lines))
    return len(lines)


@click.command()
@common_options.CRAWL_DIR
@click.argument("url", metavar="URL")
def why(crawl_dir: str, url: str) -> None:
    """Say why a URL was fetched, waits, or was left out.

    Shows its place and its score, the links that lead there with the scores they had when their
    pages were read, the path from the seed, and what the apprentice counts for and against it.
    """
    with closing(open_store(crawl_dir)) as store:
        click.echo(Explanation.of(store, url).text())


@click.command()
@_CRAWL
@_WAIT
def pause(crawl: str, wait: float) -> None:
    """Let a crawl fetch nothing more until it is resumed.

    CRAWL is the folder of a crawl. What is under way is finished. A crawl that is started while
    it is paused waits, too.
    """
    asked = open_control(crawl)
    asked.ask(Command.PAUSE)
    if not asked.in_use:
        click.echo(f"{asked.name} is not running; it will wait when it does")
        return
    _await(asked, wait, "paused", lambda: asked.status().is_paused)


@click.command()
@_CRAWL
@_WAIT
def resume(crawl: str, wait: float) -> None:
    """Let a paused crawl go on. One that has ended is gone on with by `scrapy crawl`.

    CRAWL is as for `focuscrawl pause`.
    """
    asked = open_control(crawl)
    if asked.wanted is not Command.PAUSE:
        raise UserError(f"{asked.name} is not paused: nothing to resume")
    asked.ask(Command.RUN)
    if not asked.in_use:
        click.echo(f"{asked.name} is not running; it will not wait when it does")
        return
    _await(asked, wait, "resumed", lambda: not asked.status().is_paused)


@click.command()
@_CRAWL
@_WAIT
def stop(crawl: str, wait: float) -> None:
    """End a crawl: what is under way is finished, everything is kept for the next run.

    CRAWL is as for `focuscrawl pause`.
    """
    asked = open_control(crawl)
    if not asked.in_use:
        raise UserError(f"nobody crawls in {asked.name}: nothing to stop")
    asked.ask(Command.STOP)
    _await(asked, wait, "stopped", lambda: not asked.in_use)


@click.command()
@_CRAWL
@click.argument("budget", type=click.IntRange(min=0))
@_WAIT
def extend(crawl: str, budget: int, wait: float) -> None:
    """Give a crawl that runs another BUDGET: fetches in all, 0 for no limit.

    One that has ended goes on by the command that began it, with -a budget=BUDGET.
    """
    asked = open_control(crawl)
    if not asked.in_use:
        fetched = asked.status().fetched
        with closing(open_store(crawl)) as store:  # arguments of a project's spider are its own
            said = "-s FOCUSCRAWL_BUDGET" if store.identity().get("spider") else "-a budget"
        few = f"{budget}, which is no more than the {fetched:,} fetches it has; name a larger one"
        raise UserError(
            f"nobody crawls in {asked.name}: go on with the command that began it, and "
            f"{said}={few if 0 < budget <= fetched else budget}"
        )
    asked.extend(budget)
    _await(asked, wait, "extended", lambda: not asked.is_extending)


def _await(asked: ControlledCrawl, wait: float, what: str, done: Callable[[], bool]) -> None:
    """Wait until the crawl has done it, or has ended for another reason."""
    until = time.monotonic() + wait
    while not done() and asked.in_use:
        if time.monotonic() >= until:
            raise UserError(
                f"{asked.name} is not {what} after {wait:g} s: it was asked and will be when it "
                "looks; see `focuscrawl status`"
            )
        time.sleep(_EVERY)
    status = asked.status()
    click.echo(f"{asked.name} {what if done() else status.state}, {status.fetched:,} fetches")
