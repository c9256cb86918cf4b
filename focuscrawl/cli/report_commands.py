"""``focuscrawl report`` and ``focuscrawl distill``: what crawls achieved."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pandas as pd

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import check_output_file, write_file, write_files
from focuscrawl.distiller import RULES
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

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command()
@common_options.CRAWL_DIRS
@common_options.path_option(
    "--out",
    "Folder for the figures and the page.  [default: CRAWL_DIR/report, for several crawls "
    "./report]",
)
@common_options.path_option("--csv", "Also write one row a fetch to this file.")
def report(crawl_dirs: tuple[str, ...], out: Path | None, csv: Path | None) -> None:
    """Summarise crawls and draw their curves; works while they run.

    Writes loss.png and report.html, a page of its own with everything in it. Several crawls are
    compared: the first is the baseline. Crawls of one topic by one strategy may have learned from
    each other: give them in the order they were made, and learning.png says so.
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
            if (sentence := comparison.describe_relevant_counts(summaries, crawls)) is not None:
                click.echo(f"{sentence}\n")
        pages = dict(zip(labels, crawls, strict=True))
        told = dict(zip(labels, map(milestones, stores), strict=True))
        curves = {"loss.png": png(loss_figure(pages, told))}
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
    type=click.Choice(RULES),
    help="Links within a site do not count: within a host, within a registered domain; with none "
    "they do.  [default: host; none if every link stays on its host]",
)
@common_options.path_option("--csv", "Also write all pages with a score to this file.")
@common_options.path_option("--html", "Also write the lists as a page of their own.")
def distill(
    crawl_dir: str, top: int, sites: str | None, csv: Path | None, html: Path | None
) -> None:
    """List the hubs and authorities of a crawl; works while it runs.

    Hubs link to relevant pages, authorities are what hubs link to. Then the sites that are
    densest with relevant pages.
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
    return content.encode("utf-8", "replace")  # a stranger's title may hold half a character
