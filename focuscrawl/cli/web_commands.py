"""``focuscrawl web``: inspect recordings (saved pages) and write archive indexes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from focuscrawl.cli import common_options
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host, parse_url
from focuscrawl.report.plain_text import one_line, pluralize, printable
from focuscrawl.webs import RecordedWeb, Web, open_web
from focuscrawl.webs.capture_index import write_index

_HOSTS_SHOWN = 10


@click.group()
def web() -> None:
    """Inspect recordings of web pages: WARC files, WACZ files, or indexes of WARC files."""


@web.command()
@click.argument("warc", metavar="WEB")
@click.option(
    "--all-hosts", is_flag=True, help="List all hosts, not only the ten hosts with the most pages."
)
def info(warc: str, all_hosts: bool) -> None:
    """Print how many pages and hosts a recording contains.

    The command also prints how often each HTTP status occurs, and whether the recording is
    truncated.
    """
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
    """Print the URLs of a recording, in the order of the recording."""
    for url in open_web(warc).urls():
        click.echo(url)


@web.command()
@click.argument("warc", metavar="WEB")
@click.argument("url")
@click.option(
    "--head",
    is_flag=True,
    help="Print the HTTP status and the headers of the response instead of the body.",
)
def get(warc: str, url: str, head: bool) -> None:
    """Print the recorded response body of URL, byte for byte.

    On a terminal, the command prints the body as text, without control characters.
    """
    opened = open_web(warc)
    answer = opened.fetch(_resolve(opened, warc, url))
    if answer is None or answer.failure:
        reason = f": {one_line(answer.failure)}" if answer is not None else ""
        raise UserError(f"{warc} has no response for {url}{reason}")
    if head:
        lines = [f"{answer.status} {answer.url}", *map(": ".join, answer.headers)]
        click.echo("\n".join(map(one_line, lines)))
    elif answer.too_large:
        raise UserError(
            f"the body of {url} exceeds the size limit of crawls: read it from {warc} with a "
            "WARC tool"
        )
    elif sys.stdout.isatty():
        click.echo(printable(answer.body.decode("utf-8", "replace")))
    else:
        click.echo(answer.body, nl=False)


@web.command()
@click.argument("archives", metavar="FILES", nargs=-1, required=True, type=common_options.PATH)
@common_options.out_option(
    "Index file to write: a .cdxj file, or a .parquet file with the columns of Common Crawl's "
    "index.",
    "FILE",
)
@common_options.path_option(
    "--base",
    "Folder to which the names of the WARC files in the index are relative.  [default: the "
    "folder of the index]",
    metavar="FOLDER",
)
def index(archives: tuple[Path, ...], out: Path, base: Path | None) -> None:
    """Write an index of WARC files.

    With the index, a crawl can read all the WARC files as one recording.

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
        click.echo(f"file complete, {pluralize(recorded.records, 'record')}")
    else:
        click.echo(
            f"file truncated at byte {recorded.truncated_at:,}, after "
            f"{pluralize(recorded.records, 'complete record')}"
        )
    if recorded.damaged:
        click.echo(f"{pluralize(recorded.damaged, 'unreadable section')} skipped")


def _resolve(opened: Web, warc: str, url: str) -> str:
    (resolved,) = opened.resolve([parse_url(url)])
    if resolved is None:
        raise UserError(f"{url} is not in {warc}: list its URLs with `focuscrawl web urls {warc}`")
    return resolved
