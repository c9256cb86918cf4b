"""Chooses pages of a crawl for a person to judge, and reads a page for the judging form."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from focuscrawl.critic.corpus import find_pages
from focuscrawl.critic.critic_files import load_trained
from focuscrawl.critic.focused_critic import WordReasons, explain_words
from focuscrawl.critic.protocol import RELEVANT, is_callable_spec
from focuscrawl.errors import UserError
from focuscrawl.feedback.applying import check_applicable, load_crawl_definition
from focuscrawl.feedback.suggestions import suggest
from focuscrawl.page.parse import visible_paragraphs
from focuscrawl.report.status import open_store
from focuscrawl.topics import training_urls
from focuscrawl.webs.web_protocol import HtmlAnswer

if TYPE_CHECKING:
    from focuscrawl.critic.focused_critic import FocusedCritic
    from focuscrawl.page import PageView
    from focuscrawl.webs.web_protocol import Web


_MAX_TEXT = 8000  # characters of a page
_MAX_SHOWN = 200  # pages that are kept to be shown again after undo
_RESERVED = 120.0  # seconds
_CERTAIN = 0.3  # distance of the relevance from 1/2
_N_WORDS = 5  # of a sentence
_N_MARKED = 8  # words for the topic, and against it
_SMALLEST = 0.1  # weight that is mentioned, log-odds
_CLOSE = 0.005  # difference from 1/2 that two digits do not show
_SAME = 1e-6  # difference of two equal relevances
_FIRST_SPACELESS = "\u0e00"
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
        reasons = None if self.reasons is None else self.reasons.to_dict()
        return asdict(self) | {"reasons": reasons}

    @property
    def sentences(self) -> list[str]:
        """The reasons for the critic's judgement of the page, in up to five sentences."""
        return describe_reasons(self.relevance, self.to_dict()["reasons"])

    @property
    def paragraphs(self) -> list[list[tuple[str, str]]]:
        """The text with the words for and against the topic, see `mark_words`."""
        on, off = strong_words(self.to_dict()["reasons"])
        return [mark_words(each, on, off) for each in self.text]


def describe_reasons(relevance: float | None, reasons: dict[str, Any] | None) -> list[str]:
    """Describe the verdict of a critic, and the reasons for and against the verdict."""
    if relevance is None:
        return ["The topic has no critic yet that could judge this page."]
    certain = abs(relevance - RELEVANT) > _CERTAIN
    side = "on the topic" if relevance > RELEVANT else "not on the topic"
    doubt = "is sure" if certain else "is not sure, but tends to the verdict"
    digits = 3 if abs(relevance - RELEVANT) < _CLOSE else 2
    shown = f"{relevance:.{digits}f}"
    found = [f"The critic {doubt} that this page is {side}: relevance {shown}."]
    if reasons is None:
        return found
    on, off = (words[:_N_WORDS] for words in strong_words(reasons))
    for which, words in (("for", on), ("against", off)):
        if words:
            found.append(f"Words that speak {which} the topic: {', '.join(words)}.")
    meaning, empty = reasons["meaning"], reasons["empty"]
    if abs(meaning) >= _SMALLEST:
        near = "close to" if meaning > 0 else "far from"
        found.append(f"In its meaning, the whole text is {near} the topic.")
    if relevance > RELEVANT or not (on or meaning >= _SMALLEST):
        return found
    if abs(relevance - empty) < _SAME:
        found.append(
            "The main text says too little about the topic, so the critic judges the "
            "page like a page without words."
        )
    elif relevance > empty:
        found.append(
            f"Together, the words raise the relevance only from {empty:.2f} (the relevance of a "
            f"page without words) to {shown}. A relevant page has a relevance above {RELEVANT}."
        )
    return found


def strong_words(reasons: dict[str, Any] | None) -> tuple[list[str], list[str]]:
    """Return the words that have a large weight for or against a topic."""
    on, off = (
        [
            each["word"]
            for each in (reasons or {}).get(side, [])
            if abs(each["weight"]) >= _SMALLEST
        ]
        for side in ("on", "off")
    )
    return on, off


def mark_words(text: str, on: Sequence[str], off: Sequence[str]) -> list[tuple[str, str]]:
    """Split a text at words for and against a topic.

    Returns
    -------
    list of (str, str)
        Pieces of the text, each with ``on``, ``off`` or an empty string.
    """
    kinds = dict.fromkeys(off[:_N_MARKED], "off") | dict.fromkeys(on[:_N_MARKED], "on")
    if not kinds:
        return [(text, "")]
    longest_first = sorted(kinds, key=len, reverse=True)
    # scripts without spaces have no word boundaries
    parts = (
        rf"(?<!\w){re.escape(word)}(?!\w)" if word[:1] < _FIRST_SPACELESS else re.escape(word)
        for word in longest_first
    )
    pieces = re.split(f"({'|'.join(parts)})", text, flags=re.IGNORECASE)
    return [
        (piece, kinds.get(piece.lower(), "") if i % 2 else "") for i, piece in enumerate(pieces)
    ]


