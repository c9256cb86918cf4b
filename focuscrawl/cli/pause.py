"""``focuscrawl pause``, ``resume``, ``extend``, ``stop``: ask something of a crawl that runs."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import options
from focuscrawl.crawl.remote_control import Command
from focuscrawl.errors import UserError
from focuscrawl.report.crawl_control import controlled
from focuscrawl.report.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from focuscrawl.report.crawl_control import ControlledCrawl

_EVERY = 0.2  # seconds between two looks

_crawl = click.argument("crawl", metavar="CRAWL")
_wait = options.seconds("--wait", "How long to wait until it has happened.", 60.0)


@click.command()
@_crawl
@_wait
def pause(crawl: str, wait: float) -> None:
    """Let a crawl fetch nothing more until it is resumed.

    CRAWL is the folder of a crawl. What is under way is finished. A crawl that is started while
    it is paused waits, too.
    """
    asked = controlled(crawl)
    asked.ask(Command.PAUSE)
    if not asked.in_use:
        click.echo(f"{asked.name} is not running; it will wait when it does")
        return
    _await(asked, wait, "paused", lambda: asked.status().paused)


@click.command()
@_crawl
@_wait
def resume(crawl: str, wait: float) -> None:
    """Let a paused crawl go on. One that has ended is gone on with by `scrapy crawl`.

    CRAWL is as for `focuscrawl pause`.
    """
    asked = controlled(crawl)
    if asked.wanted is not Command.PAUSE:
        raise UserError(f"{asked.name} is not paused: nothing to resume")
    asked.ask(Command.RUN)
    if not asked.in_use:
        click.echo(f"{asked.name} is not running; it will not wait when it does")
        return
    _await(asked, wait, "resumed", lambda: not asked.status().paused)


@click.command()
@_crawl
@_wait
def stop(crawl: str, wait: float) -> None:
    """End a crawl: what is under way is finished, everything is kept for the next run.

    CRAWL is as for `focuscrawl pause`.
    """
    asked = controlled(crawl)
    if not asked.in_use:
        raise UserError(f"nobody crawls in {asked.name}: nothing to stop")
    asked.ask(Command.STOP)
    _await(asked, wait, "stopped", lambda: not asked.in_use)


@click.command()
@_crawl
@click.argument("budget", type=click.IntRange(min=0))
@_wait
def extend(crawl: str, budget: int, wait: float) -> None:
    """Give a crawl that runs another BUDGET: fetches in all, 0 for no limit.

    One that has ended goes on by the command that began it, with -a budget=BUDGET.
    """
    asked = controlled(crawl)
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
    _await(asked, wait, "extended", lambda: not asked.extending)


def _await(asked: ControlledCrawl, wait: float, what: str, done: Callable[[], bool]) -> None:
    """Wait until the crawl has done it; it may also end for a reason of its own."""
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
