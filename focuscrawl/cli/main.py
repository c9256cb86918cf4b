"""Entry point of the ``focuscrawl`` command."""

from __future__ import annotations

import importlib
import re
import sys
from contextlib import nullcontext
from typing import Any, NoReturn

import click

from focuscrawl import __version__
from focuscrawl.errors import UserError, WorkerError
from focuscrawl.foundation.extras import needs
from focuscrawl.foundation.files import as_user_error
from focuscrawl.report.plain_text import printable

# of a database, also where its URL was taken for a path
_CREDENTIALS = re.compile(r"\b(?!https?:)([a-z][a-z0-9+]*:)//?[^\s@:/]*:[^\s@]*@", re.IGNORECASE)

#: raised by click to end a command
_CLICK = (click.ClickException, click.Abort, click.exceptions.Exit)

#: subcommand: one-line help
COMMANDS = {
    "apprentice": "Train apprentices on crawls that are over.",
    "collect": "Take the pages of a crawl home.",
    "crawl": "Crawl the pages of a topic.",
    "critic": "Train and check critics.",
    "distill": "List the hubs and authorities of a crawl.",
    "extend": "Give a running crawl another budget.",
    "knowledge": "Learn from crawls what the next ones can use.",
    "lab": "Compare strategies on recorded webs.",
    "new": "Begin a project: settings, topic, seeds.",
    "paths": "Learn paths to goal pages; forage other sites.",
    "pause": "Let a running crawl wait.",
    "plan": "Judge start pages; what a crawl takes.",
    "recrawl": "Crawl a topic again: what is new, changed.",
    "report": "Summarise crawls and draw their curves.",
    "resume": "Let a paused crawl go on.",
    "rounds": "Crawl in rounds, on a cluster.",
    "status": "Show how crawls are doing.",
    "stop": "End a running crawl.",
    "studio": "Topics and crawls, in a browser.",
    "topic": "Define topics; judge pages of a crawl.",
    "web": "Look into recorded webs.",
    "why": "Say why a URL was fetched, or waits.",
}

#: module: its subcommands; it is imported only when one of them is called
_MODULES = {
    "focuscrawl.cli.apprentice_command": ("apprentice",),
    "focuscrawl.cli.collect_command": ("collect",),
    "focuscrawl.cli.crawl_commands": ("extend", "pause", "resume", "status", "stop", "why"),
    "focuscrawl.cli.critic_commands": ("critic",),
    "focuscrawl.cli.knowledge_commands": ("knowledge", "recrawl"),
    "focuscrawl.cli.lab_commands": ("lab",),
    "focuscrawl.cli.new_command": ("new",),
    "focuscrawl.cli.paths_commands": ("paths",),
    "focuscrawl.cli.report_commands": ("distill", "report"),
    "focuscrawl.cli.rounds_command": ("rounds",),
    "focuscrawl.cli.studio_command": ("studio",),
    "focuscrawl.cli.topic_commands": ("topic",),
    "focuscrawl.cli.web_commands": ("web",),
    "focuscrawl.commands.anywhere": ("crawl",),
    "focuscrawl.commands.plan": ("plan",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

#: subcommand: the extra of the package that it needs
EXTRA_OF = {
    "distill": "report",
    "lab": "lab",
    "report": "report",
    "rounds": "parquet",
    "studio": "studio",
}


class OneLineErrors(click.Group):
    """Prints an error that the user can cause as one line, and exits with code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print the errors that the user can correct."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            _refuse(ctx, error)
        except WorkerError as error:
            _refuse(ctx, error, 1)
        except _CLICK:
            raise
        except OSError as error:
            refused = as_user_error(error)
            if refused is None:
                raise
            _refuse(ctx, refused)
        except Exception:
            damage = _find_damage()
            if damage is None:
                raise
            _refuse(ctx, damage)


class _Commands(OneLineErrors):
    """Loads a subcommand only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = _MODULE_OF[cmd_name]
        extra = EXTRA_OF.get(cmd_name)
        with nullcontext() if extra is None else needs(extra, f"focuscrawl {cmd_name}"):
            command: click.Command = getattr(importlib.import_module(module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


def _refuse(ctx: click.Context, error: Exception, code: int = 2) -> NoReturn:
    """Print in one line what is wrong, and exit."""
    said = _CREDENTIALS.sub(r"\1//", printable(str(error)))
    click.echo(f"focuscrawl: {said}", err=True)
    ctx.exit(code)


def _find_damage() -> UserError | None:
    """Return what is wrong with a store that was read, if that may be the cause of a failure."""
    if "focuscrawl.store" not in sys.modules:
        return None
    from focuscrawl.store.crawl_store import find_damage  # noqa: PLC0415 - keeps --help quick

    return find_damage()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="focuscrawl")
def main() -> None:
    """Focused crawling: crawls of a topic, critics, reports and recorded webs."""
