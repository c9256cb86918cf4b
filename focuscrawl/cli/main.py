"""Entry point of the ``focuscrawl`` command."""

from __future__ import annotations

import re
from typing import Any

import click

from focuscrawl import __version__
from focuscrawl.cli.lazy_group import Command, LazyGroup
from focuscrawl.errors import UserError
from focuscrawl.report.plain_text import printable

# of a database, also where its URL was taken for a path
_CREDENTIALS = re.compile(r"\b(?!https?:)([a-z][a-z0-9+]*:)//?[^\s@:/]*:[^\s@]*@", re.IGNORECASE)

_ROOM = "focuscrawl.cli."
COMMANDS = {
    "apprentice": Command(
        f"{_ROOM}apprentice", "apprentice", "Train apprentices on crawls that are over."
    ),
    "critic": Command(f"{_ROOM}critic", "critic", "Train and check critics."),
    "distill": Command(
        f"{_ROOM}distill", "distill", "List the hubs and authorities of a crawl.", "report"
    ),
    "knowledge": Command(
        f"{_ROOM}knowledge", "knowledge", "Learn from crawls what the next ones can use."
    ),
    "lab": Command(f"{_ROOM}lab", "lab", "Compare strategies on recorded webs.", "lab"),
    "paths": Command(f"{_ROOM}paths", "paths", "Learn paths to goal pages; forage other sites."),
    "pause": Command(f"{_ROOM}pause", "pause", "Let a running crawl wait."),
    "recrawl": Command(f"{_ROOM}recrawl", "recrawl", "Crawl a topic again: what is new, changed."),
    "report": Command(
        f"{_ROOM}report", "report", "Summarise crawls and draw their curves.", "report"
    ),
    "resume": Command(f"{_ROOM}pause", "resume", "Let a paused crawl go on."),
    "status": Command(f"{_ROOM}status", "status", "Show how crawls are doing."),
    "stop": Command(f"{_ROOM}pause", "stop", "End a running crawl."),
    "topic": Command(f"{_ROOM}topic", "topic", "Define topics; judge pages of a crawl."),
    "web": Command(f"{_ROOM}web", "web", "Look into recorded webs."),
    "why": Command(f"{_ROOM}why", "why", "Say why a URL was fetched, or waits."),
}


class _Main(LazyGroup):
    """Turns user errors into one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            said = _CREDENTIALS.sub(r"\1//", printable(str(error)))
            click.echo(f"focuscrawl: {said}", err=True)
            ctx.exit(2)


@click.group(
    cls=_Main, elsewhere=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="focuscrawl")
def main() -> None:
    """Focused crawling: critics, reports and recorded webs.

    The crawl itself is a Scrapy command: ``scrapy crawl focused -a topic=...``.
    """
