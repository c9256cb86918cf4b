"""``focuscrawl topic`` as it is typed, and what it says when it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from focuscrawl.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def topic(*arguments: str | Path, answers: str | None = None) -> Result:
    """Run ``focuscrawl topic``, with what a person types."""
    return CliRunner().invoke(main, ["topic", *map(str, arguments)], input=answers)


def refused(*arguments: str | Path) -> str:
    """Return the one line with which a command is refused."""
    result = topic(*arguments)
    assert result.exit_code == 2, result.output
    line: str
    (line,) = result.stderr.splitlines()
    return line
