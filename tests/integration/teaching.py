"""A model that is asked about pages, as `focuscrawl topic suggest --teacher` asks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from focuscrawl.cli.main import main

from .model_server import Asked, Said, verdict

if TYPE_CHECKING:
    from .model_server import ModelServer

KEY = "sk-tests-7f3a91c2"
QUICK = ("--per-minute", "100000")


def by_word(asked: Asked) -> Said:
    """Find pages good that have a word."""
    words = asked.data.partition("\nwords: ")[2]
    return verdict("good" if "bike" in words.split() else "bad")


def always(said: Said) -> Callable[[Asked], Said]:
    return lambda asked: said


def command(folder: Path, endpoint: str, n: int) -> list[str]:
    teacher = ("--teacher", endpoint, "--model", "tiny")
    return ["topic", "suggest", str(folder), *teacher, "--n", str(n), *QUICK]


def suggest(
    folder: Path, server: ModelServer | str, n: int = 6, *, key: str | None = None, code: int = 0
) -> Result:
    """Have pages of a crawl judged by a model."""
    endpoint = server if isinstance(server, str) else server.endpoint
    environment = {"FOCUSCRAWL_TEACHER_KEY": key}
    result = CliRunner().invoke(main, command(folder, endpoint, n), env=environment)
    assert result.exit_code == code, result.output
    return result


def refused(folder: Path, server: ModelServer | str, n: int = 6, *, key: str | None = None) -> str:
    """Ask what is refused; return the one line that says why."""
    result = suggest(folder, server, n, key=key, code=2)
    assert KEY not in result.output
    line: str
    (line,) = result.stderr.splitlines()
    return line


def holds(folder: Path, secret: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path for path in files if secret.encode() in path.read_bytes()]
