"""``focuscrawl collect``: export the relevant pages of a crawl with their text."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from focuscrawl import collection
from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import ProgressBar, check_output_file, command_line
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
from focuscrawl.report.plain_text import one_line, pluralize
from focuscrawl.report.status import open_store
from focuscrawl.text import EXTRACTORS

if TYPE_CHECKING:
    from focuscrawl.collection import Collection

_LONGEST_CHUNK = 10_000_000  # characters


@click.command()
@common_options.CRAWL_DIR
@common_options.out_option(
    "Export file (.parquet, .jsonl, .csv, .warc.gz or .wacz), or a new folder for Markdown files."
)
@common_options.float_option(
    "--min-relevance",
    "Export only pages whose relevance (0 to 1) is at least this number.",
    0.5,
    max=1,
)
@common_options.LANGUAGE
@click.option(
    "--extractor",
    type=click.Choice(EXTRACTORS),
    default=EXTRACTORS[0],
    show_default=True,
    help="Library that extracts the main text of pages: trafilatura (more accurate) or "
    "resiliparse (faster).",
)
@click.option("--near-duplicates", is_flag=True, help="Also export near-duplicate pages.")
@common_options.integer_option(
    "--chunk",
    "Also write the text of each page in chunks of at most N characters, for retrieval systems; "
    "0: no chunks.",
    0,
    least=0,
    most=_LONGEST_CHUNK,
)
@click.option(
    "--links",
    is_flag=True,
    help="Also export the links between the exported pages, and the links between the hosts of "
    "the exported pages, as edge lists.",
)
@common_options.web_option(
    "from which the command reads pages that are missing in the crawl folder."
)
@common_options.processes_option(
    "Largest number of processes that extract text from pages at the same time."
)
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
    """Export the main text of the relevant pages of a crawl, without duplicate pages.

    The command also writes a datasheet, which describes the exported pages. The command reads the
    pages from the recording of the crawl. You can run the command while the crawl is running.

    \b
    focuscrawl collect crawls/cycling --language en --out cycling.parquet
    """
    check_output(out)
    check_output_file(out, "--out")
    languages = () if language is None else LANGUAGES.parse("--language", language)
    exported, written = export_crawl(
        crawl_dir,
        out,
        ExportOptions(min_relevance, languages, extractor, near_duplicates),
        chunk=chunk,
        links=links,
        web=web,
        processes=processes,
        command=command_line(),
    )
    if not exported.webs:
        click.echo(
            "Warning: the recording of the crawl is missing, so only pages whose text was "
            "extracted before are exported, without their robots directives. Name a recording "
            "with --web",
            err=True,
        )
    click.echo(f"Exported {describe_exported(exported)}")
    click.echo("wrote " + ", ".join(map(str, written)))


def export_crawl(
    crawl_dir: str,
    out: Path,
    options: ExportOptions,
    *,
    chunk: int = 0,
    links: bool = False,
    web: str | None = None,
    processes: int,
    command: str,
) -> tuple[Collection, list[Path]]:
    """Export a crawl, and show the progress; return the export and the written files.

    Parameters
    ----------
    chunk : int
        Largest number of characters of a chunk; 0: no chunks.
    links : bool
        Whether to write the links between pages and between hosts, too.
    web : str or None
        Recording with pages that the crawl did not record.
    command : str
        Command line for the datasheet.

    Raises
    ------
    UserError
        There is no page to export, or a language cannot be detected.
    """
    LanguageFilter(options.languages)  # raises an error for languages that cannot be detected
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
        written = write_collection(exported, out, chunk=chunk, command=command)
        if links:
            written += write_edges(store, exported, out.parent, base_name(out))
    warning = exported.host_warning()
    if warning is not None:
        click.echo(
            f"Warning: {one_line(warning)}. For a corpus of several sites, add start pages on "
            "other hosts",
            err=True,
        )
    return exported, written


def describe_exported(exported: Collection) -> str:
    """Return the number of exported pages, and the numbers of left-out pages by reason."""
    pages, skipped = pluralize(len(exported.pages), "page"), describe_skipped(exported)
    words = f"{pages} of {exported.fetched:,} with relevance ≥ {exported.options.min_relevance:g}"
    return f"{words}; skipped: {skipped}" if skipped else words
