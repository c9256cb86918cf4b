"""A studio in a process of its own, and a tab of a real browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Page

MINUTE = 60_000  # milliseconds: a loaded machine is slow
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def start(*arguments: str, cwd: Path, stdout: int | None = None) -> subprocess.Popen[str]:
    """Run ``focuscrawl`` in a folder."""
    command = [sys.executable, "-P", "-m", "focuscrawl", *arguments]
    environment = os.environ | {"XDG_STATE_HOME": str(cwd / ".state")}  # where tokens are kept
    return subprocess.Popen(command, cwd=cwd, stdout=stdout, text=True, env=environment)


@contextmanager
def serving(folder: Path, port: int = 0, options: Sequence[str] = ()) -> Iterator[str]:
    """Serve a folder; give the address, with its token."""
    arguments = ["studio", ".", "--port", str(port), "--no-browser", *options]
    studio = start(*arguments, cwd=folder, stdout=subprocess.PIPE)
    assert studio.stdout is not None
    with studio.stdout as said:
        found = re.search(r"http://\S+", said.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            studio.send_signal(signal.SIGINT)
            code = studio.wait()
        assert code == 0


@contextmanager
def tab() -> Iterator[Page]:
    """Give a tab of a real browser; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield browser.new_context().new_page()
        browser.close()
