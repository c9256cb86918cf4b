"""Crawls that a command runs in a process of their own."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from focuscrawl.foundation.python_processes import start_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_UNREACHABLE = 3  # exit code of a crawl none of whose start pages could be had


def crawl(
    arguments: Mapping[str, str | None], settings: Iterable[str], *, may_fail: bool = False
) -> None:
    """Run ``focuscrawl crawl``; end with its exit code if it fails.

    Told to end, by Ctrl-C or a signal, the crawl does so cleanly, and this goes on.

    Parameters
    ----------
    arguments : of the spider; those that are None are not given
    settings : ``NAME=VALUE`` each
    may_fail : go on as well where no start page can be had
    """
    command = ["-m", "focuscrawl", "crawl"]
    for name, value in arguments.items():
        if value is not None:
            command += ["-a", f"{name}={value}"]
    for setting in settings:
        command += ["-s", setting]
    with start_python(command) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        while process.poll() is None:
            with suppress(KeyboardInterrupt):  # the terminal tells the crawl, too
                process.wait()
    if process.returncode and not (may_fail and process.returncode == _UNREACHABLE):
        raise SystemExit(process.returncode if process.returncode > 0 else 1)
