"""What a person at a terminal sees of a crawl."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

from .running import ROOT, command, environment

if TYPE_CHECKING:
    from pathlib import Path


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


def test_a_terminal_gets_a_progress_bar_and_a_summary(
    demo: dict[str, str], tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    try:
        with subprocess.Popen(
            command(tmp_path / "crawl", **demo, budget=60),
            cwd=ROOT,
            env=environment() | {"TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            output = _all_output(ours)
    finally:
        os.close(ours)
    assert process.returncode == 0
    bars = [part for part in output.split("\r") if "| " in part and "/60 [" in part]
    assert len(bars) > 1
    assert "0/60 [" in bars[0]
    for shown in ("100%", "harvest", "now", "overall", "frontier", "pages/s"):
        assert shown in bars[-1]
    end = output[output.rindex("/60 [") :]
    assert "\nstopped       the budget of 60 fetches is spent" in end.replace("\r", "")
    assert str(tmp_path / "crawl") in end.rstrip().splitlines()[-1]
