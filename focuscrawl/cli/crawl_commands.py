"""The commands ``focuscrawl status``, ``why``, ``pause``, ``resume``, ``extend`` and ``stop``."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
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
    from focuscrawl.crawl.crawl_folder import FileControl
    from focuscrawl.report.status import Status


_Statuses: TypeAlias = "dict[str, Status | UserError]"

_CLEAR = "\x1b[{}F\x1b[J"  # move up by a number of lines and erase everything below
_POLL_INTERVAL = 0.2  # seconds

_CRAWL = click.argument("crawl", metavar="CRAWL_DIR")
_WAIT = common_options.seconds_option(
    "--wait", "Maximum number of seconds that the command waits until the crawl reacts.", 60.0
)


@click.command()
@click.argument("crawls", metavar="CRAWL_DIR...", nargs=-1, required=True)
@common_options.seconds_option(
    "--every", "Number of seconds between two updates of the status on a terminal.", 2.0, least=0.1
)
@click.option("--once", is_flag=True, help="Print the status only once, even on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each crawl.")
def status(crawls: tuple[str, ...], every: float, once: bool, as_json: bool) -> None:
    """Show the fetch rate, the harvest rate and the delays of crawls.

    On a terminal, the command updates the status until all crawls have stopped or you press
    Ctrl-C. The command only reads the databases of the crawls, so the command does not slow the
    crawls down.
    """
    if as_json:
        for crawl in crawls:
            click.echo(json.dumps({"crawl_dir": crawl, **status_of(crawl).to_dict()}))
        return
    live = sys.stdout.isatty() and not once
    with suppress(KeyboardInterrupt) if live else nullcontext():
        statuses: _Statuses = {crawl: status_of(crawl) for crawl in crawls}
        lines = _show(statuses, 0, live=live)
        while live and not _have_all_stopped(statuses):
            time.sleep(every)
            statuses = {crawl: _status_or_error(crawl) for crawl in crawls}
            lines = _show(statuses, lines, live=live)


def _status_or_error(crawl: str) -> Status | UserError:
    # an error of one crawl must not end the display of the others
    try:
        return status_of(crawl)
    except UserError as error:
        return error


def _have_all_stopped(statuses: _Statuses) -> bool:
    return all(not isinstance(each, UserError) and each.is_stopped for each in statuses.values())


def _show(statuses: _Statuses, printed_lines: int, *, live: bool) -> int:
    """Print the statuses over the lines printed before; return the number of new lines."""
    lines = []
    for crawl, each in statuses.items():
        text = printable(str(each)) if isinstance(each, UserError) else each.text()
        lines += [crawl, *(f"  {line}" for line in text.splitlines())]
    if live:  # a wrapped line could not be erased completely
        width = shutil.get_terminal_size().columns
        lines = [shorten_middle(line, width - 1) for line in lines]
    click.echo((_CLEAR.format(printed_lines) if printed_lines else "") + "\n".join(lines))
    return len(lines)


@click.command()
@common_options.CRAWL_DIR
@click.argument("url", metavar="URL")
def why(crawl_dir: str, url: str) -> None:
    """Explain why a URL was fetched, is queued, or was skipped.

    The command prints the score of the URL, and the features that raised or lowered the score. The
    command also prints the position of the URL in the frontier (queue of URLs), and the path of
    links from a start page to the URL. The command lists the links to the URL, with the score of
    each link.
    """
    with closing(open_store(crawl_dir)) as store:
        click.echo(Explanation.of(store, url).text())


@click.command()
@_CRAWL
@_WAIT
def pause(crawl: str, wait: float) -> None:
    """Pause the crawl in CRAWL_DIR until you resume the crawl with `focuscrawl resume`.

    A paused crawl finishes the requests in progress and starts no new requests. If you restart the
    process of a paused crawl, the crawl stays paused.
    """
    control = open_control(crawl)
    control.send(Command.PAUSE)
    if not control.in_use:
        click.echo(f"{control.name} is not running; it will be paused when it starts")
        return
    _wait_for(control, wait, "paused", lambda: status_of(crawl).is_paused)


@click.command()
@_CRAWL
@_WAIT
def resume(crawl: str, wait: float) -> None:
    """Resume the paused crawl in CRAWL_DIR.

    To resume a crawl whose process has ended, repeat the command that started the crawl.
    """
    control = open_control(crawl)
    if control.command is not Command.PAUSE:
        raise UserError(f"{control.name} is not paused: nothing to resume")
    control.send(Command.RUN)
    if not control.in_use:
        click.echo(f"{control.name} is not running; it will not be paused when it starts")
        return
    _wait_for(control, wait, "resumed", lambda: not status_of(crawl).is_paused)


@click.command()
@_CRAWL
@_WAIT
def stop(crawl: str, wait: float) -> None:
    """Stop the crawl in CRAWL_DIR.

    The crawl finishes the requests in progress before it stops. To resume a stopped crawl, repeat
    the command that started the crawl.
    """
    control = open_control(crawl)
    if not control.in_use:
        raise UserError(f"no crawl is running in {control.name}: nothing to stop")
    control.send(Command.STOP)
    _wait_for(control, wait, "stopped", lambda: not control.in_use)


@click.command()
@_CRAWL
@click.argument("budget", type=click.IntRange(min=0))
@_WAIT
def extend(crawl: str, budget: int, wait: float) -> None:
    """Set the budget of the running crawl in CRAWL_DIR to a total of BUDGET fetches (0: no limit).

    To extend a stopped crawl, repeat the command that started the crawl, with -a budget=BUDGET.
    """
    control = open_control(crawl)
    name = control.name
    if not control.in_use:
        fetched = status_of(crawl).fetched
        if 0 < budget <= fetched:
            raise UserError(
                f"no crawl is running in {name}, and it has made {fetched:,} fetches already: "
                f"name a budget larger than {budget:,}"
            )
        with closing(open_store(crawl)) as store:  # a project's spider has its own arguments
            is_project = store.identity().get("spider")
        option = "-s FOCUSCRAWL_BUDGET" if is_project else "-a budget"
        raise UserError(
            f"no crawl is running in {name}: resume it with the command that started it and "
            f"{option}={budget}"
        )
    control.set_budget(budget)
    _wait_for(control, wait, "extended", lambda: control.budget is None)


def _wait_for(control: FileControl, wait: float, state: str, is_done: Callable[[], bool]) -> None:
    """Wait until the crawl has obeyed the command, or has stopped for another reason."""
    until = time.monotonic() + wait
    while not is_done() and control.in_use:
        if time.monotonic() >= until:
            raise UserError(
                f"{control.name} is not {state} after {wait:g} s; it will obey the command later: "
                f"check with `focuscrawl status {control.name}`"
            )
        time.sleep(_POLL_INTERVAL)
    status = status_of(control.name)
    click.echo(
        f"{control.name} {state if is_done() else status.state}, {status.fetched:,} fetches"
    )