@dataclass(frozen=True)
class Question:
    """A page for a person to judge, which no critic has judged yet."""

    card: PageCard
    view: PageView

    def judge(self, critic: FocusedCritic | None) -> PageCard:
        """Return the page with its relevance and the reasons, by the given critic."""
        if critic is None:
            return self.card
        relevance = float(critic.judge([self.view]).relevance[0])
        reasons = explain_words(critic, self.view.words.bag)
        return replace(self.card, relevance=relevance, reasons=reasons)


def read_question(webs: Sequence[Web], url: str, why: str = "") -> Question | None:
    """Read a page from the first web that contains the page.

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
    text, cut = visible_paragraphs(answer.body, answer.encoding, _MAX_TEXT)
    return Question(PageCard(url, view.title, text, cut, None, None, why), view)


@lru_cache(maxsize=8)
def load_unchanged(spec: str, topics: str, _version: Hashable) -> FocusedCritic:
    """Load a trained critic, or return the critic that was loaded for the same version."""
    return load_trained(spec, topics)


def load_crawl_critic(crawl: Path) -> FocusedCritic | None:
    """Load the critic by which a crawl judges now; None for a critic that is a program."""
    with closing(open_store(crawl)) as store:
        identity = store.identity()
    name = identity["critic_name"]
    if is_callable_spec(name):
        return None
    return load_unchanged(name, identity["topic"], identity.get("critic"))


class Reservations:
    """Reserves a page for the person who sees the page, so that other persons judge other pages.

    A reservation ends after two minutes, or when the same person sees another page.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], tuple[str, float]] = {}  # by subject and person
        self._lock = Lock()

    def order(self, urls: Sequence[str], subject: str, person: str) -> list[str]:
        """Return the URLs in order, except that URLs that other persons see now come last."""
        now = time.monotonic()
        with self._lock:
            others = {
                url
                for (of, who), (url, until) in self._held.items()
                if of == subject and who != person and until > now
            }
        return sorted(urls, key=others.__contains__)

    def reserve(self, subject: str, url: str, person: str) -> None:
        """Reserve a page of a crawl or topic for a person."""
        now = time.monotonic()
        with self._lock:
            self._held = {key: held for key, held in self._held.items() if held[1] > now}
            if person:
                self._held[subject, person] = url, now + _RESERVED


@dataclass
class _CrawlQuestions:
    """The suggested pages of one crawl, and the URLs of judged and skipped pages."""

    chosen: Future[list[Question]] | None = None
    settled: set[str] = field(default_factory=set)  # judged or skipped
    again: list[Question] = field(default_factory=list)  # pages whose judgement was removed


class Questions:
    """Chooses pages to judge as ``focuscrawl topic suggest`` does, twenty pages at a time."""

    def __init__(self) -> None:
        self._by_crawl: dict[Path, _CrawlQuestions] = {}
        self._shown: OrderedDict[tuple[Path, str], Question] = OrderedDict()
        self._reservations = Reservations()
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="questions")

    def start_choosing(self, crawl: Path) -> bool:
        """Start to choose pages unless pages are chosen; return whether a choice is running."""
        with self._lock:
            asked = self._by_crawl.setdefault(crawl, _CrawlQuestions())
            if asked.chosen is None:
                known = frozenset(asked.settled)
                asked.chosen = self._thread.submit(_choose, crawl, known)
            return not asked.chosen.done()

    def next(self, crawl: Path, person: str = "") -> tuple[Question | None, int]:
        """Return the next page for a person to judge, or None, and the number of pages left."""
        with self._lock:
            asked = self._by_crawl.get(crawl)
        if asked is None or asked.chosen is None or not asked.chosen.done():
            return None, 0
        try:
            chosen = asked.chosen.result()
        except UserError:
            with self._lock:
                asked.chosen = None  # the next request tries again
            raise
        with self._lock:
            questions = {each.card.url: each for each in [*asked.again, *chosen]}
            left = [url for url in questions if url not in asked.settled]
            if not left and chosen:
                asked.chosen = None  # the next pages are chosen with the retrained critic
        if not left:
            return None, 0
        url = self._reservations.order(left, str(crawl), person)[0]
        self._reservations.reserve(str(crawl), url, person)
        with self._lock:
            self._shown[crawl, url] = questions[url]
            if len(self._shown) > _MAX_SHOWN:
                self._shown.popitem(last=False)
        return questions[url], len(left)

    def settle(self, crawl: Path, url: str, *, judged: bool) -> None:
        """Record that a page was judged or skipped, or that its judgement was removed."""
        with self._lock:
            asked = self._by_crawl.setdefault(crawl, _CrawlQuestions())
            if judged:
                asked.settled.add(url)
                asked.again = [each for each in asked.again if each.card.url != url]
                return
            asked.settled.discard(url)
            shown = self._shown.get((crawl, url))
            if shown is not None:
                asked.again.insert(0, shown)


def _choose(crawl: Path, settled: frozenset[str]) -> list[Question]:
    with closing(open_store(crawl)) as store:
        known = load_crawl_definition(store, crawl)
        webs = check_applicable(known, crawl)
        excluded = known.judged_urls | settled | {*training_urls(known)}
        pages = suggest(store, webs, _N_QUESTIONS, known=excluded)
    found = [read_question(webs, each.url, each.kind) for each in pages]
    return [each for each in found if each is not None]
