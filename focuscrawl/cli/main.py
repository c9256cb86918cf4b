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
from focuscrawl.foundation.extras import require_extra
from focuscrawl.foundation.files import as_user_error
from focuscrawl.report.plain_text import printable

# passwords in URIs, also in those that were taken for paths
_CREDENTIALS = re.compile(r"\b(?!https?:)([a-z][a-z0-9+]*:)//?[^\s@:/]*:[^\s@]*@", re.IGNORECASE)

#: subcommand: its module, imported only when it is called, and one-line help
_SUBCOMMANDS = {
    "apprentice": ("cli.apprentice_command", "Train apprentices on crawls that are over."),
    "collect": ("cli.collect_command", "Take the pages of a crawl home."),
    "crawl": ("commands.anywhere", "Crawl the pages of a topic."),
    "critic": ("cli.critic_commands", "Train and check critics."),
    "distill": ("cli.report_commands", "List the hubs and authorities of a crawl."),
    "extend": ("cli.crawl_commands", "Give a running crawl another budget."),
    "knowledge": ("cli.knowledge_commands", "Learn from crawls what the next ones can use."),
    "lab": ("cli.lab_commands", "Compare strategies on recorded webs."),
    "new": ("cli.new_command", "Begin a project: settings, topic, seeds."),
    "paths": ("cli.paths_commands", "Learn paths to goal pages; forage other sites."),
    "pause": ("cli.crawl_commands", "Let a running crawl wait."),
    "plan": ("commands.plan", "Judge start pages; what a crawl takes."),
    "recrawl": ("cli.knowledge_commands", "Crawl a topic again: what is new, changed."),
    "report": ("cli.report_commands", "Summarise crawls and draw their curves."),
    "resume": ("cli.crawl_commands", "Let a paused crawl go on."),
    "rounds": ("cli.rounds_command", "Crawl in rounds, on a cluster."),
    "status": ("cli.crawl_commands", "Show how crawls are doing."),
    "stop": ("cli.crawl_commands", "End a running crawl."),
    "studio": ("cli.studio_command", "Topics and crawls, in a browser."),
    "topic": ("cli.topic_commands", "Define topics; judge pages of a crawl."),
    "web": ("cli.web_commands", "Look into recorded webs."),
    "why": ("cli.crawl_commands", "Say why a URL was fetched, or waits."),
}
COMMANDS = {name: text for name, (_, text) in _SUBCOMMANDS.items()}

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
        except (click.ClickException, click.Abort, click.exceptions.Exit):
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
        module = f"focuscrawl.{_SUBCOMMANDS[cmd_name][0]}"
        extra = EXTRA_OF.get(cmd_name)
        with nullcontext() if extra is None else require_extra(extra, f"focuscrawl {cmd_name}"):
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
