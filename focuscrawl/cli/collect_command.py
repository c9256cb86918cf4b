"""``focuscrawl collect``: export the relevant pages of a crawl with their text."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

import click

from focuscrawl import collection
from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import ProgressBar
from focuscrawl.collection import ExportOptions, write_collection
from focuscrawl.collection.export_files import (
    base_name,
    check_not_empty,
    check_output,
    describe_skipped,
    write_edges,
)
from focuscrawl.foundation.user_input import LANGUAGES
from focuscrawl.page.metadata import LanguageFilter
from focuscrawl.report.plain_text import pluralize
from focuscrawl.report.status import open_store
from focuscrawl.text import EXTRACTORS

_LONGEST_CHUNK = 10_000_000  # characters


@click.command()
@common_options.CRAWL_DIR
@common_options.out_option(
    "Export file (.parquet, .jsonl, .csv or .warc.gz), or a new folder for Markdown files."
)
@common_options.float_option(
    "--min-relevance", "Lowest relevance (0 to 1) of exported pages.", 0.5, max=1
)
@click.option(
    "--language",
    metavar="CODES",
    help="Languages of exported pages, separated by commas: en,de.  [default: all languages]",
)
@click.option(
    "--extractor",
    type=click.Choice(EXTRACTORS),
    default=EXTRACTORS[0],
    show_default=True,
    help="Library that extracts the main text: trafilatura is better, resiliparse is faster.",
)
@click.option("--near-duplicates", is_flag=True, help="Also export near-duplicate pages.")
@common_options.integer_option(
    "--chunk",
    "Also split texts into chunks of at most N characters, for retrieval systems; 0: no chunks.",
    0,
    least=0,
    most=_LONGEST_CHUNK,
)
@click.option(
    "--links",
    is_flag=True,
    help="Also export links between exported pages and between their hosts, as edge lists.",
)
@click.option(
    "--web", help="Recording (WARC file or index) of pages that are missing in the crawl folder."
)
@common_options.processes_option("Number of processes that extract text.")
def collect(
    *,
    crawl_dir: str,
    out: Path,
    min_relevance: float,
    language: str | None,
    extractor: str,
    near_duplicates: bool,
    chunk: int,
    links: bool,
    web: str | None,
    processes: int,
) -> None:
    """Export the main text of a crawl's relevant pages, without duplicates, and a datasheet.

    The command reads the pages from the crawl's recording, even while the crawl is running.

    \b
    focuscrawl collect crawls/cycling --language en --out cycling.parquet
    """
    check_output(out)
    languages = () if language is None else LANGUAGES.parse("--language", language)
    LanguageFilter(languages)  # raises an error for languages that cannot be detected
    options = ExportOptions(min_relevance, languages, extractor, near_duplicates)
    with (
        closing(open_store(crawl_dir)) as store,
        closing(ProgressBar("Extracting text")) as progress,
        closing(ProgressBar("Measuring the critic")) as critic_progress,
    ):
        exported = collection.collect(
            store,
            Path(crawl_dir),
            options,
            web=web,
            processes=processes,
            progress=progress,
            critic_progress=critic_progress,
        )
        check_not_empty(exported)
        written = write_collection(exported, out, chunk=chunk, command=_command_line())
        if links:
            written += write_edges(store, exported, out.parent, base_name(out))
    if not exported.webs:
        click.echo(
            "Warning: the recording of the crawl is missing, so only pages whose text was "
            "extracted before are exported, without their robots directives. Name a recording "
            "with --web",
            err=True,
        )
    pages = pluralize(len(exported.pages), "page")
    skipped = describe_skipped(exported)
    click.echo(
        f"Exported {pages} of {exported.fetched:,} with relevance ≥ {min_relevance:g}"
        + (f"; skipped: {skipped}" if skipped else "")
    )
    click.echo("wrote " + ", ".join(map(str, written)))


def _command_line() -> str:
    """Return the command with the options that differ from their defaults, for the datasheet."""
    context = click.get_current_context()
    words = ["focuscrawl", "collect"]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif value is True:
            words.append(parameter.opts[0])
        elif value is not None and value != parameter.get_default(context):
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)
