"""Who is told how far a long reading is."""

from __future__ import annotations


class Progress:
    """Is told how many pages will be read, and of every few that were; this one in vain."""

    def start(self, pages: int) -> None:
        """Learn how many pages will be read."""

    def advance(self, pages: int = 1) -> None:
        """Learn that some were read."""


SILENT = Progress()
