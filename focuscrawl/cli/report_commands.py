"""``focuscrawl report`` and ``focuscrawl distill``: summaries, curves, hubs and authorities."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import click
import pandas as pd

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import check_output_file, write_file, write_files
from focuscrawl.distiller import SITE_RULES
from focuscrawl.foundation.files import refuse_link
from focuscrawl.report import comparison, html_report
from focuscrawl.report.figures import (
    describe_learning,
    learning_curves,
    learning_figure,
    loss_figure,
    png,
)
from focuscrawl.report.measures import harvest_rate, load_pages, loss_rate
from focuscrawl.report.outcomes import milestones
from focuscrawl.report.plain_text import escape_csv_table
from focuscrawl.report.prestige import Distillation, format_lists, render_page, scored_pages
from focuscrawl.report.status import open_store
from focuscrawl.report.summary import Summary


@click.command()
@common_options.CRAWL_DIRS
@common_options.path_option(
    "--out",
    "Folder for the report.  [default: CRAWL_DIR/report; for several crawls: ./report]",
    metavar="FOLDER",
)
@common_options.path_option(
    "--csv", "Also write a table with one row for each fetch to this CSV file."
)
def report(crawl_dirs: tuple[str, ...], out: Path | None, csv: Path | None) -> None:
    """Summarise finished or running crawls, and plot the share of off-topic pages of each crawl.

    The command writes the file report.html, which contains all figures. The command also writes
    the figure of the off-topic pages to the file loss.png.

    If you give several crawls, the report compares each of the other crawls with the first crawl.
    For several crawls with the same topic and strategy, the command also writes learning.png, a
    figure of the progress from crawl to crawl. Give the crawls in the order in which the crawls
    ran.
    """
    check_output_file(csv, "--csv")
    folders = list({Path(name).resolve(): name for name in crawl_dirs}.values())
    with ExitStack() as opened:
        stores = [opened.enter_context(closing(open_store(folder))) for folder in folders]
        summaries = [Summary.of(store) for store in stores]
        crawls = [load_pages(store) for store in stores]
        labels = comparison.crawl_labels(summaries)
        compared = comparison.compare(summaries, crawls)
        for summary in summaries:
            click.echo(f"{summary.text()}\n")
        if len(stores) > 1:
            click.echo(f"{comparison.format_comparison(compared)}\n")
            if (sentence := comparison.describe_results(summaries, crawls)) is not None:
                click.echo(f"{sentence}\n")
        pages = dict(zip(labels, crawls, strict=True))
        events = dict(zip(labels, map(milestones, stores), strict=True))
        curves = {"loss.png": png(loss_figure(pages, events))}
        if comparison.have_same_topic_and_strategy(summaries):
            learning = learning_curves(pages, min(map(len, crawls)))
            click.echo("\n".join([*describe_learning(learning), ""]))
            curves["learning.png"] = png(learning_figure(learning))
        sections = [
            html_report.crawl_section(label, store, summary, frame, number)
            for number, (label, store, summary, frame) in enumerate(
                zip(labels, stores, summaries, crawls, strict=True)
            )
        ]
    text = html_report.render_report(
        sections, compared, [(name[:-4], image) for name, image in curves.items()]
    )
    if out is None:
        out = Path(folders[0]) / "report" if len(folders) == 1 else Path("report")
        refuse_link(out)
    written = write_files(out, {**curves, "report.html": text.encode()})
    if csv is not None:
        homes = [summary.folder for summary in summaries]
        written.append(_write_csv(csv, dict(zip(homes, crawls, strict=True))))
    click.echo("wrote " + ", ".join(map(str, written)))


def _write_csv(path: Path, crawls: Mapping[str, pd.DataFrame]) -> Path:
    frames = [
        pages.assign(crawl=name, harvest_rate=harvest_rate(pages), loss_rate=loss_rate(pages))
        for name, pages in crawls.items()
    ]
    table = pd.concat(frames).reset_index()
    first = ["crawl", "seq", "url", "status", "relevance", "harvest_rate", "loss_rate"]
    table = escape_csv_table(table)[[*first, *table.columns.difference(first, sort=False)]]
    return write_file(path, table.to_csv(index=False).encode("utf-8", "replace"), "--csv")


@click.command()
@common_options.CRAWL_DIR
@common_options.top_option()
@click.option(
    "--sites",
    type=click.Choice(SITE_RULES),
    help="Links to ignore: links within a host (host), links within a registered domain "
    "(domain), or no links (none).  [default: host, or none if the crawl found no links between "
    "hosts]",
)
@common_options.path_option(
    "--csv",
    "Also write a table of all pages that have a hub score or an authority score to "
    "this CSV file.",
)
@common_options.path_option(
    "--html", "Also write the lists of hubs, authorities and sites to this HTML file."
)
def distill(
    crawl_dir: str, top: int, sites: str | None, csv: Path | None, html: Path | None
) -> None:
    """List the hubs, the authorities and the most relevant sites of a finished or running crawl.

    Hubs are pages that link to many relevant pages. Authorities are relevant pages that many hubs
    link to.
    """
    check_output_file(csv, "--csv")
    check_output_file(html, "--html")
    with closing(open_store(crawl_dir)) as store:
        found = Distillation.of(store, sites)
    click.echo(format_lists(found, top))
    written = []
    if csv is not None:
        table = escape_csv_table(scored_pages(found)).to_csv(index=False, lineterminator="\n")
        written.append(write_file(csv, _encoded(table), "--csv"))
    if html is not None:
        written.append(write_file(html, _encoded(render_page(found, top)), "--html"))
    if written:
        click.echo("\nwrote " + ", ".join(map(str, written)))


def _encoded(content: str) -> bytes:
    return content.encode("utf-8", "replace")  # titles of pages may contain lone surrogates
