"""``focuscrawl collect``: take the pages of a crawl home."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

import click

from focuscrawl import collection
from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import Bar
from focuscrawl.collection import Wanted, write_collection
from focuscrawl.collection.export_files import (
    check_out,
    check_pages,
    left_out_of,
    name_of,
    write_edges,
)
from focuscrawl.foundation.user_input import LANGUAGES
from focuscrawl.page.metadata import Languages
from focuscrawl.report.plain_text import pluralize
from focuscrawl.report.status import open_store
from focuscrawl.text import EXTRACTORS

_LONGEST = 10_000_000  # characters of a chunk


@click.command()
@common_options.CRAWL_DIR
@common_options.out(
    "The collection: a .parquet, .jsonl, .csv, .warc.gz, or a new folder of Markdown."
)
@common_options.share("--min-relevance", "Take pages with R at least so much.", 0.5, max=1)
@click.option("--language", help="Only pages in these languages, comma-separated: en,de.")
@click.option(
    "--extractor",
    type=click.Choice(EXTRACTORS),
    default=EXTRACTORS[0],
    show_default=True,
    help="What finds the main text: the better one, or the faster one.",
)
@click.option("--near-duplicates", is_flag=True, help="Keep pages that say nearly the same.")
@common_options.number(
    "--chunk",
    "Characters of a chunk for retrieval, at most; 0 for none.",
    0,
    least=0,
    most=_LONGEST,
)
@click.option("--links", is_flag=True, help="Also links between pages, and hosts, as edges.")
@click.option("--web", help="Where pages are that the crawl has not kept itself.")
@common_options.processes("Pages whose text is taken")
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
    """Take the pages on the topic home: their text, each once, with a datasheet.

    Pages are read again from what the crawl has recorded. Works while it runs.

    \b
    focuscrawl collect crawls/cycling --language en --out cycling.parquet
    """
    check_out(out)
    languages = () if language is None else LANGUAGES.read("--language", language)
    Languages(languages)  # refuses languages that cannot be detected
    wanted = Wanted(min_relevance, languages, extractor, near_duplicates)
    with (
        closing(open_store(crawl_dir)) as store,
        closing(Bar("Taking text")) as shown,
        closing(Bar("Measuring the critic")) as measuring,
    ):
        found = collection.collect(
            store,
            Path(crawl_dir),
            wanted,
            web=web,
            processes=processes,
            progress=shown,
            measuring=measuring,
        )
        check_pages(found)
        written = write_collection(found, out, chunk=chunk, command=_as_typed())
        if links:
            written += write_edges(store, found, out.parent, name_of(out))
    if not found.webs:
        click.echo(
            "the pages as they came are not there any more: only those whose text was taken "
            "before are here, and what they ask of robots is not known; --web names a recording",
            err=True,
        )
    left = left_out_of(found)
    said = f"{pluralize(len(found.pages), 'page')} of {found.fetched:,} with R ≥ {min_relevance:g}"
    click.echo(f"{said}{f'; left out: {left}' if left else ''}")
    click.echo("wrote " + ", ".join(map(str, written)))


def _as_typed() -> str:
    """Return the command, with the options that differ from their defaults."""
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
