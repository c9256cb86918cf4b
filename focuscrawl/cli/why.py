"""``focuscrawl why``: why a URL was fetched, or waits."""

from __future__ import annotations

from contextlib import closing

import click

from focuscrawl.cli.options import CRAWL_DIR
from focuscrawl.report.stores import open_store
from focuscrawl.report.why import Explanation


@click.command()
@CRAWL_DIR
@click.argument("url", metavar="URL")
def why(crawl_dir: str, url: str) -> None:
    """Say why a URL was fetched, waits, or was left out.

    Shows its place and its score, the links that lead there with the scores they had when their
    pages were read, the path from the seed, and what the apprentice counts for and against it.
    """
    with closing(open_store(crawl_dir)) as store:
        click.echo(Explanation.of(store, url).text())
