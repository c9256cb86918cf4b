"""Commands of ``focuscrawl`` as they are typed, run in this process; what they start is forked."""

from __future__ import annotations

from click.testing import CliRunner, Result

from focuscrawl.cli.main import main

from . import warm


def focuscrawl(*words: object, code: int = 0, answers: str | None = None) -> Result:
    """Run a command, which has to end with an exit code.

    Parameters
    ----------
    answers : what a person types when asked
    """
    with warm.forking():
        result = CliRunner().invoke(main, [*map(str, words)], input=answers)
    assert result.exit_code == code, result.output
    return result


def mistaken(*words: object) -> str:
    """Run a command that the user has to put right; return the one line that says so."""
    line: str
    (line,) = focuscrawl(*words, code=2).stderr.splitlines()
    assert line.startswith("focuscrawl: ")
    return line
