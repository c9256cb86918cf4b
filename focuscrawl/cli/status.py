"""``focuscrawl status``: how crawls are doing."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, TypeAlias

import click

from focuscrawl.cli import options
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import middle, printable
from focuscrawl.report.stores import status_of

if TYPE_CHECKING:
    from focuscrawl.report.status import Status

_Found: TypeAlias = "dict[str, Status | UserError]"

_CLEAR = "\x1b[{}F\x1b[J"  # to the beginning of so many lines above, and away with the rest


@click.command()
@click.argument("crawls", metavar="CRAWL...", nargs=-1, required=True)
@options.seconds("--every", "How often a terminal shows it anew.", 2.0, least=0.1)
@click.option("--once", is_flag=True, help="Show it once, also in a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a crawl, once.")
def status(crawls: tuple[str, ...], every: float, once: bool, as_json: bool) -> None:
    """Show rates, harvest and lag of crawls.

    CRAWL is the folder of a crawl. In a terminal until all have ended, or Ctrl-C; else once. Read
    from the crawls' stores: a crawl does not notice.
    """
    if as_json:
        for crawl in crawls:
            click.echo(json.dumps({"crawl_dir": crawl, **status_of(crawl).plain()}))
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
    """Look again; a crawl that cannot be read does not end the table of the others."""
    try:
        return status_of(crawl)
    except UserError as error:
        return error


def _ended(found: _Found) -> bool:
    return all(not isinstance(each, UserError) and each.ended for each in found.values())


def _show(found: _Found, above: int, *, live: bool) -> int:
    """Show crawls in place of so many lines above; return how many lines it were."""
    lines = []
    for crawl, each in found.items():
        text = printable(str(each)) if isinstance(each, UserError) else each.text()
        lines += [crawl, *(f"  {line}" for line in text.splitlines())]
    if live:  # a line that is broken would not be cleared
        width = shutil.get_terminal_size().columns
        lines = [middle(line, width - 1) for line in lines]
    click.echo((_CLEAR.format(above) if above else "") + "\n".join(lines))
    return len(lines)
