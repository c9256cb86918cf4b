"""``focuscrawl distill``: the hubs and authorities of a crawl."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import options
from focuscrawl.cli.output import check_file, write_file
from focuscrawl.distiller import RULES
from focuscrawl.report.prestige import Distillation
from focuscrawl.report.prestige_text import page, scored, text
from focuscrawl.report.stores import open_store
from focuscrawl.report.table_cells import cells

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@options.CRAWL_DIR
@options.top()
@click.option(
    "--sites",
    type=click.Choice(RULES),
    help="Links within a site do not count: within a host, within a registered domain; with none "
    "they do.  [default: host; none if every link stays on its host]",
)
@options.path("--csv", "Also write all pages with a score to this file.")
@options.path("--html", "Also write the lists as a page of their own.")
def distill(
    crawl_dir: str, top: int, sites: str | None, csv: Path | None, html: Path | None
) -> None:
    """List the hubs and authorities of a crawl; works while it runs.

    Hubs link to relevant pages, authorities are what hubs link to. Then the sites that are
    densest with relevant pages.
    """
    for option, path in (("--csv", csv), ("--html", html)):
        if path is not None:
            check_file(path, option)
    with closing(open_store(crawl_dir)) as store:
        found = Distillation.of(store, sites)
    click.echo(text(found, top))
    written = []
    if csv is not None:
        table = cells(scored(found)).to_csv(index=False, lineterminator="\n")
        written.append(write_file(csv, _encoded(table), "--csv"))
    if html is not None:
        written.append(write_file(html, _encoded(page(found, top)), "--html"))
    if written:
        click.echo("\nwrote " + ", ".join(map(str, written)))


def _encoded(content: str) -> bytes:
    return content.encode("utf-8", "replace")  # a stranger's title may hold half a character
