"""A progress bar on a terminal; elsewhere, one plain line at the start."""

from __future__ import annotations

from typing import NoReturn

import click
from tqdm import tqdm

from focuscrawl.foundation.progress_listener import Progress


class Bar(Progress):
    """Shows how many pages of so many are through, once it is started; to be closed."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bar: tqdm[NoReturn] | None = None

    def start(self, pages: int) -> None:
        """Begin to show, with the number of pages to come."""
        shown = tqdm(total=pages, desc=self._what, unit=" pages", disable=None)
        if shown.disable:
            click.echo(f"{self._what}: {pages} pages", err=True)
        self._bar = shown

    def advance(self, pages: int = 1) -> None:
        """Count pages."""
        if self._bar is not None:
            self._bar.update(pages)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
