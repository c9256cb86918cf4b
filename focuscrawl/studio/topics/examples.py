"""The pages that a person has named for a topic, and judges one after the other."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.studio.page_cards import page_card
from focuscrawl.topics import read_definition

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.studio.page_cards import PageCard
    from focuscrawl.studio.topics.room import TopicRoom


class Examples:
    """Pages that were fetched for topics and not judged yet, in the order named.

    Those passed over come back when the studio is started again.
    """

    def __init__(self) -> None:
        self._passed: dict[str, set[str]] = {}
        self._lock = Lock()

    def waiting(self, room: TopicRoom) -> list[str]:
        """Return the URLs of the pages that wait."""
        return [*self._waiting(room)]

    def next(self, room: TopicRoom) -> PageCard | None:
        """Return the page to judge next; None if none that can be read waits."""
        for url, crawl in self._waiting(room).items():
            card = page_card(room.webs(crawl), url, room.latest())
            if card is not None:
                return card
            self.skip(room, url)
        return None

    def skip(self, room: TopicRoom, url: str) -> None:
        """Pass over a page."""
        with self._lock:
            self._passed.setdefault(room.name, set()).add(url)

    def plain(self, room: TopicRoom) -> dict[str, Any]:
        """Return ``waiting`` (a number) and ``page``, the next one or None."""
        card = self.next(room)
        return {"waiting": len(self.waiting(room)), "page": None if card is None else card.plain()}

    def _waiting(self, room: TopicRoom) -> dict[str, Path]:
        """Return the pages that wait, and the crawls that have fetched them."""
        settled = read_definition(room.path).judged | self._passed.get(room.name, set())
        return {url: crawl for url, crawl in room.fetched().items() if url not in settled}


def new_judgements(room: TopicRoom) -> int:
    """Return how many judged pages the latest critic has not learned from."""
    return len(read_definition(room.path).judged - room.learned_from())
