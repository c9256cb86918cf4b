"""``focuscrawl distill``: the hubs and authorities of a crawl."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from focuscrawl.distiller import RULES
from focuscrawl.errors import UserError
from focuscrawl.report.prestige import Distillation
from focuscrawl.report.prestige_text import page, scored, text
from focuscrawl.report.stores import open_store


@click.command()
@click.argument("crawl_dir", metavar="CRAWL_DIR")
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of each list."
)
@click.option(
    "--sites",
    type=click.Choice(RULES),
    help="Links within a site do not count: within a host, within a registered domain; with none "
    "they do.  [default: host; none if every link stays on its host]",
)
@click.option(
    "--csv",
    type=click.Path(path_type=Path),
    help="Also write all pages with a score to this file.",
)
@click.option(
    "--html", type=click.Path(path_type=Path), help="Also write the lists as a page of their own."
)
def distill(
    crawl_dir: str, top: int, sites: str | None, csv: Path | None, html: Path | None
) -> None:
    """List the hubs and authorities of a crawl; works while it runs.

    Hubs link to relevant pages, authorities are what hubs link to. Then the sites that are
    densest with relevant pages.
    """
    with closing(open_store(crawl_dir)) as store:
        found = Distillation.of(store, sites)
    click.echo(text(found, top))
    written = []
    if csv is not None:
        written.append(_write(csv, scored(found).to_csv(index=False, lineterminator="\n"), "csv"))
    if html is not None:
        written.append(_write(html, page(found, top), "html"))
    if written:
        click.echo("\nwrote " + ", ".join(written))


def _write(path: Path, content: str, option: str) -> str:
    try:
        # a stranger's title may hold half a character
        path.write_bytes(content.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}): name another file with --{option}"
        ) from None
    return str(path)
