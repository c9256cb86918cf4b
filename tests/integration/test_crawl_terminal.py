"""What a person at a terminal sees of a crawl."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import struct
import termios
from pathlib import Path

from . import warm
from .running import ROOT, environment, words


def _all_output(descriptor: int) -> str:
    """Read a terminal until its last process is gone."""
    read: list[bytes] = []
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # how Linux says that nobody holds the other end
                raise
            data = b""
        if not data:
            return b"".join(read).decode()
        read.append(data)


def _crawled(crawl_dir: Path, columns: int, **arguments: str | int) -> str:
    """Crawl in a terminal, and return all that it got to show."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    line = words(crawl_dir, **arguments)
    try:
        with warm.WarmProcess(
            line, cwd=ROOT, env=environment() | {"TERM": "xterm"}, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            output = _all_output(ours)
    finally:
        os.close(ours)
    assert process.wait() == 0
    return output


def test_a_terminal_gets_a_progress_bar_and_a_summary(
    demo: dict[str, str], tmp_path: Path
) -> None:
    output = _crawled(tmp_path / "crawl", 160, **demo, budget=60)
    bars = [part for part in output.split("\r") if "| " in part and "/60 [" in part]
    assert len(bars) > 1
    assert "0/60 [" in bars[0]
    for shown in ("100%", "harvest", "now", "overall", "frontier", "pages/s", "recall ~"):
        assert shown in bars[-1]
    end = output[output.rindex("/60 [") :]
    assert "\nstopped       the budget of 60 fetches is spent" in end.replace("\r", "")
    assert "not yet found" in end
    assert str(tmp_path / "crawl") in end.rstrip().splitlines()[-1]


def test_the_bar_is_whole_in_80_columns(demo: dict[str, str], tmp_path: Path) -> None:
    output = _crawled(tmp_path / "crawl", 80, **demo, budget=60)
    bars = [part for part in output.split("\r") if "| " in part and "/60 [" in part]
    for bar in bars[1:]:
        assert len(bar.splitlines()[0].rstrip()) <= 80
        assert bar.splitlines()[0].rstrip().endswith("]")
    for shown in ("100%|", "pages/s", "harvest 0.", "frontier "):
        assert shown in bars[-1]
