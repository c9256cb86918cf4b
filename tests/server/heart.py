"""Counts how often the event loop of a crawl comes round while something happens to a page."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

_EVERY = 0.001  # seconds
_hearts: dict[str, Heart] = {}


class Heart:
    """Beats as often as the event loop lets it, until it is stopped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Handle = self._loop.call_soon(self._beat)
        self.beats = 0

    def _beat(self) -> None:
        self.beats += 1
        self._next = self._loop.call_later(_EVERY, self._beat)

    def stop(self) -> None:
        self._next.cancel()


def start_heart(url: str) -> None:
    """Begin to count for a URL."""
    _hearts[url] = Heart()


def stop_heart(url: str, log: str) -> None:
    """Write a line of JSON with the URL and the count to `log`."""
    heart = _hearts.pop(url)
    heart.stop()
    with Path(log).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps([url, heart.beats]) + "\n")
