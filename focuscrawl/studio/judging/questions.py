"""The pages of a crawl that a person is asked about, chosen in a thread and kept at hand."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from focuscrawl.critic.callable_critic import is_callable_spec
from focuscrawl.critic.loading import load_trained
from focuscrawl.errors import UserError
from focuscrawl.feedback import check_applicable, suggest
from focuscrawl.feedback.crawl_definition import definition_of
from focuscrawl.report.stores import open_store
from focuscrawl.studio.page_cards import page_card
from focuscrawl.topics import pages_learned_from

if TYPE_CHECKING:
    from pathlib import Path

    from focuscrawl.critic.focused_critic import FocusedCritic
    from focuscrawl.store import CrawlStore
    from focuscrawl.studio.page_cards import PageCard

_AT_ONCE = 20  # questions, as `topic suggest` asks


@dataclass
class _Asked:
    """What was chosen for one crawl, and what was said of it."""

    chosen: Future[list[PageCard]] | None = None
    settled: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)


class Questions:
    """Chooses pages as ``focuscrawl topic suggest`` does, with their texts, some at once.

    Choosing reads the crawl: seconds for a large one, so it is done in a thread, once for as many
    questions as are asked at a time.
    """

    def __init__(self) -> None:
        self._asked: dict[Path, _Asked] = {}
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="questions")

    def begin(self, crawl: Path) -> bool:
        """Begin to choose if there is nothing to ask; tell whether it is being done."""
        with self._lock:
            asked = self._asked.setdefault(crawl, _Asked())
            if asked.chosen is None:
                known = frozenset(asked.settled | asked.passed)
                asked.chosen = self._thread.submit(_choose, crawl, known)
            return not asked.chosen.done()

    def next(self, crawl: Path) -> tuple[PageCard | None, int]:
        """Return the page to judge, None if every page was asked about, and how many are left.

        Raises
        ------
        UserError
            Pages of this crawl cannot be judged.
        """
        with self._lock:
            asked = self._asked.get(crawl)
        if asked is None or asked.chosen is None or not asked.chosen.done():
            return None, 0
        try:
            cards = asked.chosen.result()
        except UserError:
            with self._lock:
                asked.chosen = None  # the next look tries again
            raise
        left = [card for card in cards if card.url not in asked.settled | asked.passed]
        if not left and cards:
            with self._lock:
                asked.chosen = None  # others are chosen, by what the answers have taught
        return (left[0] if left else None), len(left)

    def settle(self, crawl: Path, url: str, *, passed: bool) -> None:
        """Take note that a page was judged, or passed over."""
        with self._lock:
            asked = self._asked.setdefault(crawl, _Asked())
            (asked.passed if passed else asked.settled).add(url)


def _choose(crawl: Path, settled: frozenset[str]) -> list[PageCard]:
    with closing(open_store(crawl)) as store:
        known = definition_of(store, crawl)
        webs = check_applicable(known, crawl)
        away = known.judged | settled | {*pages_learned_from(known)}
        pages = suggest(store, webs, _AT_ONCE, known=away)
        critic = _critic(store)
    cards = [page_card(webs, each.url, critic, each.kind) for each in pages]
    return [card for card in cards if card is not None]


def _critic(store: CrawlStore) -> FocusedCritic | None:
    """Return the critic that a crawl follows; None if that is a program."""
    identity = store.identity()
    name = identity["critic_name"]
    return None if is_callable_spec(name) else load_trained(name, identity["topic"])
