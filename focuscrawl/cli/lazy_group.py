"""A group of commands each of which is imported when it is called, not before."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from focuscrawl.foundation.extras import needs

if TYPE_CHECKING:
    from collections.abc import Mapping


class Command(NamedTuple):
    """Where a command is.

    Attributes
    ----------
    module, attribute : of the command
    about : its help in one line
    extra : of the package, that it needs
    """

    module: str
    attribute: str
    about: str
    extra: str | None = None


class LazyGroup(click.Group):
    """A click group of commands that are here and of such as are elsewhere.

    Parameters
    ----------
    elsewhere : by name
    """

    def __init__(self, *args: Any, elsewhere: Mapping[str, Command], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._elsewhere = elsewhere

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *self._elsewhere})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of this name."""
        if cmd_name not in self._elsewhere:
            return super().get_command(ctx, cmd_name)
        found = self._elsewhere[cmd_name]
        what = f"{ctx.command_path} {cmd_name}"
        with nullcontext() if found.extra is None else needs(found.extra, what):
            command: click.Command = getattr(
                importlib.import_module(found.module), found.attribute
            )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; imports none of them."""
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))  # as click does
        rows = []
        for name in names:
            if name in self._elsewhere:
                rows.append((name, self._elsewhere[name].about))
            elif (here := super().get_command(ctx, name)) is not None:
                rows.append((name, here.get_short_help_str(width)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
