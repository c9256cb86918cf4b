"""Run the test servers (`tests/server`) as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from .running import ROOT

_LONG = 600  # seconds after which servers hang that should end, or answer


@contextmanager
def serving(module: str, log: Path, *told: object) -> Iterator[dict[str, Any]]:
    """Run a module until the end of the block; give what it says when its servers listen.

    Parameters
    ----------
    module : of `tests`; it serves until its standard input is closed
    log : where it notes what it is asked for
    told : lines of JSON that it reads before it serves
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(log)],
        cwd=ROOT / "tests",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(f"{json.dumps(line)}\n" for line in told)
        process.stdin.flush()
        yield json.loads(process.stdout.readline())
        process.communicate(timeout=_LONG)  # closes its standard input


def asked(
    url: str, body: bytes | None = None, headers: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, str]:
    """Return the status and the text that a server answers with; what has a body is posted."""
    try:
        with urlopen(Request(url, body, dict(headers)), timeout=_LONG) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
