"""``focuscrawl web``: look into recorded webs, write the index of an archive."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from focuscrawl.cli import common_options
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host, no_url, normalize
from focuscrawl.report.plain_text import one_line, pluralize, printable
from focuscrawl.webs import RecordedWeb, Web, open_web
from focuscrawl.webs.capture_index import write_index

if TYPE_CHECKING:
    from pathlib import Path


_HOSTS_SHOWN = 10


@click.group()
def web() -> None:
    """Look into recorded webs (.warc, .warc.gz), archives (.cdxj, .parquet) and the demo."""


@web.command()
@click.argument("warc", metavar="WEB")
@click.option("--all-hosts", is_flag=True, help="List every host, not only the largest.")
def info(warc: str, all_hosts: bool) -> None:
    """Say what a web holds: pages, hosts, statuses, and whether the file is whole."""
    opened = open_web(warc)
    urls = list(opened.urls())
    hosts = Counter(map(host, urls)).most_common()
    shown = hosts if all_hosts else hosts[:_HOSTS_SHOWN]
    click.echo(f"{opened.name}: {pluralize(len(urls), 'page')} on {pluralize(len(hosts), 'host')}")
    click.echo(f"fingerprint {opened.fingerprint}")
    if isinstance(opened, RecordedWeb):
        _describe_file(opened)
    for name, pages in shown:
        click.echo(f"{pages:>9,} {name}")
    if len(shown) < len(hosts):
        rest = sum(pages for _, pages in hosts[len(shown) :])
        click.echo(f"{rest:>9,} on {pluralize(len(hosts) - len(shown), 'other host')}")


@web.command()
@click.argument("warc", metavar="WEB")
def urls(warc: str) -> None:
    """Print every URL, one a line, in the order recorded."""
    for url in open_web(warc).urls():
        click.echo(url)


@web.command()
@click.argument("warc", metavar="WEB")
@click.argument("url")
@click.option("--head", is_flag=True, help="Print the status and the header fields instead.")
def get(warc: str, url: str, head: bool) -> None:
    """Print the body that URL was answered with, byte for byte.

    A terminal is shown it as text, without what it would obey.
    """
    opened = open_web(warc)
    answer = opened.fetch(_resolve(opened, warc, url))
    if answer is None or answer.failure:
        why = f": {one_line(answer.failure)}" if answer is not None else ""
        raise UserError(f"{url} has no answer in {warc}{why}")
    if head:
        lines = [f"{answer.status} {answer.url}", *map(": ".join, answer.headers)]
        click.echo("\n".join(map(one_line, lines)))
    elif answer.too_large:
        raise UserError(f"the body of {url} is larger than a crawl takes in: get it from {warc}")
    elif sys.stdout.isatty():
        click.echo(printable(answer.body.decode("utf-8", "replace")))
    else:
        click.echo(answer.body, nl=False)


@web.command()
@click.argument("archives", metavar="FILES", nargs=-1, required=True, type=common_options.PATH)
@common_options.out_option("The index: .cdxj, or .parquet with the columns of Common Crawl.")
@common_options.path_option(
    "--base", "Folder that names of the files begin at.  [default: that of the index]"
)
def index(archives: tuple[Path, ...], out: Path, base: Path | None) -> None:
    """Write the index of WARC files, by which they are a web wherever they are.

    \b
    focuscrawl web index pages-*.warc.gz --out pages.parquet
    focuscrawl crawl -a web=pages.parquet ...
    """
    captures = write_index(archives, out, out.parent if base is None else base)
    click.echo(f"{pluralize(captures, 'capture')} of {pluralize(len(archives), 'file')} in {out}")


def _describe_file(recorded: RecordedWeb) -> None:
    statuses = Counter(recorded.statuses.tolist())
    listed = ", ".join(f"{status}: {pages:,}" for status, pages in sorted(statuses.items()))
    click.echo(f"statuses {listed}")
    if recorded.truncated_at is None:
        click.echo(f"file whole, {pluralize(recorded.records, 'record')}")
    else:
        click.echo(
            f"file cut at byte {recorded.truncated_at:,}, "
            f"{pluralize(recorded.records, 'whole record')} before it"
        )
    if recorded.damaged:
        thing = "stretch" if recorded.damaged == 1 else "stretches"
        click.echo(f"{recorded.damaged:,} unreadable {thing} left out")


def _resolve(opened: Web, warc: str, url: str) -> str:
    normalized = normalize(url)
    if normalized is None:
        raise UserError(f"{url} {no_url(url)}")
    resolved = opened.resolve([normalized])[0]
    if resolved is None:
        raise UserError(f"{url} is not in {warc}: `focuscrawl web urls {warc}` lists what is")
    return resolved
