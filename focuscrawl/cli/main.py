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
from focuscrawl.foundation.processes import use_one_thread
from focuscrawl.report.plain_text import printable

# passwords in URIs, also in URIs that `pathlib` has normalised to paths
_CREDENTIALS = re.compile(r"\b(?!https?:)([a-z][a-z0-9+]*:)//?[^\s@:/]*:[^\s@]*@", re.IGNORECASE)

_INTERRUPTED = 130  # exit code after Ctrl-C

#: subcommand: (module, imported only when the subcommand is called; one-line help)
_SUBCOMMANDS = {
    "apprentice": ("cli.apprentice_command", "Train link classifiers on finished crawls."),
    "audit": ("cli.audit_command", "Find off-topic pages of a recording."),
    "collect": ("cli.collect_command", "Export relevant pages of a crawl with their text."),
    "corpus": ("commands.corpus_command", "Create a corpus of pages from keywords."),
    "crawl": ("commands.anywhere", "Crawl the Web for pages on a topic."),
    "critic": ("cli.critic_commands", "Train and check critics (page classifiers)."),
    "distill": ("cli.report_commands", "List the hubs and authorities of a crawl."),
    "extend": ("cli.crawl_commands", "Change the budget of a running crawl."),
    "knowledge": ("cli.knowledge_commands", "Save what crawls found for later crawls of a topic."),
    "lab": ("cli.lab_commands", "Compare crawl strategies on recordings of the Web."),
    "new": ("cli.new_command", "Create a project: settings, topic, start pages."),
    "paths": ("cli.paths_commands", "Learn link paths to goal pages; find goal pages."),
    "pause": ("cli.crawl_commands", "Pause a running crawl."),
    "plan": ("commands.plan", "Check start pages; estimate time and disk space."),
    "recrawl": ("cli.knowledge_commands", "Crawl a topic again for new and changed pages."),
    "report": ("cli.report_commands", "Summarise crawls and draw their curves."),
    "resume": ("cli.crawl_commands", "Resume a paused crawl."),
    "rounds": ("cli.rounds_command", "Crawl in batches, on one machine or a cluster."),
    "status": ("cli.crawl_commands", "Show the progress of crawls."),
    "stop": ("cli.crawl_commands", "Stop a running crawl."),
    "studio": ("cli.studio_command", "Manage topics and crawls in a browser."),
    "topic": ("cli.topic_commands", "Define topics; judge pages of a crawl."),
    "web": ("cli.web_commands", "Inspect recordings of the Web."),
    "why": ("cli.crawl_commands", "Explain why a URL was fetched, queued or skipped."),
}
COMMANDS = {name: text for name, (_, text) in _SUBCOMMANDS.items()}

#: subcommand: the optional dependency (extra) that the subcommand needs
REQUIRED_EXTRAS = {
    "distill": "report",
    "lab": "lab",
    "report": "report",
    "rounds": "parquet",
    "studio": "studio",
}


class OneLineErrorGroup(click.Group):
    """Command group that prints a `UserError` as one line and exits with code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print an error that the user can correct as one line.

        Ctrl-C ends the command without a message, because commands start other commands.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except UserError as error:
            _exit_with_error(ctx, error)
        except WorkerError as error:
            _exit_with_error(ctx, error, 1)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except OSError as error:
            user_error = as_user_error(error)
            if user_error is None:
                raise
            _exit_with_error(ctx, user_error)
        except Exception:
            damage = _find_store_damage()
            if damage is None:
                raise
            _exit_with_error(ctx, damage)


class _LazyCommands(OneLineErrorGroup):
    """Command group that imports a subcommand only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        use_one_thread()  # before numpy is imported
        module = f"focuscrawl.{_SUBCOMMANDS[cmd_name][0]}"
        extra = REQUIRED_EXTRAS.get(cmd_name)
        with nullcontext() if extra is None else require_extra(extra, f"focuscrawl {cmd_name}"):
            command: click.Command = getattr(importlib.import_module(module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


def _exit_with_error(ctx: click.Context, error: Exception, code: int = 2) -> NoReturn:
    message = _CREDENTIALS.sub(r"\1//", printable(str(error)))
    click.echo(f"focuscrawl: {message}", err=True)
    ctx.exit(code)


def _find_store_damage() -> UserError | None:
    """Return the damage of an opened store, which may have caused an unexpected exception."""
    if "focuscrawl.store" not in sys.modules:
        return None
    from focuscrawl.store.crawl_store import find_damage  # noqa: PLC0415 - keeps --help fast

    return find_damage()


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="focuscrawl")
def main() -> None:
    """Crawl the Web for pages on a topic, and export the relevant pages."""
