"""``focuscrawl audit``: find off-topic pages and hosts in a recording of the Web."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import click

from focuscrawl.cli import common_options
from focuscrawl.cli.common_options import ProgressBar, check_output_file, write_file
from focuscrawl.critic.critic_files import default_topic
from focuscrawl.errors import UserError
from focuscrawl.foundation.urls import host
from focuscrawl.report.audit import Audit, audit_web
from focuscrawl.report.plain_text import (
    align_columns,
    format_csv,
    one_line,
    pluralize,
    shorten_middle,
)
from focuscrawl.webs import open_web

_WIDTH = 90  # characters of a printed URL


@click.command()
@click.argument("warc", metavar="WEB")
@click.option(
    "--critic",
    required=True,
    help="Critic (page classifier) that judges the pages: a folder, a name in models/, or a "
    "Python callable (module:callable).",
)
@click.option(
    "--topic",
    help="Relevant classes of the critic, separated by commas.  [default: the topic of the "
    "critic, if the critic has a single topic]",
)
@common_options.float_option(
    "--min-relevance",
    "Pages with a relevance below this number (0 to 1) are off-topic.",
    0.5,
    max=1,
)
@common_options.top_option()
@common_options.path_option(
    "--csv", "Also write a table of all pages, least relevant first, to this CSV file."
)
@common_options.path_option("--hosts", "Also write a table of all hosts to this CSV file.")
@common_options.processes_option("Number of processes that parse and judge pages.")
def audit(
    *,
    warc: str,
    critic: str,
    topic: str | None,
    min_relevance: float,
    top: int,
    csv: Path | None,
    hosts: Path | None,
    processes: int,
) -> None:
    """List the off-topic pages of a recording, and the hosts with the most off-topic pages.

    WEB is a WARC file, a WACZ file or an index of WARC files. The command judges the HTML pages of
    the recording with a critic. The command does not change the recording.

    \b
    focuscrawl audit collection.warc.gz --critic models/cycling --csv pages.csv
    """
    check_output_file(csv, "--csv")
    check_output_file(hosts, "--hosts")
    topics = default_topic(critic, "add --topic TOPIC") if topic is None else topic
    opened = open_web(warc)
    with closing(ProgressBar("Judging", "URLs")) as progress:
        found = audit_web(
            opened,
            critic,
            topics,
            min_relevance=min_relevance,
            processes=processes,
            progress=progress,
        )
    if not found.pages:
        raise UserError(f"{warc} contains no HTML page: name another recording")
    click.echo("\n".join(_describe(found, opened.name, top)))
    written = []
    if csv is not None:
        rows: list[tuple[object, ...]] = [("url", "host", "relevance", "title")]
        rows += ((p.url, host(p.url), f"{p.relevance:.6g}", p.title) for p in found.pages)
        written.append(_write_table(csv, rows, "--csv"))
    if hosts is not None:
        rows = [("host", "pages", "off_topic", "relevance")]
        rows += ((h.host, h.pages, h.off_topic, f"{h.relevance:.6g}") for h in found.hosts())
        written.append(_write_table(hosts, rows, "--hosts"))
    if written:
        click.echo("\nwrote " + ", ".join(map(str, written)))


def _describe(found: Audit, name: str, top: int) -> list[str]:
    hosts, off_topic = found.hosts(), found.off_topic
    lines = [
        f"{one_line(name)}: {pluralize(len(found.pages), 'page')} on "
        f"{pluralize(len(hosts), 'host')}, of which {len(off_topic):,} "
        f"({len(off_topic) / len(found.pages):.0%}) are off-topic (relevance below "
        f"{found.min_relevance:g})"
    ]
    if found.skipped:
        reasons = (f"{n:,} {reason}" for reason, n in found.skipped.most_common())
        lines.append(f"Not judged: {', '.join(reasons)}")
    if not off_topic:
        return lines
    rows = [["off-topic", "pages", "relevance", "host"]]
    rows += [
        [f"{each.off_topic:,}", f"{each.pages:,}", f"{each.relevance:.2f}", each.host]
        for each in hosts[:top]
        if each.off_topic
    ]
    lines += ["", "Hosts with the most off-topic pages, and their mean relevance"]
    lines += align_columns(rows, left={3})
    rows = [["relevance", "least relevant pages"]]
    rows += [
        [f"{page.relevance:.2f}", shorten_middle(one_line(page.url), _WIDTH)]
        for page in off_topic[:top]
    ]
    return [*lines, "", *align_columns(rows, left={1})]


def _write_table(path: Path, rows: Iterable[Iterable[object]], option: str) -> Path:
    return write_file(path, format_csv(rows).encode("utf-8", "replace"), option)
