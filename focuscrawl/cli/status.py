"""``focuscrawl status``: how crawls are doing."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import click

from focuscrawl.crawl import CrawlFolder
from focuscrawl.report.opening import open_crawl
from focuscrawl.report.plain import middle
from focuscrawl.report.status import Status

_CLEAR = "\x1b[{}F\x1b[J"  # to the beginning of so many lines above, and away with the rest


@click.command()
@click.argument(
    "crawl_dirs",
    metavar="CRAWL_DIR...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often a terminal shows it anew.",
)
@click.option("--once", is_flag=True, help="Show it once, also in a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a crawl, once.")
def status(crawl_dirs: tuple[Path, ...], every: float, once: bool, as_json: bool) -> None:
    """Show workers, rates, harvest and lag of crawls.

    In a terminal until all have ended, or Ctrl-C; else once. Read from the crawls' stores: a crawl
    does not notice.
    """
    if as_json:
        for crawl_dir in crawl_dirs:
            click.echo(json.dumps({"crawl_dir": str(crawl_dir), **_status(crawl_dir).plain()}))
        return
    live = sys.stdout.isatty() and not once
    # in a terminal, Ctrl-C is how one leaves
    with suppress(KeyboardInterrupt) if live else nullcontext():
        shown = _show(crawl_dirs, 0, live=live)
        while live and shown is not None:
            time.sleep(every)
            shown = _show(crawl_dirs, shown, live=live)


def _show(crawl_dirs: tuple[Path, ...], shown: int, *, live: bool) -> int | None:
    """Show crawls in place of the last `shown` lines; return the lines, None if all have ended."""
    found = {crawl_dir: _status(crawl_dir) for crawl_dir in crawl_dirs}
    lines = [line for crawl_dir, each in found.items() for line in _lines(crawl_dir, each)]
    if live:  # a line that is broken would not be cleared
        width = shutil.get_terminal_size().columns
        lines = [middle(line, width - 1) for line in lines]
    click.echo((_CLEAR.format(shown) if shown else "") + "\n".join(lines))
    return None if all(each.ended for each in found.values()) else len(lines)


def _lines(crawl_dir: Path, found: Status) -> list[str]:
    return [str(crawl_dir), *(f"  {line}" for line in found.text().splitlines())]


def _status(crawl_dir: Path) -> Status:
    with closing(open_crawl(crawl_dir)) as store:
        return Status.of(store, running=CrawlFolder(crawl_dir).in_use)
