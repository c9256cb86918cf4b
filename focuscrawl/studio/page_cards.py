"""Chooses pages of a crawl for a person to judge, and reads a page for the judging form."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.critic.focused_critic import WordReasons, explain_words
from focuscrawl.critic.protocol import is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.feedback import check_applicable, suggest
from focuscrawl.feedback.applying import load_crawl_definition
from focuscrawl.page.parse import visible_paragraphs
from focuscrawl.report.status import open_store
from focuscrawl.topics import training_urls
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from focuscrawl.critic.focused_critic import FocusedCritic
    from focuscrawl.webs.web_protocol import Web


_MAX_TEXT = 8000  # characters of a page
_N_QUESTIONS = 20  # the default of ``focuscrawl topic suggest``


@dataclass(frozen=True)
class PageCard:
    """A page for the judging form; all texts come from the page and are untrusted."""

    url: str
    title: str
    text: list[str]  # paragraphs, up to 8,000 characters
    cut: bool  # whether the page has more text
    relevance: float | None  # by the critic; None without a critic
    reasons: WordReasons | None  # words for and against the topic; None without a critic
    why: str = ""  # key of `focuscrawl.feedback.KINDS`; empty if a person named the page

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes of the page for the JSON API."""
        words = None
        if self.reasons is not None:
            words = {
                "on": [each._asdict() for each in self.reasons.on],
                "off": [each._asdict() for each in self.reasons.off],
                "meaning": self.reasons.meaning,
            }
        return asdict(self) | {"reasons": words}


def read_page_card(
    webs: Sequence[Web], url: str, critic: FocusedCritic | None, why: str = ""
) -> PageCard | None:
    """Read a page from the first web that contains the page, and judge the page.

    The result is None if no web contains the page, or if the response is not an HTML page with
    words. The function follows redirects.
    """
    for web in webs:
        known = find_pages([web], [url]).get(url)
        answer = None if known is None else HtmlAnswer.from_web(web, known.url)
        if answer is not None:
            break
    else:
        return None
    view = answer.parse()
    if view is None:
        return None
    relevance, reasons = None, None
    if critic is not None:
        relevance = float(critic.judge([view]).relevance[0])
        reasons = explain_words(critic.model, critic.marked, view.words.bag)
    text, cut = visible_paragraphs(answer.body, answer.encoding, _MAX_TEXT)
    return PageCard(url, view.title, text, cut, relevance, reasons, why)


@dataclass
class _CrawlQuestions:
    """The suggested pages of one crawl, and the URLs of judged and skipped pages."""

    chosen: Future[list[PageCard]] | None = None
    settled: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)


class Questions:
    """Chooses pages to judge as ``focuscrawl topic suggest`` does, twenty pages at a time."""

    def __init__(self) -> None:
        self._by_crawl: dict[Path, _CrawlQuestions] = {}
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="questions")

    def start_choosing(self, crawl: Path) -> bool:
        """Start to choose pages if none are chosen; return whether a choice is in progress."""
        with self._lock:
            asked = self._by_crawl.setdefault(crawl, _CrawlQuestions())
            if asked.chosen is None:
                known = frozenset(asked.settled | asked.skipped)
                asked.chosen = self._thread.submit(_choose, crawl, known)
            return not asked.chosen.done()

    def next(self, crawl: Path) -> tuple[PageCard | None, int]:
        """Return the next page to judge, or None, and the number of pages left to judge."""
        with self._lock:
            asked = self._by_crawl.get(crawl)
        if asked is None or asked.chosen is None or not asked.chosen.done():
            return None, 0
        try:
            cards = asked.chosen.result()
        except UserError:
            with self._lock:
                asked.chosen = None  # the next request tries again
            raise
        left = [card for card in cards if card.url not in asked.settled | asked.skipped]
        if not left and cards:
            with self._lock:
                asked.chosen = None  # the next pages are chosen with the retrained critic
        return (left[0] if left else None), len(left)

    def settle(self, crawl: Path, url: str, *, skipped: bool) -> None:
        """Record that a page was judged or skipped."""
        with self._lock:
            asked = self._by_crawl.setdefault(crawl, _CrawlQuestions())
            (asked.skipped if skipped else asked.settled).add(url)


def _choose(crawl: Path, settled: frozenset[str]) -> list[PageCard]:
    with closing(open_store(crawl)) as store:
        known = load_crawl_definition(store, crawl)
        webs = check_applicable(known, crawl)
        excluded = known.judged_urls | settled | {*training_urls(known)}
        pages = suggest(store, webs, _N_QUESTIONS, known=excluded)
        identity = store.identity()
    name = identity["critic_name"]  # a critic that is a program is not run
    critic = None if is_callable_spec(name) else load_trained(name, identity["topic"])
    cards = [read_page_card(webs, each.url, critic, each.kind) for each in pages]
    return [card for card in cards if card is not None]
